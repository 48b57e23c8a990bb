r"""Personalized PageRank: the visit probabilities of a random walk with restarts from each node.

With T = A the normalized adjacency of a view (self-loops among its entries) and a teleport probability alpha,

    S = alpha sum_{l >= 0} (1 - alpha)^l T^l = alpha (I - (1 - alpha) T)^(-1)

row i of S belongs to the walk from node i against the direction of the edges, from a target to its sources.
`top_pagerank` finds the largest entries of some rows at a time by pushing, without S. `ppr_diffusion` returns S itself
as a sparse matrix, optionally without small entries. MVGRL and MERIT use it as a second view of the graph, as a
`Diffusion`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.ops.adjacency import Adjacency, Pattern
from ssge.ops.sparse import CSR, SparseMatrix, spmm

ColumnScale: TypeAlias = Literal["none", "sum", "max"]

_ENTRIES = 1 << 22  # numbers of S in memory at once
EXACT_NODES = 1 << 13
"""Largest number of nodes for a dense factorization, 2 x 256 MB in float32."""


class Diffusion(Adjacency):
    """A diffusion matrix as the adjacency of a view, without further normalization."""

    normalized = False

    @classmethod
    def of_rows(cls, rows: CSR) -> Diffusion:
        """Build the adjacency from the rows of S."""
        return cls(Pattern(rows, weighted=True))

    @cached_property
    def matrix(self) -> SparseMatrix:
        """The matrix and its transpose."""
        return SparseMatrix(*self.entries)


def top_pagerank(
    adjacency: Adjacency,
    k: int,
    teleport: float = 0.15,
    itself: bool = False,
    tolerance: float = 1e-4,
    chunk: int | None = None,
) -> Tensor:
    """Return the k nodes with the largest entries in each row of S, largest first, n x k.

    By default the node itself is excluded. Rows of nodes that reach fewer than k others are padded with -1.

    Parameters
    ----------
    adjacency
        T.
    k
        Number of nodes per row.
    teleport
        Alpha.
    itself
        Whether to include the node itself.
    tolerance
        See `pagerank`.
    chunk
        Rows of S at a time; by default as many as fit into 2^22 numbers.
    """
    n = adjacency.matrix.shape[0]
    positions = torch.full((n, k), -1, dtype=torch.int64, device=adjacency.device)
    start, found = 0, min(k, n)
    for rows in _pushed_rows(adjacency, teleport, tolerance, chunk):
        if not itself:
            rows.diagonal(start).zero_()
        largest, order = rows.topk(found, 1)
        positions[start : start + len(rows), :found] = torch.where(largest > 0, order, -1)
        start += len(rows)
    return positions


def pagerank(adjacency: Adjacency, nodes: Tensor, teleport: float = 0.15, tolerance: float = 1e-4) -> Tensor:
    r"""Return the rows of S for some nodes, from below: each entry is at most the exact one.

    Forward push: each row starts with a residual r = e_i and an estimate p = 0, and keeps the invariant S_i = p + r S.
    Each round pushes all entries of r above ``tolerance`` times the root of the node's number of neighbors, the cost of
    a push: a share alpha goes to p, the rest along T to the residuals of neighbors. The result is p + alpha r, with an
    error smaller than r S. At tolerance 0, rounds end at machine precision.

    Parameters
    ----------
    adjacency
        T.
    nodes
        Positions of the rows.
    teleport
        Alpha, above 0 and at most 1.
    tolerance
        Largest residual that is not pushed, for a node whose only neighbor is itself.

    Notes
    -----
    Time grows with the entries above the tolerance and their neighbors, not with n^2; memory O(rows n).
    """
    links = adjacency.matrix.rows
    count, n = nodes.numel(), adjacency.matrix.shape[0]
    estimate = torch.zeros(count * n, dtype=links.values.dtype, device=nodes.device)
    residual = torch.zeros_like(estimate)
    residual[torch.arange(count, device=nodes.device) * n + nodes] = 1
    limit = max(tolerance, torch.finfo(residual.dtype).eps) * links.indptr.diff().to(residual.dtype).sqrt()
    while (active := (residual.view(count, n) > limit).view(-1).nonzero().squeeze(1)).numel():
        pushed = residual[active]
        residual[active] = 0
        estimate[active] += teleport * pushed
        _spread(residual, active, (1 - teleport) * pushed, links, n)
    return estimate.add_(residual, alpha=teleport).view(count, n)


def ppr_diffusion(
    adjacency: Adjacency,
    teleport: float = 0.2,
    threshold: float = 0.0,
    k: int | None = None,
    scale: ColumnScale = "none",
    exact_nodes: int = EXACT_NODES,
    tolerance: float | None = None,
) -> CSR:
    """Return S, optionally without small entries.

    Parameters
    ----------
    adjacency
        T.
    teleport
        Alpha, above 0 and at most 1: 0.2 in MVGRL, 0.05 in MERIT.
    threshold
        Smaller entries are dropped, as in MERIT at 1e-4; zeros always are.
    k
        Keep at most the k largest entries per row; None: no limit.
    scale
        Divisor of each column: none, its sum (MERIT), or its largest entry (MVGRL on CiteSeer, which scales columns
        from 0 to 1). Empty columns do not change.
    exact_nodes
        Up to this number of nodes S is exact, from a factorization of I - (1 - alpha) T. Time O(n^3), memory O(n^2). In
        larger graphs S is computed in groups of rows, by Chebyshev iteration if T is symmetric and by `pagerank` if
        not.
    tolerance
        Largest error of an entry by Chebyshev iteration, which takes O(n m sqrt(1 / alpha) log(1 / tolerance)) time, or
        the tolerance of `pagerank`. None: a tenth of the threshold, and at least 1e-6.
    """
    if not 0 < teleport <= 1:
        raise InputError(f"teleport must be above 0 and at most 1; received {teleport}.")
    n = adjacency.matrix.shape[0]
    allowed = max(threshold / 10, 1e-6) if tolerance is None else tolerance
    if n <= exact_nodes:
        blocks = _exact_rows(adjacency, teleport)
    elif _is_symmetric(adjacency):
        blocks = _iterated_rows(adjacency, teleport, allowed)
    else:
        blocks = _pushed_rows(adjacency, teleport, allowed)
    counts, columns, values = [], [], []
    for block in blocks:
        if k is not None and k < n:
            rest = block.topk(n - k, 1, largest=False).indices
            block.scatter_(1, rest, 0)
        row, column = ((block >= threshold) & (block > 0)).nonzero().unbind(1)
        counts.append(torch.bincount(row, minlength=block.shape[0]))
        columns.append(column.to(torch.int32))
        values.append(block[row, column])
    indptr = torch.cat([counts[0].new_zeros(1), torch.cat(counts).cumsum(0)]).to(torch.int32)
    return _scaled_columns(CSR(indptr, torch.cat(columns), torch.cat(values)), scale)


def _exact_rows(adjacency: Adjacency, teleport: float) -> Iterator[Tensor]:
    """Yield S in groups of rows, from one LU factorization."""
    n = adjacency.matrix.shape[0]
    system = adjacency.matrix.to_dense().mul_(teleport - 1)
    system.diagonal().add_(1)
    factors, pivots = torch.linalg.lu_factor(system)
    del system
    step = max(1, _ENTRIES // n)
    for start in range(0, n, step):
        right = factors.new_zeros(min(step, n - start), n)
        right.diagonal(start).fill_(teleport)
        solved: Tensor = torch.linalg.lu_solve(factors, pivots, right, left=False)
        yield solved.clamp_min_(0)  # S is nonnegative up to rounding


def _iterated_rows(adjacency: Adjacency, teleport: float, tolerance: float) -> Iterator[Tensor]:
    r"""Yield S in groups of rows, by Chebyshev iteration on (I - c T) X = alpha I with c = 1 - alpha.

    The eigenvalues of a symmetric T are within [-1, 1], and those of the system within [1 - c, 1 + c]. The error after
    k rounds is at most 1 / cosh(k arcosh(1 / c)) times that of the start, which has rows of norm 1 or less. Entries
    below the tolerance are set to 0.
    """
    matrix, n, c = adjacency.matrix.rows, adjacency.matrix.shape[0], 1 - teleport
    least = max(tolerance, torch.finfo(matrix.values.dtype).eps)
    rounds = math.ceil(math.acosh(1 / least) / math.acosh(1 / c)) if c > 0 else 1
    step = max(1, _ENTRIES // n)
    for start in range(0, n, step):
        residual = matrix.values.new_zeros(n, min(step, n - start))
        residual.diagonal(-start).fill_(teleport)
        found, change, ratio = torch.zeros_like(residual), residual.clone(), c
        for _ in range(rounds):
            found += change
            residual.sub_(change).add_(spmm(matrix, change), alpha=c)
            following = 1 / (2 / c - ratio) if c > 0 else 0.0
            change.mul_(following * ratio).add_(residual, alpha=2 * following / c if c > 0 else 0.0)
            ratio = following
        yield torch.where(found >= least, found, 0).t().contiguous()


def _is_symmetric(adjacency: Adjacency) -> bool:
    rows, columns = adjacency.matrix.rows, adjacency.matrix.columns
    same = torch.equal(rows.indptr, columns.indptr) and torch.equal(rows.indices, columns.indices)
    return same and torch.allclose(rows.values, columns.values)


def _pushed_rows(adjacency: Adjacency, teleport: float, tolerance: float, chunk: int | None = None) -> Iterator[Tensor]:
    """Yield S in groups of rows, by `pagerank`."""
    n = adjacency.matrix.shape[0]
    step = chunk or max(1, _ENTRIES // n)
    for start in range(0, n, step):
        nodes = torch.arange(start, min(start + step, n), device=adjacency.device)
        yield pagerank(adjacency, nodes, teleport, tolerance)


def _scaled_columns(rows: CSR, scale: ColumnScale) -> CSR:
    """Divide each column by its sum or its largest entry."""
    if scale == "none":
        return rows
    reduce: Literal["sum", "amax"] = "sum" if scale == "sum" else "amax"
    size = rows.values.new_zeros(rows.indptr.numel() - 1)
    size.scatter_reduce_(0, rows.indices.long(), rows.values, reduce)
    return rows._replace(values=rows.values / size[rows.indices])


def _spread(residual: Tensor, active: Tensor, amount: Tensor, links: CSR, n: int) -> None:
    """Add the pushed amounts to the residuals of the neighbors; entries are numbered row n + node."""
    node = active % n
    neighbors = links.select(node)
    counts = neighbors.indptr.diff().long()
    base = (active - node).repeat_interleave(counts)
    residual.index_add_(0, base + neighbors.indices, amount.repeat_interleave(counts) * neighbors.values)
