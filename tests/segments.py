"""What the tests of segments share: names, children that hold a segment, patches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tt_store.segment import (
    Segment,
)

REPOSITORY = Path(__file__).parents[1]
NO_PID = 2**22 + 1
"""Above the largest pid that Linux gives out."""


def own_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def own_start_ticks() -> int:
    return int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19])


def file_name(pid: int, start_ticks: int, namespace: int | None = None, suffix: str = "") -> str:
    namespace = own_namespace() if namespace is None else namespace
    return f"rootsplit-{os.getuid()}-{pid}-{start_ticks}-{namespace}-test-00ff{suffix}"


def patch(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def segment_path(segment: Segment) -> Path:
    assert segment.path is not None
    return segment.path


def is_one_sentence(error: BaseException) -> bool:
    return "\n" not in str(error) and len(str(error)) > 20


def create_in_child(directory: Path, then: str) -> subprocess.Popen[str]:
    """Start a process that creates a segment, prints its path, and goes on with some code."""
    code = (
        "import os, signal, sys, time\nfrom pathlib import Path\nfrom tt_store import segment\n"
        f"made = segment.Segment.create(0.01, directory=Path({str(directory)!r}), label='child')\n"
        f"print(made.path, flush=True)\n{then}\n"
    )
    return subprocess.Popen([sys.executable, "-c", code], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
