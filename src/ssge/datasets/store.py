"""Where raw files lie: found in a data folder, checked, and downloaded into the cache if absent."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import sys
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from ssge.datasets.facts import Facts, File
from ssge.errors import InputError
from ssge.files import atomic

log = logging.getLogger(__name__)

_CHUNK = 1 << 18
_TIMEOUT_SECONDS = 30


def cache_folder() -> Path:
    """Return the folder for downloads: ``SSGE_CACHE``, or ``ssge`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    if own := os.environ.get("SSGE_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "ssge"


def obtain(facts: Facts, root: str | Path | None = None) -> dict[str, Path]:
    """Return the path of each file of a dataset by its name, all of them there and checked.

    Parameters
    ----------
    facts
        The dataset.
    root
        The data folder; None stands for the environment variable ``SSGE_DATA``. What is not there is looked
        for in the cache folder, and downloaded into it if need be; the data folder itself is never written
        to.
    """
    given = root if root is not None else os.environ.get("SSGE_DATA")
    if facts.files and given and not Path(given).expanduser().is_dir():
        name = "root" if root is not None else "SSGE_DATA"
        raise InputError(f"{name} must be a folder that exists; received '{given}'.")
    folders = [Path(given).expanduser()] if given else []
    folders.append(cache_folder())
    paths: dict[str, Path] = {}
    missing: list[File] = []
    for file in facts.files:
        found = next((folder / file.path for folder in folders if (folder / file.path).is_file()), None)
        if found is None:
            missing.append(file)
        else:
            _verify(found, file, found)
            paths[file.name] = found
    for urls in dict.fromkeys(file.urls for file in missing):
        wanted = [file for file in missing if file.urls == urls]
        try:
            _download(urls, wanted, folders[-1], facts.title)
        except (OSError, HTTPException, zipfile.BadZipFile, zlib.error, KeyError) as error:
            raise InputError(_what_to_do(facts, missing, paths, folders[0 if root else -1], error)) from error
        paths.update({file.name: folders[-1] / file.path for file in wanted})
    return paths


def _what_to_do(facts: Facts, missing: Sequence[File], found: dict[str, Path], folder: Path, error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    # What came down before the failure is no longer missing.
    absent = [file for file in missing if file.name not in found]
    origin = {file: f"{file.member} in {file.urls[0]}" if file.member else file.urls[0] for file in absent}
    places = "; ".join(f"put {file.name} at {folder / file.path}, from {origin[file]}" for file in absent)
    rest = f" (found: {', '.join(sorted(found))})" if found else ""
    return f"{facts.title}: {len(absent)} file(s) missing and the download failed ({reason}): {places}{rest}."


def _download(urls: Sequence[str], wanted: Sequence[File], cache: Path, title: str) -> None:
    """Fetch what one address offers: a file, or an archive with several."""
    if wanted[0].member is None:
        for file in wanted:
            with atomic(cache / file.path) as temporary:
                url = _receive_first(urls, temporary, title)
                _verify(temporary, file, url)
        return
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=cache) as folder:
        archive = Path(folder) / "archive.zip"
        url = _receive_first(urls, archive, title)
        with zipfile.ZipFile(archive) as content:
            for file in wanted:
                with (
                    atomic(cache / file.path) as temporary,
                    content.open(file.member or "") as source,
                    temporary.open("wb") as target,
                ):
                    shutil.copyfileobj(source, target, _CHUNK)
                    target.flush()
                    _verify(temporary, file, f"{file.member} in {url}")


def _receive_first(urls: Sequence[str], target: Path, title: str) -> str:
    """Fetch from the first address that works, and say which it was."""
    for url in urls:
        try:
            _receive(url, target, title)
        except (OSError, HTTPException) as error:
            if url == urls[-1]:
                raise
            log.info("%s: %s failed (%s), trying the next address.", title, url, error)
        else:
            return url
    raise OSError("no address is known")


def _receive(url: str, target: Path, title: str) -> None:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response, target.open("wb") as file:
        promised = response.headers.get("Content-Length")
        total = int(promised) if promised and promised.isdigit() else None
        with _progress(f"{title}: {url}", total) as advance:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                advance(len(chunk))
        # http.client takes a connection that breaks off for the end of the file.
        if total is not None and file.tell() != total:
            raise OSError(f"the connection broke off after {file.tell():,} of {total:,} bytes")


@contextmanager
def _progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty():
        log.info("%s: downloading%s.", label, f" {total:,} bytes" if total else "")
        yield lambda _: None
        log.info("%s: received.", label)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda size: bar.advance(task, size)


def _verify(path: Path, file: File, where: Path | str) -> None:
    if file.sha256 is None:
        return
    with path.open("rb") as content:
        received = hashlib.file_digest(content, "sha256").hexdigest()
    if received != file.sha256:
        raise InputError(f"{file.name}: wrong checksum of {where}; expected sha256 {file.sha256}, received {received}.")
