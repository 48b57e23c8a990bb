r"""Centrality of nodes, and the drop probabilities that GCA derives from it: lower for central nodes.

Edges are a sparse matrix A with an entry in row i, column j for an edge from j to i. Self-loops and edge weights are
ignored, as in the released code.

- `degree_centrality`: number of edges into a node.
- `pagerank_centrality`: x = d A D^(-1) x + (1 - d) / n, with D the out-degrees and damping d.
- `eigenvector_centrality`: the nonnegative leading eigenvector of A.

For items (edges, feature columns) with centralities c, logarithms s = log c, a mean rate and a cap,

    w = (max s - s) / (max s - mean s),    probability = min(rate w / mean w, cap)

For an edge c is the centrality of its target; for a feature column it is sum_i |x_ij| c_i. Since only differences of s
matter, the scale of c does not. Special cases: equal centralities give w = 1 (0/0 in the formula), so that GCA becomes
GRACE, and a centrality of 0 is replaced by the smallest positive one (log 0 otherwise).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.ops.edges import edge_matrix, without_loops
from ssge.ops.sparse import CSR, SparseMatrix, row_indices

DAMPING = 0.85
"""Damping d of PageRank."""
CAP = 0.7
"""Largest drop probability in GCA."""


def degree_centrality(edges: CSR) -> Tensor:
    """Return the in-degree of each node, without self-loops."""
    return without_loops(edges).indptr.diff().to(edges.values.dtype)


def pagerank_centrality(edges: CSR, iterations: int = 200, tolerance: float = 1e-9, lazy: bool = False) -> Tensor:
    """Return the PageRank of each node, of sum 1, by power iteration. O(m) time per iteration.

    Parameters
    ----------
    edges
        A.
    iterations
        Maximum number of iterations. The released code of GCA has 200 for edges and 10 for features.
    tolerance
        The iteration stops when the sum of absolute changes is below it; 0: run all iterations.
    lazy
        Whether the share 1 - d stays at its node instead of teleporting: x <- d A D^(-1) x + (1 - d) x, as in the
        released code. The limit is that of a plain random walk; nodes without incoming edges tend to 0.
    """
    rows = without_loops(edges)
    n = rows.indptr.numel() - 1
    out = torch.bincount(rows.indices, minlength=n)
    matrix = edge_matrix(rows._replace(values=out.clamp_min(1).to(edges.values.dtype).reciprocal()[rows.indices]))
    stuck = (out == 0).to(edges.values.dtype)  # dangling node: treated as an edge to every node
    x = torch.full((n,), 1 / n, dtype=edges.values.dtype, device=edges.values.device)
    for _ in range(iterations):
        moved = (matrix @ x.unsqueeze(1)).squeeze(1)
        if lazy:
            following = DAMPING * moved + (1 - DAMPING) * x
        else:
            following = DAMPING * (moved + (stuck @ x) / n) + (1 - DAMPING) / n
        change = (following - x).abs().sum()
        x = following
        if change < tolerance:
            break
    return x


def eigenvector_centrality(edges: CSR, iterations: int = 1000, tolerance: float = 1e-9) -> Tensor:
    """Return the leading eigenvector of A, of norm 1, by power iteration on A + I. O(m) time per iteration.

    The shift by I keeps the eigenvectors and makes the iteration converge on bipartite graphs too. In a graph with
    several components, those with a smaller leading eigenvalue tend to 0.
    """
    rows = without_loops(edges)
    matrix = edge_matrix(rows._replace(values=torch.ones_like(rows.values)))
    n = rows.indptr.numel() - 1
    x = torch.full((n, 1), n**-0.5, dtype=edges.values.dtype, device=edges.values.device)
    for _ in range(iterations):
        following = matrix @ x + x
        following /= following.norm()
        change = (following - x).abs().sum()
        x = following
        if change < tolerance:
            break
    return x.squeeze(1)


def edge_drop_probabilities(edges: CSR, centrality: Tensor, rate: float) -> Tensor:
    """Return the drop probability of each entry of ``edges``; self-loops get 0, because they are never dropped.

    Parameters
    ----------
    edges
        A; it may contain self-loops.
    centrality
        c per node.
    rate
        Mean probability before the cap.
    """
    target = row_indices(edges.indptr).long()
    real = target != edges.indices
    probabilities = torch.zeros_like(edges.values)
    probabilities[real] = drop_probabilities(centrality[target[real]], rate)
    return probabilities


def feature_drop_probabilities(
    features: Tensor | SparseMatrix, centrality: Tensor, rate: float, binary: bool = True
) -> Tensor:
    """Return the drop probability of each feature column.

    Parameters
    ----------
    features
        X, n x p, dense or sparse.
    centrality
        c per node.
    rate
        See `edge_drop_probabilities`.
    binary
        Whether each nonzero entry of X counts as 1, as in the released code except on WikiCS.
    """
    if isinstance(features, SparseMatrix):
        rows = features.rows
        size = (rows.values != 0).to(centrality.dtype) if binary else rows.values.abs().to(centrality.dtype)
        weight = size * centrality[row_indices(rows.indptr).long()]
        columns = centrality.new_zeros(features.shape[1]).index_add_(0, rows.indices.long(), weight)
    else:
        columns = ((features != 0) if binary else features.abs()).to(centrality.dtype).t() @ centrality
    return drop_probabilities(columns, rate)


def drop_probabilities(centrality: Tensor, rate: float) -> Tensor:
    """Return min(rate w / mean w, cap) of items with given centralities; see the formula above."""
    if not 0 <= rate <= 1:
        raise InputError(f"rate must be a probability from 0 to 1; received {rate}.")
    positive = centrality[centrality > 0]
    if positive.numel() == 0:
        return torch.full_like(centrality, min(rate, CAP))
    s = centrality.clamp_min(positive.min()).log()
    gap = s.max() - s
    if gap.mean() <= torch.finfo(s.dtype).eps * s.abs().max():  # equal up to rounding
        return torch.full_like(centrality, min(rate, CAP))
    return (rate * gap / gap.mean()).clamp_max(CAP)  # w has mean 1: the denominator of w is the mean of its numerator
