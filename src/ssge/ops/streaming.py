"""A graph on disk as adjacency and features: exact ``A @ H`` in bounded memory.

A sparse product is independent per column. So a panel of some columns of H, of all nodes, is kept in memory, and the
edges are read in chunks of rows, once per panel. There are no random reads from disk. The dropped edges of a view are a
function of their two ends (`ssge.ops.random.Key`), so every chunk evaluates it independently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.ops.adjacency import Adjacency, Normalization, edge_ids
from ssge.ops.disk import DiskArray, Scratch
from ssge.ops.features import Features
from ssge.ops.random import Key
from ssge.ops.sparse import CSR, bag, row_indices

_ENTRY = 64
"""Working memory of a chunk of edges, in bytes per entry."""
_MOST_ENTRIES = 1 << 21
_MOST_ROWS = 1 << 15
_COPIES = 12
"""Number of copies of a chunk of rows, as wide as the widest layer, in a forward and backward step."""


@dataclass(frozen=True)
class Workspace:
    """Temporary storage and memory limit of streamed computation.

    Attributes
    ----------
    folder
        Folder for unnamed temporary files.
    memory
        Memory limit in bytes. Three quarters are for a panel and the degrees, the rest for chunks.
    """

    folder: Path
    memory: int

    def panel(self, n: int, itemsize: int) -> int:
        """Return the number of columns of a panel of n nodes."""
        columns = (3 * self.memory // 4 - self.degrees(n, itemsize)) // (n * itemsize)
        if columns < 1:
            least = 4 * (self.degrees(n, itemsize) + n * itemsize) // 3
            free = self.memory / 1e6
            raise InputError(f"memory must leave {least / 1e6:,.0f} MB for {n:,} nodes; {free:,.0f} MB are left.")
        return int(columns)

    @staticmethod
    def degrees(n: int, itemsize: int) -> int:
        """Return the size in bytes of the degrees of both views, and of a third that is being counted."""
        return n * (4 * itemsize + 16)

    def rows(self, width: int, itemsize: int) -> int:
        """Return the number of rows of a chunk of a given width."""
        return int(min(max(self.memory // 8 // (_COPIES * width * itemsize), 64), _MOST_ROWS))

    @property
    def entries(self) -> int:
        """Number of edges of a chunk."""
        return int(min(max(self.memory // 8 // _ENTRY, 1 << 10), _MOST_ENTRIES))


class DiskEdges(NamedTuple):
    """In- or out-neighbors of all nodes on disk, without self-loops; weights are None if all are 1."""

    indptr: DiskArray
    indices: DiskArray
    weights: DiskArray | None


class Chunk(NamedTuple):
    """Edges of some rows: the first row, and the entries as a CSR matrix with as many rows."""

    start: int
    rows: CSR


class StreamedAdjacency(Adjacency):
    """The normalized adjacency matrix of a view of a graph on disk.

    Parameters
    ----------
    incoming, outgoing
        The edges, by target and by source.
    num_nodes
        n.
    workspace
        Where to work.
    dtype
        Of the product.
    normalization, drops
        As in `Adjacency`; rates are single numbers.
    """

    def __init__(
        self,
        incoming: DiskEdges,
        outgoing: DiskEdges,
        num_nodes: int,
        workspace: Workspace,
        dtype: torch.dtype = torch.float32,
        normalization: Normalization = "out-in",
        drops: tuple[tuple[Key, float | Tensor], ...] = (),
    ) -> None:
        self.incoming, self.outgoing, self.num_nodes = incoming, outgoing, num_nodes
        self.workspace, self.dtype = workspace, dtype
        self.normalization, self.drops = normalization, drops
        self._scales: tuple[Tensor, Tensor] | None = None

    @property
    def num_entries(self) -> int:
        """Number of entries of the full matrix: edges and self-loops."""
        return int(self.incoming.indices.shape[0]) + self.num_nodes

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    def drop_edges(self, key: Key, rate: float | Tensor) -> StreamedAdjacency:
        """Return the adjacency without the edges that the key drops; self-loops always stay."""
        if isinstance(rate, Tensor):
            raise InputError("A rate per edge needs all edges in memory; streamed training takes one rate for all.")
        drops = (*self.drops, (key, rate))
        edges = self.incoming, self.outgoing, self.num_nodes
        return StreamedAdjacency(*edges, self.workspace, self.dtype, self.normalization, drops)

    def scratch(self, columns: int) -> Scratch:
        """Return a matrix on disk with a row per node."""
        item = torch.empty((), dtype=self.dtype).element_size()
        panel = self.workspace.panel(self.num_nodes, item)
        return Scratch(self.workspace.folder, self.num_nodes, columns, panel, self.dtype)

    def propagate(self, panels: Iterable[Tensor], target: Scratch, transpose: bool = False) -> None:
        """Write ``A @ H``, or ``A.T @ H``, for the panels of columns of H; each panel is scaled in place."""
        at_row, at_column = self.scales[::-1] if transpose else self.scales
        for k, panel in enumerate(panels):
            panel.mul_(at_column.unsqueeze(1))
            for start, rows in self.chunks(transpose, self.workspace.rows(panel.shape[1], panel.element_size())):
                product = bag(rows, panel)
                stop = start + product.shape[0]
                product += panel[start:stop]  # the self-loop
                product *= at_row[start:stop].unsqueeze(1)
                target.write_panel(k, start, product)
            del panel  # before the next one is created

    def chunks(self, transpose: bool = False, most_rows: int = _MOST_ROWS) -> Iterator[Chunk]:
        """Yield the kept edges with weights, in chunks of consecutive targets (or sources) of bounded size."""
        indptr, indices, weights = self.outgoing if transpose else self.incoming
        start, most = 0, self.workspace.entries
        while start < self.num_nodes:
            bounds = torch.from_numpy(indptr.read(start, min(start + most_rows, self.num_nodes) + 1))
            stop = max(1, int(torch.searchsorted(bounds, bounds[0] + most, right=True)) - 1)
            bounds = bounds[: stop + 1]
            first, last = int(bounds[0]), int(bounds[-1])
            index = torch.from_numpy(indices.read(first, last))
            values = torch.ones(last - first, dtype=self.dtype)
            if weights is not None:
                values = torch.from_numpy(weights.read(first, last)).to(self.dtype)
            rows = CSR((bounds - first).to(index.dtype), index, values)
            yield Chunk(start, self._left(rows, start, transpose))
            start += stop

    def _left(self, rows: CSR, start: int, transpose: bool) -> CSR:
        if not self.drops or not rows.indices.numel():
            return rows
        row, column = row_indices(rows.indptr).long() + start, rows.indices.long()
        return rows.filter(self._keep(edge_ids(row, column) if transpose else edge_ids(column, row)))

    def _rates(self, rate: float | Tensor, edge_ids: Tensor) -> float | Tensor:
        return rate

    @property
    def scales(self) -> tuple[Tensor, Tensor]:
        """Inverse roots of the degrees at the target and at the source, counted in one pass over the edges."""
        if self._scales is None:
            incoming = torch.ones(self.num_nodes, dtype=torch.float64)  # the self-loop
            outgoing = torch.ones(self.num_nodes, dtype=torch.float64)
            for start, rows in self.chunks():
                stop = start + rows.indptr.numel() - 1
                self._check(rows.indices)
                values = rows.values.double()
                incoming[start:stop].index_add_(0, row_indices(rows.indptr).long(), values)
                if self.normalization != "in":
                    outgoing.index_add_(0, rows.indices, values)
            at_target = incoming.rsqrt_().to(self.dtype)
            at_source = at_target if self.normalization == "in" else outgoing.rsqrt_().to(self.dtype)
            self._scales = at_target, at_source
        return self._scales

    def _check(self, indices: Tensor) -> None:
        """Raise an error for invalid node positions: kernels would read beyond the panel."""
        if indices.numel() and (int(indices.min()) < 0 or int(indices.max()) >= self.num_nodes):
            raise InputError(f"The graph on disk is damaged: an edge names a node beyond {self.num_nodes - 1}.")


class StreamedFeatures(Features):
    """The feature matrix of a graph on disk, read by rows.

    Parameters
    ----------
    matrix
        X, n x p, on disk.
    dtype
        In which rows are returned.
    kept
        Boolean mask of the p columns, or None for all.
    """

    def __init__(self, matrix: DiskArray, dtype: torch.dtype = torch.float32, kept: Tensor | None = None) -> None:
        self.on_disk, self._dtype, self.kept = matrix, dtype, kept
        self.shape = tuple(matrix.shape)

    @property
    def device(self) -> torch.device:
        """The CPU."""
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        """Precision in which rows are returned."""
        return self._dtype

    def mask(self, kept: Tensor) -> StreamedFeatures:
        """Return the same features with fewer columns kept."""
        return StreamedFeatures(self.on_disk, self._dtype, kept if self.kept is None else self.kept & kept)

    def read(self, start: int, stop: int) -> Tensor:
        """Return rows ``start`` to ``stop`` of the columns that are kept."""
        rows = torch.from_numpy(self.on_disk.read(start, stop)).to(self._dtype)
        return rows if self.kept is None else rows[:, self.kept]
