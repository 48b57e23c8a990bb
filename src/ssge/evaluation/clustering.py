"""Clustering: agreement of k-means on the embedding with the classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation._arrays import SPARSE, Matrix, checked_embedding, checked_labels, unit_rows
from ssge.evaluation._lloyd import best_partitions
from ssge.evaluation.scores import agreement, mean_std

STARTS = 10


class ClusterScore(NamedTuple):
    """Agreement of k-means with the classes: mean, standard deviation (ddof 1) and values over the seeds."""

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

    Rows of zeros stay zeros. Starts are drawn by greedy k-means++, distances computed in float32.
    """
    array = checked_embedding(embedding)
    if not 1 <= k <= array.shape[0]:
        raise InputError(f"the number of clusters must be 1..{array.shape[0]} (the number of rows); received {k}.")
    rows = unit_rows(array)
    found = best_partitions(_compact(rows), k, STARTS, [seed])[0]
    member = sp.csr_array((np.ones(len(rows)), (found.labels, np.arange(len(rows)))), shape=(k, len(rows)))
    means = member @ rows / np.maximum(member.sum(axis=1), 1)[:, None]
    return KMeansClusters(found.labels, np.linalg.norm(rows - means[found.labels], axis=1).astype(np.float64))


def cluster(embedding: ArrayLike, labels: ArrayLike, seeds: Iterable[int] = range(10)) -> ClusterScore:
    """Compare k-means clusters with the classes by NMI (arithmetic mean of the entropies) and ARI.

    Parameters
    ----------
    embedding
        n x d matrix.
    labels
        One class index per row; k-means does not see them.
    seeds
        One k-means (best of 10 starts) per seed.
    """
    chosen = list(seeds)
    if not chosen:
        raise InputError("seeds must hold at least one seed; received none.")
    array = checked_embedding(embedding)
    y = checked_labels(labels, array.shape[0])
    classes = np.unique(y)
    if classes.size < 2:
        raise InputError(f"labels must have at least 2 classes; received {classes.tolist()}.")
    found = [one.labels for one in best_partitions(_compact(unit_rows(array)), classes.size, STARTS, chosen)]
    nmi, ari = zip(*(agreement(y, f) for f in found), strict=True)
    (nmi_mean, nmi_std), (ari_mean, ari_std) = mean_std(nmi), mean_std(ari)
    return ClusterScore(nmi_mean, ari_mean, nmi_std, ari_std, nmi, ari)


def _compact(rows: Matrix) -> Any:
    """Return rows in float32; as a CSR array if almost all entries are zero, as in word counts."""
    rows = rows.astype(np.float32, copy=False)
    return sp.csr_array(rows) if np.count_nonzero(rows) < SPARSE * rows.size else rows
