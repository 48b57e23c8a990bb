r"""Objectives of gCooL: dense communities, and contrast of nodes with the communities of the other view.

With R (n x K) the soft assignments of the nodes of a view, A its edges without loops, F = R'AR and a penalty lambda,

- `deca` = (lambda sum_kl F_kl - (n - 1 + lambda) tr F) / (n (n - 1)) + tr(R'R) / (2 n)

The first part rewards edges within communities and penalizes edges between them; the second keeps assignments soft.
With labels the hard assignments, unit rows h and C the means of the communities (constants, not normalized),

- `community_contrast` = mean over nodes i of both views of -log exp(h_i'C_k(i) / tau) / sum_k exp(h_i'C_k / tau)

in which C and k(i) are those of the other view. Differences from the released code: A stays sparse, O(m K) instead of
O(n^2 K); empty communities are excluded from the sum, whereas the released code counts each as exp(0).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ssge.objectives.infonce import unit_rows
from ssge.ops.communities import community_means, edges_between
from ssge.ops.sparse import SparseMatrix


def deca(r: Tensor, edges: SparseMatrix, penalty: float) -> Tensor:
    """Return the density of the edges between communities minus that within them.

    Parameters
    ----------
    r
        R, n x K, rows of sum 1; see `ssge.ops.communities.soft_assignments`.
    edges
        A, n x n; see `ssge.ops.edges.edge_matrix`.
    penalty
        Lambda of the paper.
    """
    n = r.shape[0]
    between = edges_between(r, edges)
    density = (penalty * between.sum() - (n - 1 + penalty) * between.trace()) / max(n * (n - 1), 1)
    return density + r.square().sum() / (2 * n)


def community_contrast(
    h1: Tensor, h2: Tensor, labels1: Tensor, labels2: Tensor, count: int, temperature: float
) -> Tensor:
    """Return the mean cross-entropy of nodes over the communities of the other view. O(n K d) time, O(n K) memory.

    Parameters
    ----------
    h1, h2
        Rows of the two views, n x d; their norms are ignored.
    labels1, labels2
        Community of each node by each view, ``r.argmax(1)``.
    count
        K.
    temperature
        tau.
    """
    h1, h2 = unit_rows(h1), unit_rows(h2)
    return (_contrast(h1, h2, labels2, count, temperature) + _contrast(h2, h1, labels1, count, temperature)) / 2


def _contrast(h: Tensor, other: Tensor, labels: Tensor, count: int, temperature: float) -> Tensor:
    scores = h @ community_means(other, labels, count).t() / temperature
    empty = torch.bincount(labels, minlength=count) == 0
    return functional.cross_entropy(scores.masked_fill(empty, -torch.inf), labels)
