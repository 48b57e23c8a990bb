r"""Homophily of HomoGCL: neighbors in the same cluster are positives.

With R (n x K) the soft clusters of the nodes of the graph (`ssge.ops.communities.distance_assignments`),

- `saliency`: the weight of an edge (i, j) as a soft positive in `ssge.objectives.infonce.infonce` is cos(R_i, R_j)
- `homophily` = mean over edges (i, j) and clusters k of (R_ik - R_jk)^2

Both are differentiable in R. Cost O(m K); no n x n matrix, whereas the released code has about ten.
"""

from __future__ import annotations

from torch import Tensor

from ssge.objectives.infonce import unit_rows
from ssge.ops.edges import without_loops
from ssge.ops.sparse import CSR, row_indices


def saliency(r: Tensor, edges: CSR, mean: bool = False) -> CSR:
    """Return the edges without loops, weighted by the agreement of their ends, as ``pairs`` of `infonce`.

    Parameters
    ----------
    r
        R, n x K, of the graph itself.
    edges
        The edges of a view.
    mean
        Whether to divide by the number of neighbors, so that their total weight is one. The released code adds 0.01.
    """
    rows = without_loops(edges)
    i, unit = row_indices(rows.indptr).long(), unit_rows(r)
    weights = (unit[i] * unit[rows.indices.long()]).sum(1)
    if mean:
        weights = weights / rows.indptr.diff()[i]
    return rows._replace(values=weights)


def homophily(r: Tensor, edges: CSR) -> Tensor:
    """Return the mean squared difference of the clusters at the two ends of an edge; 0 if there are none.

    Self-loops in ``edges`` count as edges, as in the released code.
    """
    difference = r[row_indices(edges.indptr).long()] - r[edges.indices.long()]
    return difference.square().sum() / max(difference.numel(), 1)
