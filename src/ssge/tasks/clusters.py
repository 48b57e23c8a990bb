"""Groups of similar nodes: k-means on the directions of the vectors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation.clustering import kmeans

_CENTRAL = 5


class Clusters(NamedTuple):
    """Clusters in order of size, the largest first.

    ``cluster`` and ``distance`` have one entry per row: its cluster, and how far the row, scaled to unit norm, lies
    from the mean of its cluster. ``size`` has one entry per cluster. ``central`` holds, for each cluster, the
    positions of the five rows nearest to its mean, nearest first.
    """

    cluster: NDArray[np.int64]
    distance: NDArray[np.float64]
    size: NDArray[np.int64]
    central: list[NDArray[np.int64]]


def clusters(vectors: ArrayLike, k: int, seed: int = 0) -> Clusters:
    """Divide the rows into k clusters by `ssge.evaluation.clustering.kmeans`.

    Parameters
    ----------
    vectors
        n x d embedding.
    k
        Number of clusters, 1..n.
    seed
        Of the starts of k-means.
    """
    if not 0 <= seed < 2**32:
        raise InputError(f"seed must be 0..2^32-1; received {seed}.")
    found = kmeans(vectors, k, seed)
    size = np.bincount(found.cluster, minlength=k)
    by_size = np.argsort(-size, kind="stable")
    rank = np.argsort(by_size)
    cluster = rank[found.cluster]
    order = np.lexsort((found.distance, cluster))
    central = [part[:_CENTRAL] for part in np.split(order, np.cumsum(size[by_size])[:-1])]
    return Clusters(cluster, found.distance, size[by_size], central)
