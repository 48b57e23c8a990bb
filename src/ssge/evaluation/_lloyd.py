"""K-means: greedy k-means++ starts and Lloyd's iterations, as in scikit-learn, in fewer operations.

- All starts draw their centers in step, so one matrix product compares all candidates with all rows.
- An iteration of Lloyd's needs only x'c and c'c. Both follow from the inner products of rows with the sums of the
  clusters, and only clusters that gained or lost rows are updated.
- Few or wide rows are compared by their Gram matrix, computed once for all starts.
- Other rows with many columns start and iterate in their first principal components. For each seed, the best partition
  in all columns then continues in all columns until no row changes cluster.
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
_MOST_GRAM = 8192  # maximum number of rows of a Gram matrix: 256 MB
_WIDE = 8  # rows per column up to which a Gram matrix is faster
_PRINCIPAL = 64  # principal components for most of the iterations


class Partition(NamedTuple):
    """Cluster of each row, and the sum of squared distances of rows from the means of their clusters."""

    labels: NDArray[np.int64]
    inertia: float


class Rows:
    """Rows to be clustered, a dense array or a CSR array, and their inner products."""

    def __init__(self, values: Any) -> None:
        n, d = values.shape
        self.values = values
        # With few columns a copy is cheap, and products with it take a third of the time.
        self.transposed = values.T if sp.issparse(values) or d > _PRINCIPAL else np.ascontiguousarray(values.T)
        self.squared_norms: Matrix = np.asarray((values * values).sum(axis=1)).ravel()
        self.gram: Matrix | None = _dense(values @ values.T) if n <= min(_MOST_GRAM, _WIDE * d) else None

    def inner(self, positions: NDArray[np.int64]) -> Matrix:
        """Return the inner products of some rows with all rows."""
        return self.times(_dense(self.values[positions])) if self.gram is None else self.gram[positions]

    def times(self, vectors: Matrix) -> Matrix:
        """Return the inner products of some vectors with all rows."""
        product: Matrix = vectors @ self.transposed
        return product

    def principal(self, columns: int) -> Rows:
        """Return approximate first principal components of the rows, or the rows if that is not much narrower."""
        d = self.values.shape[1]
        if self.gram is not None or sp.issparse(self.values) or d < 4 * columns:
            return self
        drawn = np.random.default_rng(0).standard_normal((d, columns), dtype=self.values.dtype)
        axes = np.linalg.qr(self.values.T @ (self.values @ drawn))[0]
        return Rows(self.values @ axes)


def best_partitions(values: Any, k: int, starts: int, seeds: Sequence[int]) -> list[Partition]:
    """Return the partition with the least inertia over all starts, for each seed."""
    import torch
    from threadpoolctl import threadpool_limits

    rows = Rows(values)
    narrow = rows.principal(max(_PRINCIPAL, k))
    chosen = np.concatenate([plus_plus(narrow, k, starts, np.random.default_rng(seed)) for seed in seeds])

    def partition(first: NDArray[np.int64]) -> Partition:
        found = lloyd(narrow, assigned(narrow, first), k)
        return found if narrow is rows else found._replace(inertia=inertia(rows, found.labels, k))

    # One thread per start and several starts in parallel: nested thread pools compete for the cores.
    with threadpool_limits(limits=1), ThreadPoolExecutor(torch.get_num_threads()) as pool:
        found = list(pool.map(partition, chosen))
        best = [min(found[i : i + starts], key=lambda one: one.inertia) for i in range(0, len(found), starts)]
        return best if narrow is rows else list(pool.map(lambda one: lloyd(rows, one.labels, k), best))


def plus_plus(rows: Rows, k: int, starts: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return starts x k positions of rows, drawn by greedy k-means++.

    Each further center is the best of 2 + log(k) rows drawn with probability proportional to the squared distance
    from the nearest center so far: the one that leaves the least sum of squared distances.
    """
    norms, n, trials = rows.squared_norms, len(rows.squared_norms), 2 + int(np.log(k))

    def squared(positions: NDArray[np.int64]) -> Matrix:
        return np.maximum(norms[positions, None] + norms - 2 * rows.inner(positions), 0)

    every = np.arange(starts)
    chosen = np.empty((starts, k), dtype=np.int64)
    chosen[:, 0] = rng.integers(n, size=starts)
    nearest = squared(chosen[:, 0])
    for step in range(1, k):
        mass = nearest.cumsum(axis=1, dtype=np.float64)
        drawn = rng.random((starts, trials)) * mass[:, -1:]
        candidates = np.stack([np.searchsorted(m, at) for m, at in zip(mass, drawn, strict=True)]).clip(max=n - 1)
        left = squared(candidates.ravel()).reshape(starts, trials, n)
        np.minimum(left, nearest[:, None], out=left)
        best = left.sum(axis=2, dtype=np.float64).argmin(axis=1)
        chosen[:, step], nearest = candidates[every, best], left[every, best]
    return chosen


