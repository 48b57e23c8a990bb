"""Files that are whole or not there: every write goes to a temporary neighbor first."""

from __future__ import annotations

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
    # The suffix stays last because some writers choose their format by it.
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
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


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
