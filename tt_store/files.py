"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def written_aside(path: Path) -> Iterator[BinaryIO]:
    """Open a new file beside a path, and put it in its place when the block ends well; else nothing has changed.

    Its mode follows the umask; a symbolic link at the path is replaced, not followed.

    Parameters
    ----------
    path
        Where the file is to be; what is there is replaced.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"
    with temporary.open("xb") as file, contextlib.ExitStack() as on_failure:
        on_failure.callback(temporary.unlink, missing_ok=True)
        yield file
        file.flush()
        os.fsync(file.fileno())
        temporary.replace(path)
        on_failure.pop_all()
