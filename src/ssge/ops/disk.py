"""Matrices on disk that are read and written in parts.

Plain reads and writes, not memory maps: pages of a map count as memory of the process until the system reclaims them,
which would break a memory limit.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_MOST = 1 << 30
"""Bytes per call; Linux transfers at most 2 GiB."""


class DiskArray:
    """The rows of a .npy file, read-only."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        if np.lib.format.read_magic(self._file) != (1, 0):
            raise ValueError(f"{path} is no .npy file of version 1.0")
        self.shape, fortran, self.dtype = np.lib.format.read_array_header_1_0(self._file)
        assert not fortran
        self._offset = self._file.tell()
        self._row = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return rows ``start`` to ``stop``."""
        rows: NDArray[Any] = np.empty((stop - start, *self.shape[1:]), dtype=self.dtype)
        _read(self._file.fileno(), rows, self._offset + start * self._row)
        return rows


class Scratch:
    """An n x d matrix in an unnamed file, stored by panels of columns, for reads by panel or by rows.

    The file is deleted with the object, or when the process ends, even after a crash.

    Parameters
    ----------
    folder
        On a disk with space for n d numbers.
    rows, columns
        n and d.
    panel
        Columns per panel; the last may have fewer.
    dtype
        Of the numbers.
    """

    def __init__(self, folder: Path, rows: int, columns: int, panel: int, dtype: torch.dtype) -> None:
        self.shape, self.dtype = (rows, columns), dtype
        self.edges = [*range(0, columns, min(panel, columns)), columns]
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it lives as long as the matrix
        self._item = torch.empty((), dtype=dtype).element_size()

    def read(self, start: int, stop: int) -> Tensor:
        """Return rows ``start`` to ``stop`` of all columns."""
        parts = [self._read(k, start, stop) for k in range(len(self.edges) - 1)]
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def write(self, start: int, rows: Tensor) -> None:
        """Write some rows of all columns."""
        for k, (begin, end) in enumerate(pairwise(self.edges)):
            self.write_panel(k, start, rows[:, begin:end])

    def panels(self) -> Iterator[Tensor]:
        """Yield the panels; only one is in memory at a time if the caller releases each."""
        for k in range(len(self.edges) - 1):
            yield self._read(k, 0, self.shape[0])

    def write_panel(self, k: int, start: int, rows: Tensor) -> None:
        """Write some rows of one panel."""
        _write(self._file.fileno(), rows.contiguous().numpy(), self._offset(k, start))

    def mapped(self) -> np.memmap[Any, Any]:
        """Return a matrix of one panel as a memory map, which keeps the file open."""
        assert len(self.edges) == 2
        kind = np.float64 if self.dtype == torch.float64 else np.float32
        return np.memmap(self._file, kind, "r+", shape=self.shape)

    def _read(self, k: int, start: int, stop: int) -> Tensor:
        rows = torch.empty(stop - start, self.edges[k + 1] - self.edges[k], dtype=self.dtype)
        _read(self._file.fileno(), rows.numpy(), self._offset(k, start))
        return rows

    def _offset(self, k: int, start: int) -> int:
        width = self.edges[k + 1] - self.edges[k]
        return int(self._item * (self.edges[k] * self.shape[0] + start * width))


def _read(file: int, array: NDArray[Any], offset: int) -> None:
    view, done = _bytes(array), 0
    while done < len(view):
        count = os.preadv(file, [view[done : done + _MOST]], offset + done)
        if not count:
            raise OSError("A file is shorter than it was.")
        done += count


def _write(file: int, array: NDArray[Any], offset: int) -> None:
    view, done = _bytes(array), 0
    while done < len(view):
        done += os.pwrite(file, view[done : done + _MOST], offset + done)


def _bytes(array: NDArray[Any]) -> memoryview:
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)
