"""Joins a Ray cluster, or starts a private one; what cannot be joined is told apart within seconds."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import grpc
import ray
from ray import _raylet
from ray._private.authentication.authentication_utils import is_token_auth_enabled
from ray.exceptions import AuthenticationError

from cluster.ray_errors import ClusterError

LOCAL = "local"
AUTO = "auto"
_OBJECT_STORE_BYTES = 128 << 20
_CONNECT_S = 5.0
_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"
"""What Ray's own processes ask a head: it wants the token, and its answer names the version."""
_HOW_TO_GIVE_A_TOKEN = "set RAY_AUTH_TOKEN to it, or copy the cluster's ~/.ray/auth_token here"
_DEFAULTS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray would otherwise announce a change of its own defaults on stderr each time.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Nor should the workers of a private Ray be the last ones whom the machine serves (niceness 15).
    "RAY_worker_niceness": "0",
}


def connect(address: str, workers: int | None) -> None:
    """Join the cluster at an address, or start a private Ray.

    Parameters
    ----------
    address
        `LOCAL`, `AUTO` for the cluster that runs on this machine, or host:port of a head.
    workers
        For how many workers a private Ray must have CPUs at least; None for the machine's.

    Raises
    ------
    ClusterError
        If that is not possible, with the reason: within some 10 seconds.
    """
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    options: dict[str, Any] = {
        "log_to_driver": False,
        "logging_level": logging.ERROR,
        "configure_logging": True,
        "namespace": f"rootsplit-{uuid4().hex[:8]}",
    }
    # Whatever `log_to_driver` says, Ray tells of dead workers on stdout, where our result goes: it has no other switch.
    ray._private.worker._worker_logs_enabled = False
    if ray.is_initialized():
        raise ClusterError("this process is on a Ray cluster already: close the other session first")
    if address == LOCAL:
        cpus = max(workers or 0, os.cpu_count() or 1)
        own = {"num_cpus": cpus, "object_store_memory": _OBJECT_STORE_BYTES, "include_dashboard": False}
        _init(LOCAL, options | own)
        return
    if address == AUTO:
        address = _recorded_address()
    if address.startswith("ray://"):
        raise ClusterError(
            f"{address} is a Ray Client address, which is too slow for search: give host:port of the cluster's head"
            " (port 6379 by default) and run on a machine of the cluster"
        )
    if address != AUTO:
        _check_reachable(address)
        _check_head(address)
    _init(address, options)


@contextlib.contextmanager
def _own_handler() -> Iterator[None]:
    """Keep this process's answer to SIGTERM: Ray would set one of its own, which leaves tables behind."""
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if is_main and handler is not None:
            signal.signal(signal.SIGTERM, handler)


def _init(address: str, options: dict[str, Any]) -> None:
    try:
        with _own_handler():
            ray.init(address=address, **options)
    except AuthenticationError:
        raise _no_token() from None
    except OSError as error:
        if isinstance(error, ConnectionError):
            raise ClusterError(f"the Ray cluster at {address} cannot be joined: {_first_line(error)}") from None
        where = f" {error.filename}" if error.filename else ""
        raise ClusterError(
            f"Ray cannot write{where} ({error.strerror}): set HOME to a folder that can be written, for Ray's token,"
            " and RAY_TMPDIR for its files"
        ) from None
    except (RuntimeError, ValueError) as error:
        raise _refusal(address, error) from None


def _refusal(address: str, error: Exception) -> ClusterError:
    """Return the sentence for what Ray's own checks refuse."""
    versions = re.findall(r"(?:Ray|Python): (\S+)", str(error))
    if "Version mismatch" in str(error) and len(versions) == 4:
        return ClusterError(
            f"the cluster at {address} runs Ray {versions[0]} and Python {versions[1]}, this program Ray {versions[2]}"
            f" and Python {versions[3]}: they must be the same"
        )
    what = "a private Ray cannot be started" if address == LOCAL else f"the Ray cluster at {address} cannot be joined"
    return ClusterError(f"{what}: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _recorded_address() -> str:
    """Return the address that Ray would take for `AUTO`, so that it can be checked; `AUTO` where Ray must look."""
    named = os.environ.get("RAY_ADDRESS", "")
    if named in ("", AUTO, LOCAL):
        directory = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
        record = Path(directory, "ray", "ray_current_cluster")
        named = record.read_text().strip() if record.is_file() else ""
    return named or AUTO


def _check_reachable(address: str) -> None:
    """Fail within seconds where nobody listens: Ray itself would wait for minutes."""
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ClusterError(f"{address!r} is no cluster address: give {LOCAL}, {AUTO}, or host:port such as head:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        cause = error.strerror or str(error)
        raise ClusterError(f"no Ray cluster answers at {address}: {cause}") from None


def _check_head(address: str) -> None:
    """Ask a head whether it takes our token and runs our version: Ray itself would try for 20 s, and then be vague."""
    is_token_mode = is_token_auth_enabled()
    loader = cast(Any, _raylet).AuthenticationTokenLoader.instance()
    token = loader.get_token_for_http_header() if is_token_mode else {}
    if is_token_mode and not token:
        raise _no_token()
    try:
        with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
            answer = channel.unary_unary(_ALIVE)(
                b"", timeout=_CONNECT_S, metadata=[(name.lower(), value) for name, value in token.items()]
            )
    except grpc.RpcError as error:
        code = error.code()
        if code == grpc.StatusCode.UNAUTHENTICATED and is_token_mode:
            raise ClusterError(f"the Ray cluster at {address} refuses our token: {_HOW_TO_GIVE_A_TOKEN}") from None
        if code == grpc.StatusCode.UNAUTHENTICATED:
            raise ClusterError(
                f"the Ray cluster at {address} wants a token: set RAY_AUTH_MODE=token, and {_HOW_TO_GIVE_A_TOKEN}"
            ) from None
        if code == grpc.StatusCode.UNIMPLEMENTED:
            return  # Another version of Ray may have renamed the question; its own check tells.
        raise ClusterError(f"what answers at {address} is no head of a Ray cluster ({code.name.lower()})") from None
    named = re.search(rb"\x12.(\d+\.\d+\.\d+[\w.+]*)", answer)
    if named and named[1].decode() != ray.__version__:
        theirs = named[1].decode()
        raise ClusterError(
            f"the cluster at {address} runs Ray {theirs}, this program Ray {ray.__version__}: they must be the same"
        )


def _no_token() -> ClusterError:
    return ClusterError(f"RAY_AUTH_MODE is token, and there is no token: {_HOW_TO_GIVE_A_TOKEN}")
