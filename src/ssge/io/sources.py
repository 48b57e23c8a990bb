"""Files as bytes: unpacked while they are read, up to a limit."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ssge.errors import InputError, one_line

LIMIT = 16 << 30
"""Bytes that a file may unpack to, 16 GiB; ``limit`` raises it."""

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_BLOCK = 1 << 20
_PACKED_TEXT = 200
_PACKED_ARRAYS = 1_000
_ALWAYS_UNPACKED = 1 << 28


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


class Unpacked(io.RawIOBase):
    """The bytes of a file, decompressed if it is gzip or zstd; too many of them are an error.

    Never hand it to Arrow, nor bytes of Python: its threads go on after an error, and one that lets go of a Python
    object while Python exits ends the process with "terminate called without an active exception" and exit code 134.
    `arrow_source` and `in_memory` are for Arrow.

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
        raw = open_raw(path)
        self._size = raw.size()
        first = raw.read(4)
        raw.seek(0)
        self.codec = next((name for magic, name in CODECS.items() if first.startswith(magic)), None)
        self._stream = pa.CompressedInputStream(raw, self.codec) if self.codec else raw
        while skip > 0:
            found = len(Unpacked.read(self, min(skip, _BLOCK)))
            skip = skip - found if found else 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, all of them without a size."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_BLOCK), b""))
        try:
            found = self._stream.read(size)
        except OSError as error:
            what = f"{self.codec or 'content'} cannot be read ({one_line(error)})"
            raise InputError(f"{self.path} is damaged or cut off: its {what}.") from None
        self.count += len(found)
        if self.codec:
            refuse_unpacking(self.path, self.count, self._size, self.limit, _PACKED_TEXT)
        elif self.count > self.limit:
            raise too_large(self.path, "is too large", self.limit)
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


def open_raw(path: Path) -> Any:
    """Open a file for Arrow."""
    import pyarrow as pa

    try:
        return pa.OSFile(str(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be opened: {getattr(error, 'strerror', None) or one_line(error)}.") from None


def arrow_source(path: Path, limit: int, skip: int = 0) -> Any:
    """Return the bytes of a file after the first ones for Arrow to read: from the file, or unpacked in memory."""
    with Unpacked(path, limit) as stream:
        if stream.codec:
            return in_memory(stream, skip)
    raw = open_raw(path)
    if raw.size() > limit:
        raise too_large(path, "is too large", limit)
    raw.seek(skip)
    return raw


def in_memory(stream: io.RawIOBase, skip: int = 0) -> Any:
    """Return the rest of a stream, after the first bytes, in memory of Arrow: its threads may free it at any time."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    while block := stream.read(_BLOCK):
        sink.write(block)
    return pa.BufferReader(sink.getvalue().slice(skip))


def content(path: Path, limit: int) -> bytes:
    """Return all bytes of a file, unpacked."""
    with Unpacked(path, limit) as stream:
        return stream.read()
