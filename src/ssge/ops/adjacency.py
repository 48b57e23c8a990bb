"""Adjacency: the normalized adjacency matrix with self-loops, from which edges can be dropped."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssge.ops.sparse import CSR, SparseMatrix, row_indices, spmm, transpose

Normalization: TypeAlias = Literal["out-in", "in"]


class Pattern(NamedTuple):
    """Where the entries of the full matrix are; shared by all views of one graph.

    Attributes
    ----------
    incoming
        By target: whom each node hears. Values are the edge weights, self-loops count 1.
    outgoing
        The transpose, by source.
    order
        Which entry of ``incoming`` each entry of ``outgoing`` is.
    loops
        Which entries of ``incoming`` are self-loops, one a node.
    weighted
        Whether any edge weight differs from 1.
    """

    incoming: CSR
    outgoing: CSR
    order: Tensor
    loops: Tensor
    weighted: bool


class Adjacency:
    r"""Normalized adjacency matrix of a view; it knows ``A @ H``.

    With A the weights of the kept edges (from source j to target i) and of the self-loops,

    - ``out-in`` (default): ``A_ij / sqrt(in_i * out_j)``, in-degree of the target with out-degree of the source. The
      released code of the SSGE paper has it so, through DGL.
    - ``in``: ``A_ij / sqrt(in_i * in_j)``, in-degree on both ends, as PyTorch Geometric's ``gcn_norm``.

    Both are the same on a symmetric graph and differ once edges were dropped independently in each direction.

    Parameters
    ----------
    pattern
        The entries of the full matrix.
    normalization
        One of the two conventions above.
    kept
        Boolean mask over the entries of ``pattern.incoming``, or None for all: dropping edges is a new mask.
    degrees
        In- and out-degrees to normalize by, where they are not those of the pattern itself but of a larger graph.
    """

    def __init__(
        self,
        pattern: Pattern,
        normalization: Normalization = "out-in",
        kept: Tensor | None = None,
        degrees: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self.pattern = pattern
        self.normalization = normalization
        self.kept = kept
        self.degrees = degrees

    @classmethod
    def of(
        cls,
        edges: NDArray[np.int64],
        num_nodes: int,
        weights: NDArray[Any] | None = None,
        normalization: Normalization = "out-in",
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> Adjacency:
        """Build the matrix of the edges (source, target) of a graph without self-loops."""
        nodes = np.arange(num_nodes)
        source, target = np.concatenate([edges, np.stack([nodes, nodes])], axis=1)
        order = np.lexsort((source, target))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=num_nodes))])
        value = np.ones(order.size) if weights is None else np.concatenate([weights, np.ones(num_nodes)])
        incoming = CSR(
            torch.from_numpy(indptr.astype(np.int32)).to(device),
            torch.from_numpy(source[order].astype(np.int32)).to(device),
            torch.from_numpy(value[order]).to(device, dtype),
        )
        loops = torch.from_numpy(np.flatnonzero(order >= edges.shape[1])).to(device)
        pattern = Pattern(incoming, *transpose(incoming, num_nodes), loops, weights is not None)
        return cls(pattern, normalization)

    @property
    def num_entries(self) -> int:
        """Number of entries of the full matrix: edges and self-loops."""
        return self.pattern.incoming.indices.numel()

    @property
    def device(self) -> torch.device:
        """Where the matrix lies."""
        return self.pattern.incoming.values.device

    def keep(self, kept: Tensor) -> Adjacency:
        """Return the adjacency in which only these entries are left; self-loops always stay."""
        kept = kept.index_fill(0, self.pattern.loops, True)
        return Adjacency(self.pattern, self.normalization, kept if self.kept is None else self.kept & kept)

    def upstream(self, nodes: Tensor, hops: int) -> Tensor:
        """Return the nodes from which ``nodes`` hear within some hops, themselves among them, in ascending order."""
        for _ in range(hops):  # each hears itself: its self-loop is an entry of its row
            nodes = self._kept[0].at(_distinct(nodes)).indices.long()
        return _distinct(nodes)

    def part(self, nodes: Tensor) -> Adjacency:
        """Return the rows and columns of some nodes, normalized by the degrees that they have in the whole graph."""
        incoming, outgoing = self._kept
        position = torch.full((incoming.indptr.numel() - 1,), -1, dtype=torch.int32, device=self.device)
        position[nodes] = torch.arange(nodes.numel(), dtype=torch.int32, device=self.device)
        rows = incoming.at(nodes)
        rows = rows._replace(indices=position[rows.indices])
        rows = _select(rows, rows.indices >= 0, weighted=True)
        loops = (rows.indices == row_indices(rows.indptr)).nonzero().squeeze(1)
        pattern = Pattern(rows, *transpose(rows, nodes.numel()), loops, self.pattern.weighted)
        degrees = self._degree(incoming)[nodes], self._degree(outgoing)[nodes]
        return Adjacency(pattern, self.normalization, degrees=degrees)

    @cached_property
    def _kept(self) -> tuple[CSR, CSR]:
        """The entries that are left, by target and by source."""
        incoming, outgoing = self.pattern.incoming, self.pattern.outgoing
        if self.kept is None:
            return incoming, outgoing
        return (
            _select(incoming, self.kept, self.pattern.weighted),
            _select(outgoing, self.kept[self.pattern.order], self.pattern.weighted),
        )

    @cached_property
    def matrix(self) -> SparseMatrix:
        """The normalized matrix and its transpose, made on first use."""
        incoming, outgoing = self._kept
        at_target, at_source = (
            degree.rsqrt() for degree in self.degrees or (self._degree(incoming), self._degree(outgoing))
        )
        at_source = at_target if self.normalization == "in" else at_source
        return SparseMatrix(self._scaled(incoming, at_target, at_source), self._scaled(outgoing, at_source, at_target))

    def _degree(self, rows: CSR) -> Tensor:
        if not self.pattern.weighted:
            return rows.indptr.diff().to(rows.values.dtype)
        degree = torch.zeros(rows.indptr.numel() - 1, dtype=rows.values.dtype, device=rows.values.device)
        return degree.index_add_(0, row_indices(rows.indptr), rows.values)

    def _scaled(self, rows: CSR, at_row: Tensor, at_column: Tensor) -> CSR:
        value = at_row.repeat_interleave(rows.indptr.diff().long(), output_size=rows.indices.numel())
        value *= at_column[rows.indices]
        if self.pattern.weighted:
            value *= rows.values
        return rows._replace(values=value)

    def __matmul__(self, dense: Tensor) -> Tensor:
        return self.matrix @ dense

    def block(self, start: int, stop: int, dense: Tensor) -> Tensor:
        """Return rows ``start`` to ``stop`` of ``A @ dense``, without gradient."""
        return spmm(self.matrix.block(start, stop), dense)


def _select(rows: CSR, kept: Tensor, weighted: bool) -> CSR:
    """Leave only some entries; the values of an unweighted pattern are all one, so any will do."""
    before = torch.zeros(kept.numel() + 1, dtype=rows.indptr.dtype, device=kept.device)
    torch.cumsum(kept, 0, out=before[1:])
    column = rows.indices[kept]
    return CSR(before[rows.indptr], column, rows.values[kept] if weighted else rows.values[: column.numel()])


def _distinct(nodes: Tensor) -> Tensor:
    found: Tensor = torch.unique(nodes)
    return found
