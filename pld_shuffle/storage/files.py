"""Writing files: all of a file or nothing of it.

The content goes into a temporary file of the same directory, is flushed to the disk, and takes the place of
the old file in one step (`os.replace`, atomic on POSIX and on Windows). So whoever reads sees the old
content or the new, and neither a crash nor a full disk spoils what was there.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file to write into; it becomes `path` if the block ends without an exception.

    Links are followed, the permissions of an existing file are kept. Raises OSError if the directory
    cannot be written, ValueError if `path` is there and no regular file.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"path must be a regular file, got {os.fspath(path)!r}")
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(prefix=f".{target.stem}-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8, with its line ends as they are, all of it or nothing."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


def _umask() -> int:
    umask = os.umask(0o022)
    os.umask(umask)
    return umask
