"""How a run's folder changes: by one writer at a time, all at once, and never at the cost of somebody's files.

Written by hand because no library combines these three: a lock that dies with its process, a working folder that is
swapped in at the end, and checksums of what was written.

A run works in the hidden folder ``.run`` inside its own. When all files are there, ``.run/new`` becomes ``.run/ready``
in one rename, and the files move up. A process that dies before the rename leaves the old run whole; one that dies
after it leaves a move that the next reader completes. At last ``.run`` becomes ``.run-gone`` in one rename, and that is
removed: what a killed process leaves of it is no run to resume. ``SHA256SUMS`` lists the files of a complete run, as
``sha256sum`` writes it; a folder without it belongs to somebody else.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from ssge.errors import InputError
from ssge.files import file_digest, sync

SUMS = "SHA256SUMS"
WORK, GONE = ".run", ".run-gone"
_LINE = re.compile(r"([0-9a-f]{64})  (\w[\w.-]*)", re.ASCII)
"""A checksum and the name of a file in the folder itself: files that the sums list may be replaced and removed."""
_MOST_LINES = 100


def checksums(folder: Path) -> dict[str, str]:
    """Return the checksum of each file of a complete run by its name; empty for a folder that is none."""
    try:
        with (folder / SUMS).open(encoding="utf-8") as file:
            lines = [_LINE.fullmatch(line.rstrip("\n")) for line in itertools.islice(file, _MOST_LINES)]
    except (OSError, UnicodeDecodeError):
        return {}
    return {line[2]: line[1] for line in lines if line} if all(lines) else {}


def verify(folder: Path, name: str) -> None:
    """Refuse a file that is not as it was written."""
    path = folder / name
    if not path.is_file():
        raise InputError(f"{folder} is not a complete run: {name} is missing.")
    if checksums(folder).get(name) != file_digest(path):
        raise InputError(f"{path} was damaged or changed after it was written: its checksum is not that in {SUMS}.")


def refuse_file_of_run(path: Path) -> None:
    """Refuse to replace a file of a run by another command's result."""
    if path.name in checksums(path.absolute().parent):
        raise InputError(f"{path} is a file of the run in that folder; choose another name.")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder as its only writer; the lock is the operating system's, so it dies with the process."""
    work = folder / WORK
    path = work / "lock"
    just_now = InputError(f"{folder} was written by another process just now.")
    try:
        work.mkdir(parents=True, exist_ok=True)
        lock = _opened(path)
    except FileNotFoundError:  # it has removed the folder between the two lines
        raise just_now from None
    with lock as file:
        if not _acquire(file):
            file.seek(0)
            raise InputError(f"{folder} is being written by {file.read().strip() or 'another process'}.")
        if not _is_at(path, file):  # it has removed its lock
            raise just_now
        now = datetime.now(UTC).isoformat(timespec="seconds")
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()}, started {now}\n")
        file.flush()
        shutil.rmtree(work / "new", ignore_errors=True)  # of a process that died
        try:
            yield
        finally:
            if _is_at(path, file) and {entry.name for entry in work.iterdir()} <= {"lock", "new"}:
                _discard(folder)  # nothing to resume


def publish(folder: Path, kept: dict[str, str] | None = None) -> None:
    """Make the files in ``.run/new`` the files of the run; of the run before only ``kept`` (name: checksum) stays."""
    new = folder / WORK / "new"
    sums = {path.name: file_digest(path) for path in new.iterdir()}
    lines = [f"{digest}  {name}\n" for name, digest in sorted(((kept or {}) | sums).items())]
    (new / SUMS).write_text("".join(lines), "utf-8")
    for path in [*new.iterdir(), new]:
        sync(path)
    new.rename(folder / WORK / "ready")
    sync(folder / WORK)
    complete(folder)


def settle(folder: Path) -> None:
    """Complete what a killed process had published, and remove what it has left."""
    if (folder / WORK / "ready").is_dir() or (folder / GONE).is_dir():
        with locked(folder):
            complete(folder)


def complete(folder: Path) -> None:
    """Move published files up, also those that a killed process has left behind, and remove the working folder."""
    ready = folder / WORK / "ready"
    if names := checksums(ready):
        for outdated in checksums(folder).keys() - names.keys():
            (folder / outdated).unlink(missing_ok=True)
        for name in [*names, SUMS]:  # the sums last: they make the run complete
            if (ready / name).exists():
                (ready / name).replace(folder / name)
        sync(folder)
    elif not checksums(folder) or not ready.is_dir() or any(ready.iterdir()):
        return  # else all has been moved up
    _discard(folder)


def _discard(folder: Path) -> None:
    """Remove the working folder, and what a killed process has left of another."""
    shutil.rmtree(folder / GONE, ignore_errors=True)
    work = folder / WORK
    with suppress(OSError):  # Windows does not move a folder with an open file
        work = work.rename(folder / GONE)
    shutil.rmtree(work, ignore_errors=True)


def renew(folder: Path, contents: dict[str, str]) -> None:
    """Replace some text files of a complete run, all or none of them."""
    with locked(folder):
        for name, text in contents.items():
            staged(folder, name).write_text(text, "utf-8")
        publish(folder, {name: digest for name, digest in checksums(folder).items() if name not in contents})


def staged(folder: Path, name: str) -> Path:
    """Return where to write a file that `publish` will make part of the run."""
    new = folder / WORK / "new"
    new.mkdir(parents=True, exist_ok=True)
    return new / name


def _opened(path: Path) -> IO[str]:
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+", encoding="utf-8")


def _is_at(path: Path, file: IO[str]) -> bool:
    """Say whether an open file is still the one at a path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _acquire(file: IO[str]) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows: only the marker of another living process is missing
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
