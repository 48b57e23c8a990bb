"""Clustering: how well k-means on the embedding finds the classes back."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation._arrays import checked_embedding, checked_labels, unit_rows
from ssge.evaluation.scores import mean_std

SPARSE = 0.05
"""Share of entries other than zero below which k-means takes a sparse matrix, in less time than a dense one (at the
size of CoauthorCS an eighth of it with 1 % of them, two and a half times as much with 28 %)."""


class ClusterScore(NamedTuple):
    """Agreement of k-means with the classes: mean, deviation (n - 1) and single values over the seeds."""

    nmi: float
    ari: float
    nmi_std: float
    ari_std: float
    nmi_per_seed: tuple[float, ...]
    ari_per_seed: tuple[float, ...]


class KMeansClusters(NamedTuple):
    """For each row its cluster, 0..k-1, and the distance of the row, scaled to unit norm, from the cluster's mean."""

    cluster: NDArray[np.int64]
    distance: NDArray[np.float64]


def kmeans(embedding: ArrayLike, k: int, seed: int = 0) -> KMeansClusters:
    """Assign each row to one of k clusters: k-means on rows of unit norm, best of 10 starts.

    Rows of zeros stay zeros. A matrix of almost nothing but zeros, such as words of documents, is made sparse for it.
    """
    import scipy.sparse as sp
    from sklearn.cluster import KMeans

    rows = unit_rows(checked_embedding(embedding))
    if not 1 <= k <= rows.shape[0]:
        raise InputError(f"the number of clusters must be 1..{rows.shape[0]} (the number of rows); received {k}.")
    thin = np.count_nonzero(rows) < SPARSE * rows.size
    found = KMeans(n_clusters=k, n_init=10, random_state=seed).fit(sp.csr_array(rows) if thin else rows)
    labels = np.asarray(found.labels_, dtype=np.int64)
    return KMeansClusters(labels, np.linalg.norm(rows - found.cluster_centers_[labels], axis=1).astype(np.float64))


def kmeans_labels(embedding: ArrayLike, k: int, seed: int = 0) -> NDArray[np.int64]:
    """Return only the clusters that `kmeans` finds."""
    return kmeans(embedding, k, seed).cluster


def cluster(
    embedding: ArrayLike, labels: ArrayLike, num_clusters: int | None = None, seeds: Iterable[int] = range(10)
) -> ClusterScore:
    """Compare k-means clusters with the classes by NMI (arithmetic mean of the entropies) and ARI.

    Parameters
    ----------
    embedding
        n x d matrix.
    labels
        One class index per row; k-means does not see them.
    num_clusters
        k; the number of classes if None.
    seeds
        One k-means (best of 10 starts) for each.
    """
    import torch
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    from threadpoolctl import threadpool_limits

    array = checked_embedding(embedding)
    y = checked_labels(labels, array.shape[0])
    classes = np.unique(y)
    if classes.size < 2:
        raise InputError(f"labels must have at least 2 classes; received {classes.tolist()}.")
    k = classes.size if num_clusters is None else num_clusters
    # One thread per seed and several seeds at once: pools inside each other fight for the cores. OpenMP keeps its limit
    # for each thread by itself, hence the initializer.
    threads, alone = torch.get_num_threads(), (1, "openmp")
    with threadpool_limits(limits=1), ThreadPoolExecutor(threads, "", threadpool_limits, alone) as pool:
        found = list(pool.map(lambda seed: kmeans_labels(array, k, seed), seeds))
    if not found:
        raise InputError("seeds must hold at least one seed; received none.")
    nmi = tuple(float(normalized_mutual_info_score(y, f)) for f in found)
    ari = tuple(float(adjusted_rand_score(y, f)) for f in found)
    (nmi_mean, nmi_std), (ari_mean, ari_std) = mean_std(nmi), mean_std(ari)
    return ClusterScore(nmi_mean, ari_mean, nmi_std, ari_std, nmi, ari)
