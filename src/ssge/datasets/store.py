"""Raw files of datasets: found in a data folder, checked, and downloaded into the cache if absent."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from ssge.datasets.facts import Facts, File
from ssge.errors import InputError, one_line
from ssge.files import atomic, file_digest

log = logging.getLogger(__name__)

MOST_BYTES = 4 << 30
"""Largest download, and largest file in an archive."""

_CHUNK = 1 << 18
_TIMEOUT_SECONDS = 30


def cache_folder() -> Path:
    """Return the folder for downloads: ``SSGE_CACHE``, or ``ssge`` in ``XDG_CACHE_HOME`` or ``~/.cache``."""
    if own := os.environ.get("SSGE_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "ssge"


def obtain(facts: Facts, root: str | Path | None = None) -> dict[str, Path]:
    """Return the path of each file of a dataset by its name; all of them exist and have the right checksum.

    Parameters
    ----------
    facts
        The dataset.
    root
        The data folder, which is only read. Default: the environment variable ``SSGE_DATA``. Files that it lacks are
        taken from the cache folder, or downloaded into it.
    """
    given = root if root is not None else os.environ.get("SSGE_DATA")
    if facts.files and given and not Path(given).expanduser().is_dir():
        name = "root" if root is not None else "SSGE_DATA"
        raise InputError(f"{name} must be a folder that exists; received '{given}'.")
    folders = [*([Path(given).expanduser()] if given else []), cache_folder()]
    paths: dict[str, Path] = {}
    for file in facts.files:
        found = next((folder / file.path for folder in folders if (folder / file.path).is_file()), None)
        if found is not None:
            _verify(found, file, found)
            paths[file.name] = found
    missing = [file for file in facts.files if file.name not in paths]
    for url in dict.fromkeys(file.url for file in missing):
        wanted = [file for file in missing if file.url == url]
        try:
            _download(url, wanted, folders[-1], facts.title)
        except (OSError, zipfile.BadZipFile, zlib.error, KeyError) as error:
            absent = [file for file in missing if file.name not in paths]
            raise InputError(_what_to_do(facts, absent, paths, folders[0 if root else -1], error)) from error
        paths.update({file.name: folders[-1] / file.path for file in wanted})
    return paths


def _what_to_do(facts: Facts, absent: Sequence[File], found: dict[str, Path], folder: Path, error: Exception) -> str:
    reason = one_line(error)
    origin = {file: f"{file.member} in {file.url}" if file.member else file.url for file in absent}
    places = "; ".join(f"put {file.name} at {folder / file.path}, from {origin[file]}" for file in absent)
    rest = f" (found: {', '.join(sorted(found))})" if found else ""
    return f"{facts.title}: {len(absent)} file(s) missing and the download failed ({reason}): {places}{rest}."


def _download(url: str, wanted: Sequence[File], cache: Path, title: str) -> None:
    """Download a file, or an archive with several of them, into the cache."""
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    log.info("%s: downloading %s.", title, url)
    cache.mkdir(parents=True, exist_ok=True)
    progress = _Progress(f"{title}: {url}")
    with tempfile.TemporaryDirectory(prefix=".download-", dir=cache) as folder:
        downloader = pooch.HTTPDownloader(
            progressbar=progress, chunk_size=_CHUNK, timeout=_TIMEOUT_SECONDS, hooks={"response": refuse_downgrade}
        )
        with progress.bar:
            received = pooch.retrieve(url, None, fname="download", path=folder, downloader=downloader)
        for file in wanted:
            content, origin = Path(received), url
            if file.member is not None:
                with zipfile.ZipFile(received) as archive:
                    if (size := archive.getinfo(file.member).file_size) > MOST_BYTES:
                        raise OSError(f"{file.member} has {size:,} bytes, allowed are {MOST_BYTES:,}")
                    content, origin = Path(archive.extract(file.member, folder)), f"{file.member} in {url}"
            _verify(content, file, origin)
            with atomic(cache / file.path) as temporary:
                shutil.copyfile(content, temporary)


def refuse_downgrade(response: Any, *_: Any, **__: Any) -> None:
    """Refuse a redirect from https to anything else; a hook of requests, called before a redirect is followed."""
    if response.is_redirect and urlsplit(response.url).scheme == "https":
        target = urljoin(response.url, response.headers["location"])
        if urlsplit(target).scheme != "https":
            raise OSError(f"{response.url} leads to {target}, which is not https")


class _Progress:
    """The progress that pooch reports: shown on a terminal; more than `MOST_BYTES` are an error."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        hidden = not sys.stderr.isatty()
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden)
        self.total, self._received, self._task = 0, 0, self.bar.add_task(label, total=None)

    def update(self, size: int) -> None:
        self._received += size
        if max(self.total, self._received - _CHUNK) > MOST_BYTES:  # pooch counts the last chunk as a full one
            raise OSError(f"more than {MOST_BYTES:,} bytes")
        self.bar.update(self._task, total=self.total or None, completed=self._received)

    def reset(self) -> None:
        self._received = 0

    def close(self) -> None:
        self.bar.stop()


def _verify(path: Path, file: File, where: Path | str) -> None:
    if file.sha256 is not None and (received := file_digest(path)) != file.sha256:
        raise InputError(f"{file.name}: wrong checksum of {where}; expected sha256 {file.sha256}, received {received}.")
