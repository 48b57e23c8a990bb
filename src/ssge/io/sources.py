"""Files as bytes: what they hold, found from the first ones; unpacked while they are read, up to a limit."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from ssge.errors import InputError, one_line

Kind: TypeAlias = Literal["folder", "parquet", "npz", "torch", "matrix market", "graphml", "gml", "json", "text"]

LIMIT = 16 << 30
"""Bytes that a file may unpack to, 16 GiB; ``limit`` raises it."""

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_BLOCK = 1 << 20
_PACKED_TEXT = 200
_PACKED_ARRAYS = 1_000
_ALWAYS_UNPACKED = 1 << 28
_HEAD = 1 << 12
_PICKLES = (".pkl", ".pickle", ".gpickle", ".p")
_JSON = (".json", ".jsonl", ".ndjson")
_GML = re.compile(rb"\s*(?:(?:#|Creator\b|Version\b|comment\b)[^\n]*\n\s*)*graph\s*\[", re.IGNORECASE)
_READABLE = (
    "CSV, TSV, Parquet, npz, Matrix Market, GraphML, GML, PyG .pt, each also packed with gzip or zstd where text"
)
_OTHERS = {
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Excel workbook; save the sheet as CSV",
    b"BZh": "packed with bzip2; unpack it, or pack it with gzip or zstd",
    b"\xfd7zXZ\0": "packed with xz; unpack it, or pack it with gzip or zstd",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it and give the file inside",
    b"Rar!": "a RAR archive; unpack it and give the file inside",
    b"SQLite format 3\0": "an SQLite database; export its tables as CSV",
    b"\x89HDF\r\n\x1a\n": "HDF5; export its tables as Parquet or CSV",
    b"ARROW1": "Arrow or Feather; write it as Parquet (pyarrow.parquet.write_table)",
    b"\x93NUMPY": "one NumPy array; save the graph as .npz (scipy.sparse.save_npz) or as a table",
    b"%PDF": "a PDF; give the table itself, as CSV",
}


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Say in one line what is wrong with a file: damaged ones fail in as many ways as the libraries that read them."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{what}: {one_line(error)}") from None


@contextmanager
def errors_of(where: Path | str) -> Iterator[None]:
    """Name the source in errors of the validator."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def too_large(path: Path | str, what: str, limit: int) -> InputError:
    """Return the error for a file that needs more memory than the limit allows."""
    return InputError(f"{path} {what}, more than limit={limit:,} bytes; a larger limit=... lets it through.")


def refuse_unpacking(path: Path | str, size: int, packed: int, limit: int, ratio: int = _PACKED_ARRAYS) -> None:
    """Refuse what unpacks to more than the limit, or to more than real data does: ``ratio`` times its size."""
    if size > limit:
        raise too_large(path, f"unpacks to {size:,} bytes or more", limit)
    if size > max(_ALWAYS_UNPACKED, ratio * packed):
        raise InputError(
            f"{path} unpacks to more than {ratio} times its {packed:,} bytes, as files do that are made to fill the "
            "memory; unpack it yourself if it is sound."
        )


def unpacked(path: Path, limit: int = LIMIT, skip: int = 0, size: int = _BLOCK) -> Iterator[bytes]:
    """Yield the bytes of a file in blocks, decompressed if it is gzip or zstd; too many of them are an error.

    Never hand these bytes to Arrow: its threads go on after an error, and one that frees a Python object while Python
    exits ends the process with "terminate called without an active exception" and exit code 134. `arrow_source` and
    `in_memory` are for Arrow.

    Parameters
    ----------
    path
        The file; errors name it.
    limit
        Most bytes to return.
    skip
        Bytes to leave out at the beginning.
    size
        Most bytes of a block.
    """
    raw, codec = _opened(path)
    packed, count = raw.size(), 0
    with pa.CompressedInputStream(raw, codec) if codec else raw as stream:
        while True:
            try:
                block = stream.read(size)
            except OSError as error:
                what = f"{codec or 'content'} cannot be read ({one_line(error)})"
                raise InputError(f"{path} is damaged or cut off: its {what}.") from None
            if not block:
                return
            count += len(block)
            if codec:
                refuse_unpacking(path, count, packed, limit, _PACKED_TEXT)
            elif count > limit:
                raise too_large(path, "is too large", limit)
            if count > skip:
                yield block[max(0, skip - count + len(block)) :]


