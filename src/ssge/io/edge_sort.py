"""Edges of any number, sorted: by buckets of rows on disk, each of which is sorted in memory.

Written by hand because NumPy sorts what is in memory, and because the buckets merge duplicates and reverse edges by the
rules of `ssge.graph.arrange` on the way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BUCKETS = 256
"""Files that are open at a time."""
_ENTRIES = 1 << 22
"""Entries of a bucket that is sorted at once; one entry takes about 60 bytes while it is."""


class EdgeSorter:
    """Takes entries (row, column, weight) in any order, and returns them by row and column, each once.

    Equal entries are merged: their weights are added, separately for edges that were given and for those that only
    ``reverse`` added, and the larger of the two sums counts.

    Parameters
    ----------
    folder
        For the buckets; must exist.
    num_nodes
        Rows and columns are 0 to ``num_nodes - 1``.
    weighted
        Whether entries have weights, all positive.
    entries
        Most entries of a bucket that is sorted in memory; larger ones are divided. A single row is always sorted whole.
    """

    def __init__(self, folder: Path, num_nodes: int, weighted: bool, entries: int = _ENTRIES) -> None:
        self.num_nodes, self.weighted, self.entries = num_nodes, weighted, entries
        index = np.int32 if num_nodes < 2**31 else np.int64
        fields: list[Any] = [("row", index), ("column", index)]
        self._dtype = np.dtype([*fields, ("weight", np.float64)] if weighted else fields)
        self._folder = folder
        self._top = self._buckets(0, num_nodes)

    def add(self, row: NDArray[Any], column: NDArray[Any], weight: NDArray[Any] | None, reverse: bool) -> None:
        """Add some entries, and with ``reverse`` their transposes."""
        found = np.empty(row.size, dtype=self._dtype)
        found["row"], found["column"] = row, column
        if weight is not None:
            found["weight"] = weight
        self._top.add(found)
        if reverse:
            found["row"], found["column"] = column, row
            if weight is not None:
                found["weight"] = -weight  # the sign tells them from those that were given
            self._top.add(found)

    def parts(self) -> Iterator[tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32] | None]]:
        """Yield the entries of consecutive rows: number per row, columns, weights. May be called once."""
        yield from self._parts(self._top)

    def _parts(self, buckets: _Buckets) -> Iterator[Any]:
        for path, begin, end in buckets.close():
            size = path.stat().st_size // self._dtype.itemsize if path.exists() else 0
            if size > self.entries and end - begin > 1:
                smaller = self._buckets(begin, end)
                with path.open("rb") as file:
                    while (piece := np.fromfile(file, self._dtype, self.entries)).size:
                        smaller.add(piece)
                path.unlink()
                yield from self._parts(smaller)
                continue
            found = np.fromfile(path, self._dtype) if size else np.empty(0, dtype=self._dtype)
            path.unlink(missing_ok=True)
            yield self._merged(found, begin, end)

    def _merged(self, found: NDArray[Any], begin: int, end: int) -> Any:
        row, column = found["row"].astype(np.int64) - begin, found["column"]
        # One number per entry, unless the product passes 2^63; rows of a bucket are few.
        key = row * self.num_nodes + column
        if not self.weighted:
            key.sort()
            key = key[_first(key)]
            weight = None
        else:
            order = np.argsort(key, kind="stable")
            key, weight = key[order], found["weight"][order]
            begins = np.flatnonzero(_first(key))
            if begins.size:
                given = np.add.reduceat(np.maximum(weight, 0), begins)
                weight = np.maximum(given, np.add.reduceat(np.maximum(-weight, 0), begins)).astype(np.float32)
            key = key[begins]
        row, column = np.divmod(key, self.num_nodes)
        return np.bincount(row, minlength=end - begin), column, weight

    def _buckets(self, begin: int, end: int) -> _Buckets:
        return _Buckets(Path(tempfile.mkdtemp(dir=self._folder)), begin, end)


class _Buckets:
    """Files with the entries of equal ranges of rows."""

    def __init__(self, folder: Path, begin: int, end: int) -> None:
        self.folder, self.begin, self.end = folder, begin, end
        self.rows = max(1, -(-(end - begin) // _BUCKETS))
        self._files: dict[int, Any] = {}

    def add(self, entries: NDArray[Any]) -> None:
        bucket = ((entries["row"] - self.begin) // self.rows).astype(np.int16)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=1))
        entries = entries[order]
        for i, (start, stop) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if start < stop:
                if i not in self._files:
                    self._files[i] = self._path(i).open("wb")
                self._files[i].write(entries[start:stop].data)

    def close(self) -> Iterator[tuple[Path, int, int]]:
        for file in self._files.values():
            file.close()
        for i, begin in enumerate(range(self.begin, self.end, self.rows)):
            yield self._path(i), begin, min(begin + self.rows, self.end)

    def _path(self, i: int) -> Path:
        return self.folder / f"{i}"


def _first(key: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each of some sorted keys is the first of its kind."""
    first = np.ones(key.size, dtype=bool)
    np.not_equal(key[1:], key[:-1], out=first[1:])
    return first
