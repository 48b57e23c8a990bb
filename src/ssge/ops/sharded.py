"""Features and adjacency of distributed training: each process computes some rows."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from ssge.ops.adjacency import Adjacency
from ssge.ops.collective import to_columns, to_rows
from ssge.ops.features import Features
from ssge.ops.precision import product_dtype
from ssge.ops.sparse import SparseMatrix


class ShardedAdjacency(Adjacency):
    """The adjacency of a whole view, for a process that has some rows of H: it computes its rows of ``A @ H``.

    A sparse product is independent per column. So the processes exchange rows for columns, each multiplies its columns
    of all nodes, and they exchange columns for rows. Nothing is computed twice, no graph has to be partitioned, and the
    work is balanced for any graph. H is exchanged twice, forward and backward. Every process has all edges, and drops
    the same ones.
    """

    @cached_property
    def whole(self) -> Adjacency:
        """The adjacency for a process that has all rows."""
        return Adjacency(self.pattern, self.normalization, self.drops)

    def __matmul__(self, rows: Tensor) -> Tensor:
        n = self.pattern.incoming.indptr.numel() - 1
        rows = rows.to(product_dtype(rows))
        return to_rows(super().__matmul__(to_columns(rows, n)), rows.shape[1])


class ShardedFeatures(Features):
    """The rows of X of this process. It also has the whole X, so its rows of ``A X`` need no exchange.

    Parameters
    ----------
    whole
        The features of all nodes.
    rows
        Those of this process.
    own
        The features of these rows, if already selected.
    """

    def __init__(self, whole: Features, rows: slice, own: Features | None = None) -> None:
        own = own or whole.select(torch.arange(rows.start, rows.stop, device=whole.device))
        super().__init__(own.matrix, whole.kept)
        self.whole, self.rows = whole, rows

    def mask(self, kept: Tensor) -> ShardedFeatures:
        """Return the same features with fewer columns kept; nothing is copied."""
        return ShardedFeatures(self.whole.mask(kept), self.rows, self)

    def propagate(self, adjacency: Adjacency, weight: Tensor) -> Tensor:
        """Return this process's rows of A X W in the cheaper order."""
        if isinstance(self.matrix, SparseMatrix):
            return super().propagate(adjacency, weight)
        kept, weight_kept = self.whole._unmasked(weight)
        if kept.shape[1] > 2 * weight.shape[1]:
            return super().propagate(adjacency, weight)
        return adjacency.block(self.rows.start, self.rows.stop, kept) @ weight_kept
