"""Files that are whole or not there: every write goes to a temporary neighbor first."""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` that takes its place when the block ends well, and is removed otherwise.

    Examples
    --------
    >>> with atomic(Path("record.json")) as temporary:  # doctest: +SKIP
    ...     temporary.write_text("{}")
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in left_behind(path):
        left.unlink(missing_ok=True)
    # The suffix stays last because some writers choose their format by it.
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-{os.getpid()}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def left_behind(path: Path) -> Iterator[Path]:
    """Yield temporary neighbors of a path that a process left behind when it was killed."""
    from psutil import pid_exists

    for left in path.parent.glob(f".{glob.escape(path.stem)}-*-*{glob.escape(path.suffix)}"):
        process = left.name.removeprefix(f".{path.stem}-").partition("-")[0]
        if process.isdecimal() and not pid_exists(int(process)):
            yield left


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some file systems have no such thing for folders
        pass
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
