"""A cluster that cannot be joined: each case its own sentence, within seconds; the heads are played by the tests."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("ray")
import grpc
import ray
from ray._private.utils import check_version_info
from ray.exceptions import AuthenticationError

from cluster import ray_connection
from cluster.ray_connection import LOCAL, connect
from cluster.ray_errors import ClusterError

TOKEN = "a" * 64
ASK_FOR_TOKEN = "RAY_AUTH_TOKEN to it, or copy the cluster's ~/.ray/auth_token here"


class Loader:
    """Has a token, or none."""

    def __init__(self, token: str) -> None:
        self.token = token

    def instance(self) -> Loader:
        return self

    def get_token_for_http_header(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


class Head(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers as a head of Ray does: alive, and of which version; only who has its token gets an answer."""

    def __init__(self, version: str, token: str) -> None:
        self.version, self.token = version.encode(), token

    def service(self, details: Any) -> Any:
        assert details.method == "/ray.rpc.NodeInfoGcsService/CheckAlive"

        def answer(_message: bytes, context: Any) -> bytes:
            sent = dict(context.invocation_metadata()).get("authorization")
            if self.token and sent != f"Bearer {self.token}":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "InvalidAuthToken")
            return b"\n\x00\x12" + bytes([len(self.version)]) + self.version + b" \x01"

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
def start_head() -> Iterator[Callable[[str, str], str]]:
    """Return a function that starts a head and returns its address."""
    servers: list[Any] = []

    def start(version: str = ray.__version__, token: str = "") -> str:
        server = grpc.server(ThreadPoolExecutor(2), handlers=[Head(version, token)])
        servers.append(server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(None).wait()


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the addresses that Ray itself is asked to join: none is."""
    addresses: list[str] = []
    monkeypatch.setattr(ray, "init", lambda address, **_options: addresses.append(address))
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    return addresses


def have_token(monkeypatch: pytest.MonkeyPatch, token: str | None) -> None:
    """Have a token; None: the mode is off."""
    monkeypatch.setattr(ray_connection, "is_token_auth_enabled", lambda: token is not None)
    monkeypatch.setattr(ray_connection._raylet, "AuthenticationTokenLoader", Loader(token or ""))


def refusal(address: str) -> str:
    begun = time.monotonic()
    with pytest.raises(ClusterError) as caught:
        connect(address, None)
    assert time.monotonic() - begun < 10
    return str(caught.value)


@pytest.mark.parametrize(("wanted", "ours"), [("", None), ("", TOKEN), (TOKEN, TOKEN)])
def test_who_has_what_the_head_wants_joins(
    wanted: str, ours: str | None, start_head: Callable[..., str], joined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    have_token(monkeypatch, ours)
    address = start_head(token=wanted)
    connect(address, None)
    assert joined == [address]


@pytest.mark.parametrize(
    ("ours", "sentence"),
    [
        (None, "the Ray cluster at {} wants a token: set RAY_AUTH_MODE=token, and set " + ASK_FOR_TOKEN),
        ("b" * 64, "the Ray cluster at {} refuses our token: set " + ASK_FOR_TOKEN),
        ("", "RAY_AUTH_MODE is token, and there is no token: set " + ASK_FOR_TOKEN),
    ],
)
def test_a_token_that_is_missing_or_wrong(
    ours: str | None,
    sentence: str,
    start_head: Callable[..., str],
    joined: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    have_token(monkeypatch, ours)
    address = start_head(token=TOKEN)
    assert refusal(address) == sentence.format(address)
    assert joined == []


def test_another_version_of_ray(
    start_head: Callable[..., str], joined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    have_token(monkeypatch, None)
    address = start_head(version="2.51.0")
    wanted = f"the cluster at {address} runs Ray 2.51.0, this program Ray {ray.__version__}: they must be the same"
    assert refusal(address) == wanted
    assert joined == []


def test_another_python_is_what_ray_itself_refuses(
    start_head: Callable[..., str], joined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    have_token(monkeypatch, None)

    def init(address: str, **_options: Any) -> None:
        check_version_info({"ray_version": ray.__version__, "python_version": "3.8.1"}, address)

    monkeypatch.setattr(ray, "init", init)
    sentence = refusal(start_head())
    assert f"runs Ray {ray.__version__} and Python 3.8.1, this program Ray {ray.__version__} and Python 3." in sentence


def test_somebody_else_listens(joined: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    have_token(monkeypatch, None)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert refusal(address).startswith(f"what answers at {address} is no head of a Ray cluster (")
    assert joined == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            NotADirectoryError(20, "Not a directory", "/dev/null/.ray"),
            "Ray cannot write /dev/null/.ray (Not a directory)",
        ),
        (PermissionError(13, "Permission denied", "/root/.ray"), "Ray cannot write /root/.ray (Permission denied)"),
        (AuthenticationError("no token"), "RAY_AUTH_MODE is token, and there is no token"),
        (RuntimeError("no room\nat all"), "a private Ray cannot be started: no room"),
    ],
)
def test_a_private_ray_that_does_not_start(
    error: Exception, sentence: str, joined: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_options: Any) -> None:
        raise error

    monkeypatch.setattr(ray, "init", init)
    assert refusal(LOCAL).startswith(sentence)
