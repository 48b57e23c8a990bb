"""K-means: greedy k-means++ starts and Lloyd's iterations, as in scikit-learn, in fewer operations.

The starts draw their centers in step, so that one matrix product compares all candidates with all rows. An iteration
of Lloyd's compares rows only with the centers that moved, and updates sums only by the rows that changed their cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.evaluation._arrays import Matrix

_ITERATIONS = 300
_COINCIDENT = 1e-6  # squared distance of unit rows within the rounding of float32


class Partition(NamedTuple):
    """Cluster of each row, the k x d means, and the sum of squared distances of rows from their means."""

    labels: NDArray[np.int64]
    centers: Matrix
    inertia: float


def best_partitions(rows: Any, k: int, starts: int, seeds: Sequence[int]) -> list[Partition]:
    """Return, for each seed, the partition of least inertia over some starts; ``rows`` is an array or a CSR array."""
    import torch
    from threadpoolctl import threadpool_limits

    norms = np.asarray((rows * rows).sum(axis=1)).ravel()
    chosen = np.concatenate([plus_plus(rows, norms, k, starts, np.random.default_rng(seed)) for seed in seeds])
    # One thread per start and several starts at once: pools inside each other compete for the cores.
    with threadpool_limits(limits=1), ThreadPoolExecutor(torch.get_num_threads()) as pool:
        found = list(pool.map(lambda first: lloyd(rows, norms, _dense(rows[first])), chosen))
    return [min(found[i : i + starts], key=lambda one: one.inertia) for i in range(0, len(found), starts)]


def plus_plus(rows: Any, norms: Matrix, k: int, starts: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return starts x k positions of rows, drawn by greedy k-means++.

    Each further center is the best of 2 + log(k) rows drawn with probability proportional to the squared distance
    from the nearest center so far: the one that leaves the least sum of squared distances.
    """
    n, trials = rows.shape[0], 2 + int(np.log(k))
    every = np.arange(starts)
    chosen = np.empty((starts, k), dtype=np.int64)
    chosen[:, 0] = rng.integers(n, size=starts)
    nearest = _squared(rows, norms, chosen[:, 0])
    for step in range(1, k):
        mass = nearest.cumsum(axis=1, dtype=np.float64)
        drawn = rng.random((starts, trials)) * mass[:, -1:]
        candidates = np.stack([np.searchsorted(m, at) for m, at in zip(mass, drawn, strict=True)]).clip(max=n - 1)
        left = _squared(rows, norms, candidates.ravel()).reshape(starts, trials, n)
        np.minimum(left, nearest[:, None], out=left)
        best = left.sum(axis=2, dtype=np.float64).argmin(axis=1)
        chosen[:, step], nearest = candidates[every, best], left[every, best]
    return chosen


def lloyd(rows: Any, norms: Matrix, centers: Matrix) -> Partition:
    """Move the centers, in place, to the means of their nearest rows until no row changes its cluster."""
    n, k = rows.shape[0], len(centers)
    every = np.arange(n)
    closeness = np.empty((k, n), dtype=norms.dtype)  # x.c - |c|^2 / 2: largest for the nearest center
    labels, sums, count = np.full(n, -1), np.zeros(centers.shape), np.zeros(k)
    changed = np.arange(k)
    for _ in range(_ITERATIONS):
        part = centers[changed]
        closeness[changed] = _product(rows, part) - np.square(part).sum(axis=1, keepdims=True) / 2
        new = _without_empty(closeness.argmax(axis=0), norms - 2 * closeness.max(axis=0), k)
        moved = np.flatnonzero(new != labels)
        if moved.size == 0:
            break
        left = np.flatnonzero(labels[moved] >= 0)
        signs = np.repeat(np.array([1, -1], norms.dtype), [moved.size, left.size])
        clusters = np.concatenate([new[moved], labels[moved[left]]])
        columns = np.concatenate([np.arange(moved.size), left])
        flow = sp.csr_array((signs, (clusters, columns)), shape=(k, moved.size))
        sums += _dense(flow @ rows[moved])
        count += flow.sum(axis=1)
        labels = new
        changed = np.unique(clusters[count[clusters] > 0])
        centers[changed] = sums[changed] / count[changed, None]
    inertia = float((norms - 2 * closeness[labels, every]).sum(dtype=np.float64))
    return Partition(labels, centers, inertia)


def _without_empty(labels: NDArray[np.int64], squared: Matrix, k: int) -> NDArray[np.int64]:
    """Give each empty cluster the row that is farthest from its center, unless every row lies on its center."""
    for empty in np.flatnonzero(np.bincount(labels, minlength=k) == 0):
        farthest = squared.argmax()
        if squared[farthest] < _COINCIDENT:
            break
        labels[farthest], squared[farthest] = empty, 0
    return labels


def _product(rows: Any, part: Matrix) -> Matrix:
    product: Matrix = (rows @ part.T).T if sp.issparse(rows) else part @ rows.T
    return product


def _squared(rows: Any, norms: Matrix, positions: NDArray[np.int64]) -> Matrix:
    """Return squared distances from some rows to all rows."""
    squared = norms[positions, None] + norms - 2 * _product(rows, _dense(rows[positions]))
    return np.maximum(squared, 0, out=squared)


def _dense(part: Any) -> Matrix:
    array: Matrix = part.toarray() if sp.issparse(part) else np.asarray(part)
    return array