def assigned(rows: Rows, centers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each row the nearest of some rows."""
    norms = rows.squared_norms
    closeness = rows.inner(centers) - norms[centers, None] / 2  # x'c - c'c / 2: largest for the nearest center
    return _without_empty(closeness, norms)


def lloyd(rows: Rows, new: NDArray[np.int64], k: int) -> Partition:
    """Move centers to the means of their rows, and rows to their nearest center, until no row changes cluster."""
    values, norms, gram = rows.values, rows.squared_norms, rows.gram
    n, d = values.shape
    every = np.arange(n)
    closeness = np.full((k, n), -np.inf, dtype=norms.dtype)
    inner = np.zeros((k, n), dtype=norms.dtype)  # of the sums of the clusters with all rows
    sums, count, labels = np.zeros((k, d if gram is None else 0)), np.zeros(k), np.full(n, -1)
    for _ in range(_ITERATIONS):
        moved = np.flatnonzero(new != labels)
        if moved.size == 0:
            break
        left = np.flatnonzero(labels[moved] >= 0)
        signs = np.repeat(np.array([1, -1], norms.dtype), [moved.size, left.size])
        clusters = np.concatenate([new[moved], labels[moved[left]]])
        columns = np.concatenate([np.arange(moved.size), left])
        flow = sp.csr_array((signs, (clusters, columns)), shape=(k, moved.size))
        count += flow.sum(axis=1)
        changed, labels = np.unique(clusters), new
        if gram is None:
            sums += _dense(flow @ values[moved])
            inner[changed] = rows.times(sums[changed].astype(norms.dtype))
        else:
            inner += flow @ gram[moved]
        changed = changed[count[changed] > 0]  # an empty cluster keeps its center
        size = count[changed, None].astype(norms.dtype)
        squared = np.bincount(labels, inner[labels, every], k)[changed, None].astype(norms.dtype)
        closeness[changed] = inner[changed] / size - squared / (2 * size**2)
        new = _without_empty(closeness, norms)
    return Partition(labels, float((norms - 2 * closeness[labels, every]).sum(dtype=np.float64)))


def inertia(rows: Rows, labels: NDArray[np.int64], k: int) -> float:
    """Return the sum of squared distances of rows from the means of their clusters."""
    member = sp.csr_array((np.ones_like(rows.squared_norms), (labels, np.arange(len(labels)))), shape=(k, len(labels)))
    sums, count = _dense(member @ rows.values), np.bincount(labels, minlength=k)
    within = np.square(sums).sum(axis=1, dtype=np.float64) / np.maximum(count, 1)
    return float(rows.squared_norms.sum(dtype=np.float64) - within.sum())


def _without_empty(closeness: Matrix, norms: Matrix) -> NDArray[np.int64]:
    """Return the nearest cluster of each row; an empty one gets the farthest row, unless all rows equal a center."""
    most = closeness.max(axis=0)
    labels: NDArray[np.int64] = (closeness == most).argmax(axis=0)  # half the time of argmax on floats
    squared = norms - 2 * most
    for empty in np.flatnonzero(np.bincount(labels, minlength=len(closeness)) == 0):
        farthest = squared.argmax()
        if squared[farthest] < _COINCIDENT:
            break
        labels[farthest], squared[farthest] = empty, 0
    return labels


def _dense(part: Any) -> Matrix:
    array: Matrix = part.toarray() if sp.issparse(part) else np.asarray(part)
    return array
