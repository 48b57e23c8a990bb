r"""Personalized PageRank: how much a walk that starts at a node, and now and then returns to it, sees of the others.

With T = A the normalized adjacency of a view (self-loops among its entries) and a teleport probability alpha,

    S = alpha sum_{l >= 0} (1 - alpha)^l T^l = alpha (I - (1 - alpha) T)^(-1)

row i of S belongs to the walk from node i, along the direction in which a node hears from others. S is never formed:
`top_pagerank` finds the largest entries of some rows at a time by pushing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ssge.ops.adjacency import Adjacency
from ssge.ops.sparse import CSR

_ENTRIES = 1 << 22  # numbers of S in memory at once


def top_pagerank(
    adjacency: Adjacency,
    k: int,
    teleport: float = 0.15,
    itself: bool = False,
    tolerance: float = 1e-4,
    chunk: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the k nodes with the largest entries in each row of S, largest first, and these entries.

    The node itself is left out unless asked for. A node that reaches fewer than k has -1 in place of the missing ones,
    with entry 0.

    Parameters
    ----------
    adjacency
        T.
    k
        How many.
    teleport
        Alpha.
    itself
        Whether a node can be among its own.
    tolerance
        See `pagerank`.
    chunk
        CSR of S at a time; by default as many as 2^22 numbers hold.
    """
    n = adjacency.matrix.shape[0]
    positions = torch.full((n, k), -1, dtype=torch.int64, device=adjacency.device)
    entries = torch.zeros(n, k, dtype=adjacency.matrix.rows.values.dtype, device=adjacency.device)
    step, found = chunk or max(1, _ENTRIES // n), min(k, n)
    for start in range(0, n, step):
        nodes = torch.arange(start, min(start + step, n), device=adjacency.device)
        rows = pagerank(adjacency, nodes, teleport, tolerance)
        if not itself:
            rows[torch.arange(nodes.numel(), device=nodes.device), nodes] = 0
        largest, order = rows.topk(found, 1)
        positions[nodes, :found] = torch.where(largest > 0, order, -1)
        entries[nodes, :found] = largest
    return positions, entries


def pagerank(adjacency: Adjacency, nodes: Tensor, teleport: float = 0.15, tolerance: float = 1e-4) -> Tensor:
    r"""Return the rows of S for some nodes, from below: each entry is at most the exact one.

    Each row begins with a residual r = e_i and an estimate p = 0, and keeps S_i = p + r S. In each round all entries of
    r above ``tolerance`` times the root of the node's number of neighbors, since these are what a push costs, are
    pushed at once: alpha of them goes to p, the rest along T to the residuals of neighbors. Returned is p + alpha r,
    which leaves out less than r S; at tolerance 0 rounds end with the precision of the numbers.

    Parameters
    ----------
    adjacency
        T.
    nodes
        Positions of the rows.
    teleport
        Alpha, above 0 and at most 1.
    tolerance
        The residual that is left where it is, of a node that hears itself alone.

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


def _spread(residual: Tensor, active: Tensor, amount: Tensor, links: CSR, n: int) -> None:
    """Add to the residuals of the neighbors of some entries (row n + node) their share of an amount."""
    node = active % n
    neighbors = links.select(node)
    counts = neighbors.indptr.diff().long()
    base = (active - node).repeat_interleave(counts)
    residual.index_add_(0, base + neighbors.indices, amount.repeat_interleave(counts) * neighbors.values)