def arrow_source(path: Path, limit: int, skip: int = 0) -> Any:
    """Return the bytes of a file after the first ones for Arrow to read: from the file, or unpacked in memory."""
    raw, codec = _opened(path)
    if codec:
        return in_memory(unpacked(path, limit, skip))
    if raw.size() > limit:
        raise too_large(path, "is too large", limit)
    raw.seek(skip)
    return raw


def in_memory(blocks: Iterable[bytes]) -> Any:
    """Return blocks of bytes as one file in memory of Arrow, which its threads may free at any time."""
    sink = pa.BufferOutputStream()
    for block in blocks:
        sink.write(block)
    return pa.BufferReader(sink.getvalue())


def _opened(path: Path) -> tuple[Any, str | None]:
    """Open a file for Arrow; return it and its compression, if any."""
    try:
        raw = pa.OSFile(str(path))
        first = raw.read(4)
        raw.seek(0)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be opened: {getattr(error, 'strerror', None) or one_line(error)}.") from None
    return raw, next((name for magic, name in CODECS.items() if first.startswith(magic)), None)


def kind_of(path: Path) -> Kind:
    """Return the kind of a file, from its first bytes, else from its ending. Pickles are refused."""
    if path.is_dir():
        return "folder"
    if not path.is_file():
        raise InputError(f"No such file: {path}.")
    endings = [suffix.lower() for suffix in path.suffixes]
    head = next(unpacked(path, size=_HEAD), b"")
    if other := next((what for magic, what in _OTHERS.items() if head.startswith(magic)), None):
        raise InputError(f"{path} is {other}.")
    pickled = len(head) > 1 and head[0] == 0x80 and head[1] <= 5
    if pickled or any(end in _PICKLES for end in endings[-2:]):
        raise InputError(f"{path} is a pickle, which could run any program when opened; save the graph as {_READABLE}.")
    if not head.strip():
        raise InputError(f"{path} is empty.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_zip(path, endings)
    if head.startswith(b"%%MatrixMarket"):
        return "matrix market"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"<?xml", b"<graphml", b"<!--")):
        return "graphml"
    if any(end in _JSON for end in endings[-2:]) and start.startswith((b"{", b"[")):
        return "json"
    if start.startswith((b'{"', b'[{"')):  # by another name; as text it would give nodes such as [{"source": 1
        return "json"
    if ".gml" in endings or _GML.match(start):
        return "gml"
    if end := next((end for end in endings[-2:] if end in (".parquet", ".npz", ".mtx", ".graphml", ".pt")), None):
        raise InputError(f"{path} ends in {end} but does not begin like such a file; it is damaged or misnamed.")
    if b"\0" in head:
        # Every second byte of UTF-16 without a mark is zero where the text is mostly ASCII.
        zeros = max(head[0::2].count(0), head[1::2].count(0))
        if 3 * zeros > len(head):
            raise InputError(f"{path} is UTF-16 text without a mark; save it as UTF-8.")
        raise InputError(f"{path} holds bytes of no format that can be read: {_READABLE}.")
    return "text"


def _kind_of_zip(path: Path, endings: list[str]) -> Kind:
    """Return which of the formats that are zip archives inside a file is."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception:  # the reader of npz files reports what is wrong
        names = []
    if any(name.startswith(("xl/", "Object ")) or name == "content.xml" for name in names):
        raise InputError(f"{path} is a spreadsheet (Excel or OpenDocument); save the sheet as CSV.")
    if ".pt" in endings or ".pth" in endings or any(name.endswith("/data.pkl") for name in names):
        return "torch"
    if names and not any(name.endswith(".npy") for name in names) and ".npz" not in endings:
        raise InputError(f"{path} is a zip archive; unpack it and give the file inside.")
    return "npz"
