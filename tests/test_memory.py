"""How much memory there is, by the system and by control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt_store import memory
from tt_store.errors import TableError
from tt_store.memory import available_bytes


def write_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


GROUP_2 = "sys/fs/cgroup/pod/work"
GROUP_1 = "sys/fs/cgroup/memory"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 1 << 47),
        ({"proc/meminfo": "MemFree: 9 kB\nMemAvailable:   500 kB\n"}, 500 * 1024),
        ({"proc/self/cgroup": "0::/pod/work\n", f"{GROUP_2}/memory.max": "max\n"}, 1 << 47),
        (
            {
                "proc/meminfo": "MemAvailable: 500 kB\n",
                "proc/self/cgroup": "0::/pod/work\n",
                f"{GROUP_2}/memory.max": "max\n",
                f"{GROUP_2}/memory.current": "9\n",
                "sys/fs/cgroup/pod/memory.max": "3000\n",
                "sys/fs/cgroup/pod/memory.current": "2500\n",
                "sys/fs/cgroup/pod/memory.stat": "anon 1\ninactive_file 400\n",
            },
            900,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu:/x\n4:memory:/docker/on-the-host\n",
                f"{GROUP_1}/memory.limit_in_bytes": "7000\n",
                f"{GROUP_1}/memory.usage_in_bytes": "8000\n",
                f"{GROUP_1}/memory.stat": "inactive_file 1\ntotal_inactive_file 1500\n",
            },
            500,
        ),
    ],
)
def test_available_memory(files: dict[str, str], expected: int, tmp_path: Path) -> None:
    write_tree(tmp_path, files)
    assert available_bytes(tmp_path) == expected


def test_what_fits_is_a_share_of_memory_and_of_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000 << 20)
    monkeypatch.setattr(memory, "free_bytes", lambda _directory: 64 << 20)
    assert memory.fitting_mb() == 600
    assert memory.fitting_mb(tmp_path) == 57
    monkeypatch.setattr(memory, "free_bytes", lambda _directory: 1 << 20)
    with pytest.raises(TableError, match=r"^no table fits: 921 kB may be used, or enlarge it .*emptyDir"):
        memory.fitting_mb(memory.SHARED_MEMORY)
