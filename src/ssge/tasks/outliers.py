"""Outliers: nodes that are unlike all others."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation._arrays import checked_embedding
from ssge.ops.neighbors import nearest


def outlier_scores(vectors: ArrayLike, neighbors: int = 20) -> NDArray[np.float64]:
    """Return an outlier score for each row: its mean cosine distance to its nearest rows.

        score_i = 1 - (1/k) sum over the k nearest rows j of cos(z_i, z_j),

    with columns centered first; between 0 (k others point the same way) and 2. Scores of one embedding can be
    compared with each other, not with those of another. Cost O(n^2 d) time, bounded memory.

    Parameters
    ----------
    vectors
        n x d embedding.
    neighbors
        k; in a smaller graph all other nodes.

    Notes
    -----
    The score was chosen by planting outliers into three graphs (``benchmarks/outliers.py``). It finds nodes with edges
    that contradict the rest of the graph: rewired nodes, and random nodes joined to cliques. Nodes that got the
    features of another node are found hardly better than by chance, since a graph convolution blends a node's own
    features with those of its neighbors. The squared Mahalanobis distance, the natural score for a Gaussian target,
    is *below* chance there: a node with a contradictory neighborhood is averaged towards the mean, not away from it.
    For the same reason a small norm of the centered vector is as good a score on average, but depends on the degree.
    The number of neighbors hardly matters between 5 and 50.
    """
    rows = checked_embedding(vectors)
    n = rows.shape[0]
    if neighbors < 1:
        raise InputError(f"neighbors must be 1 or more; received {neighbors}.")
    if n == 1:
        return np.zeros(1)
    k = min(neighbors, n - 1)
    return np.asarray(1 - nearest(rows - rows.mean(axis=0), np.arange(n), k).score.mean(axis=1, dtype=np.float64))
