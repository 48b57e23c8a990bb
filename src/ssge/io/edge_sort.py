"""Edges of any number, sorted: by buckets of rows on disk, each of which SciPy sorts and merges in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_BUCKETS = 256


class EdgeSorter:
    """Takes entries (row, column, weight) in any order, and returns them by row and column, each once.

    Equal entries are merged as in `ssge.graph.arrange`: their weights are added, separately for edges that were given
    and for those that only ``reverse`` added, and the larger of the two sums counts.

    Parameters
    ----------
    folder
        For the buckets; must exist.
    num_nodes
        Rows and columns are 0 to ``num_nodes - 1``.
    weighted
        Whether entries have weights, all positive.
    entries
        Most entries of a bucket that is sorted in memory, each of which takes about 100 bytes; larger buckets are
        divided by a sorter of their own. A single row is always sorted whole.
    rows
        The rows that entries may have. Default: all.
    """

    def __init__(self, folder: Path, num_nodes: int, weighted: bool, entries: int, rows: range | None = None) -> None:
        self.num_nodes, self.weighted, self.entries = num_nodes, weighted, entries
        index = np.int32 if num_nodes < 2**31 else np.int64
        fields: list[Any] = [("row", index), ("column", index)]
        self._dtype = np.dtype([*fields, ("weight", np.float64)] if weighted else fields)
        self._folder = Path(tempfile.mkdtemp(dir=folder))
        self._rows = range(num_nodes) if rows is None else rows
        self._step = max(1, -(-len(self._rows) // _BUCKETS))

    def add(self, row: NDArray[Any], column: NDArray[Any], weight: NDArray[Any] | None, reverse: bool) -> None:
        """Add some entries, and with ``reverse`` their transposes."""
        found = np.empty(row.size, dtype=self._dtype)
        found["row"], found["column"] = row, column
        if weight is not None:
            found["weight"] = weight
        self._add(found)
        if reverse:
            found["row"], found["column"] = column, row
            if weight is not None:
                found["weight"] = -weight  # the sign marks reverse edges
            self._add(found)

    def _add(self, entries: NDArray[Any]) -> None:
        bucket = ((entries["row"] - self._rows.start) // self._step).astype(np.int16)
        ends = np.cumsum(np.bincount(bucket, minlength=1))
        for i, part in enumerate(np.split(entries[np.argsort(bucket, kind="stable")], ends[:-1])):
            if part.size:
                with (self._folder / f"{i}").open("ab") as file:
                    part.tofile(file)

    def parts(self) -> Iterator[tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32] | None]]:
        """Yield the entries of consecutive rows: number per row, columns, weights. May be called once."""
        for i in range(len(self._rows[:: self._step])):
            path, rows = self._folder / f"{i}", self._rows[i * self._step : (i + 1) * self._step]
            size = path.stat().st_size // self._dtype.itemsize if path.exists() else 0
            if size > self.entries and len(rows) > 1:
                smaller = EdgeSorter(self._folder, self.num_nodes, self.weighted, self.entries, rows)
                with path.open("rb") as file:
                    while (piece := np.fromfile(file, self._dtype, self.entries)).size:
                        smaller._add(piece)
                path.unlink()
                yield from smaller.parts()
                continue
            found = np.fromfile(path, self._dtype) if size else np.empty(0, dtype=self._dtype)
            path.unlink(missing_ok=True)
            yield self._merged(found, rows)

    def _merged(self, found: NDArray[Any], rows: range) -> Any:
        place, shape = (found["row"] - rows.start, found["column"]), (len(rows), self.num_nodes)
        if not self.weighted:
            matrix = sp.csr_array((np.ones(found.size, dtype=bool), place), shape=shape)
            return np.diff(matrix.indptr), matrix.indices, None
        sides = (np.maximum(found["weight"], 0), np.maximum(-found["weight"], 0))
        given, added = (sp.csr_array((weight, place), shape=shape) for weight in sides)
        matrix = given.maximum(added)
        return np.diff(matrix.indptr), matrix.indices, matrix.data.astype(np.float32)
