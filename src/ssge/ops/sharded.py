"""An adjacency over matrices whose rows are spread over the processes of a run."""

from __future__ import annotations

from torch import Tensor

from ssge.ops.adjacency import Adjacency
from ssge.ops.collective import to_columns, to_rows
from ssge.ops.precision import product_dtype


class ShardedAdjacency(Adjacency):
    """The adjacency of a whole view, for a process that has some rows of H: it computes its rows of ``A @ H``.

    A sparse product is independent per column. So the processes give each other columns for rows, each multiplies its
    columns of all nodes, and they give each other rows for columns. Nothing is computed twice, no graph has to be
    partitioned, and the work is divided evenly whatever the graph looks like. What is exchanged is H twice, forward and
    backward. Every process has all edges, and drops the same ones.
    """

    def __matmul__(self, rows: Tensor) -> Tensor:
        n = self.pattern.incoming.indptr.numel() - 1
        rows = rows.to(product_dtype(rows))
        return to_rows(super().__matmul__(to_columns(rows, n)), rows.shape[1])
