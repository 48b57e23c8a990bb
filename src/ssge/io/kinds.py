"""What a file is, found from its first bytes; what cannot be read is told what it is and what to do."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Literal, TypeAlias

from ssge.errors import InputError
from ssge.io.sources import Unpacked

Kind: TypeAlias = Literal["folder", "parquet", "npz", "torch", "matrix market", "graphml", "gml", "json", "text"]

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


def kind_of(path: Path) -> Kind:
    """Return the kind of a file, from its first bytes, else from its ending. Pickles are refused."""
    if path.is_dir():
        return "folder"
    if not path.is_file():
        raise InputError(f"No such file: {path}.")
    endings = [suffix.lower() for suffix in path.suffixes]
    with Unpacked(path) as stream:
        head = stream.read(_HEAD)
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
    expected: dict[str, Kind] = {
        ".parquet": "parquet", ".npz": "npz", ".mtx": "matrix market", ".graphml": "graphml", ".pt": "torch"
    }  # fmt: skip
    for end in endings[-2:]:
        if end in expected:
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
    except Exception:  # its reader will say what is wrong
        names = []
    if any(name.startswith(("xl/", "Object ")) or name == "content.xml" for name in names):
        raise InputError(f"{path} is a spreadsheet (Excel or OpenDocument); save the sheet as CSV.")
    if ".pt" in endings or ".pth" in endings or any(name.endswith("/data.pkl") for name in names):
        return "torch"
    if names and not any(name.endswith(".npy") for name in names) and ".npz" not in endings:
        raise InputError(f"{path} is a zip archive; unpack it and give the file inside.")
    return "npz"
