"""Files as bytes: unpacked while they are read, up to a limit, with their kind found from their content."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from ssge.errors import InputError

LIMIT = 16 << 30
"""Bytes that a file may unpack to, 16 GiB; ``limit`` raises it."""

Kind: TypeAlias = Literal["folder", "parquet", "npz", "torch", "matrix market", "graphml", "gml", "text"]

_HEAD = 1 << 12
_PICKLES = (".pkl", ".pickle", ".gpickle", ".p")
_JSON = (".json", ".jsonl", ".ndjson")
_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_GML = re.compile(rb"\s*(?:(?:#|Creator\b|Version\b|comment\b)[^\n]*\n\s*)*graph\s*\[", re.IGNORECASE)
_READABLE = (
    "CSV, TSV, Parquet, npz, Matrix Market, GraphML, GML, PyG .pt, each also packed with gzip or zstd where text"
)


def one_line(error: BaseException, most: int = 200) -> str:
    """Return the message of an error of another library, on one line and not too long."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= most else text[:most] + "..."


def shown(value: Any, most: int = 60) -> str:
    """Return the repr of a value, not too long for a message."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= most else text[:most] + "..."


def too_large(path: Path | str, what: str, limit: int) -> InputError:
    """Return the error for a file that needs more memory than the limit allows."""
    return InputError(f"{path} {what}, more than limit={limit:,} bytes; a larger limit=... lets it through.")


class Unpacked(io.RawIOBase):
    """The bytes of a file, decompressed if it is gzip or zstd; more than ``limit`` of them are an error.

    Parameters
    ----------
    path
        The file; errors name it.
    limit
        Most bytes to return.
    skip
        Bytes to pass over at the beginning.
    """

    def __init__(self, path: Path, limit: int = LIMIT, skip: int = 0) -> None:
        import pyarrow as pa

        super().__init__()
        self.path, self.limit, self.count = path, limit, 0
        try:
            raw = pa.OSFile(str(path))
        except OSError as error:
            raise InputError(f"{path} cannot be opened: {error.strerror or one_line(error)}.") from None
        first = raw.read(4)
        raw.seek(0)
        codec = next((name for magic, name in _CODECS.items() if first.startswith(magic)), None)
        self._packed = codec
        self._stream = pa.CompressedInputStream(raw, codec) if codec else raw
        while skip > 0:
            skip -= len(self.read(min(skip, 1 << 20)))

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, all of them without a size."""
        try:
            found = self._stream.read(self.limit - self.count + 1 if size < 0 else size)
        except OSError as error:
            what = f"{self._packed or 'content'} cannot be read ({one_line(error)})"
            raise InputError(f"{self.path} is damaged or cut off: its {what}.") from None
        self.count += len(found)
        if self.count > self.limit:
            raise too_large(self.path, "unpacks to too much" if self._packed else "is too large", self.limit)
        return bytes(found)

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._stream.close()
        super().close()


def content(path: Path, limit: int) -> bytes:
    """Return all bytes of a file, unpacked."""
    with Unpacked(path, limit) as stream:
        return stream.read()


def kind_of(path: Path) -> Kind:
    """Return the kind of a file, from its first bytes, else from its ending. Pickles are refused."""
    if path.is_dir():
        return "folder"
    if not path.is_file():
        raise InputError(f"No such file: {path}.")
    endings = [suffix.lower() for suffix in path.suffixes]
    with Unpacked(path) as stream:
        head = stream.read(_HEAD)
    pickled = len(head) > 1 and head[0] == 0x80 and head[1] <= 5
    if pickled or any(end in _PICKLES for end in endings[-2:]):
        raise InputError(f"{path} is a pickle, which could run any program when opened; save the graph as {_READABLE}.")
    if not head.strip():
        raise InputError(f"{path} is empty.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"PK\x03\x04"):
        return "torch" if ".pt" in endings or ".pth" in endings or b"/data.pkl" in head else "npz"
    if head.startswith(b"%%MatrixMarket"):
        return "matrix market"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"<?xml", b"<graphml", b"<!--")):
        return "graphml"
    if any(end in _JSON for end in endings[-2:]) and start.startswith((b"{", b"[")):
        raise InputError(
            f"{path} is JSON, which is not read; turn it into a table (pandas.read_json(...).to_csv(...)) or pass "
            "the graph that networkx.node_link_graph makes of it."
        )
    if ".gml" in endings or _GML.match(start):
        return "gml"
    expected: dict[str, Kind] = {
        ".parquet": "parquet", ".npz": "npz", ".mtx": "matrix market", ".graphml": "graphml", ".pt": "torch"
    }  # fmt: skip
    for end in endings[-2:]:
        if end in expected:
            raise InputError(f"{path} ends in {end} but does not begin like such a file; it is damaged or misnamed.")
    if b"\0" in head:
        raise InputError(f"{path} holds bytes of no format that can be read: {_READABLE}.")
    return "text"
