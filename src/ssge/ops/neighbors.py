"""Nearest neighbors by cosine or Euclidean distance: exact, in chunks of bounded memory.

Ties go to the lower position, so results are reproducible. scikit-learn's ``NearestNeighbors`` guarantees no order of
ties, and cannot recover which of several equal rows it dropped.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, UnknownNameError

Metric: TypeAlias = Literal["cosine", "euclidean"]
METRICS: tuple[Metric, ...] = ("cosine", "euclidean")

_ENTRIES = 1 << 25  # similarities in memory at once


class Neighbors(NamedTuple):
    """For each query row: positions of its nearest rows, nearest first, and their cosines or distances."""

    position: NDArray[np.int64]
    score: NDArray[np.floating[Any]]


def nearest(
    vectors: NDArray[np.floating[Any]],
    queries: NDArray[np.int64],
    k: int,
    metric: Metric = "cosine",
    chunk: int | None = None,
    exclude: sp.csr_array | None = None,
) -> Neighbors:
    """Return the k nearest neighbors of some rows, excluding themselves; ties go to the lower position.

    Cost O(q n d) time, O(chunk n) memory; the default chunk keeps that to 2^25 numbers.

    Parameters
    ----------
    exclude
        n x n: entry (i, j) excludes row j from the neighbors of row i. If fewer than k rows remain, the result is
        padded with positions -1 and scores NaN.
    """
    rows = comparable(vectors, metric)
    n = rows.shape[0]
    check_count(k, n)
    offset = np.square(rows).sum(axis=1) / 2 if metric == "euclidean" else 0
    step = chunk or max(1, _ENTRIES // n)
    found = Neighbors(np.empty((len(queries), k), dtype=np.int64), np.empty((len(queries), k), dtype=rows.dtype))
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        # For one query, |x - y|^2 / 2 and |y|^2 / 2 - x y differ by a constant.
        similar = rows[part] @ rows.T - offset
        similar[np.arange(len(part)), part] = -np.inf
        if exclude is not None:
            out = exclude[part].tocoo()
            similar[out.row, out.col] = -np.inf
        best = scored(rows, part, _largest(similar, k), metric)
        if exclude is not None:
            best = _without(best, np.isneginf(np.take_along_axis(similar, best.position, axis=1)))
        found.position[start : start + step], found.score[start : start + step] = best
    return found


def comparable(vectors: NDArray[np.floating[Any]], metric: Metric) -> NDArray[np.floating[Any]]:
    """Return rows that rank neighbors by inner products (cosine) or distances (euclidean).

    All searches prepare vectors in this way. For cosine, rows are scaled to unit norm and nothing else, so a vector
    database that ranks the exported vectors by cosine finds the same neighbors. A row of zeros has cosine 0 with all
    rows. For distances, the mean is subtracted, which changes no distance but improves precision.
    """
    if metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS)
    if metric == "euclidean":
        return np.asarray(vectors - vectors.mean(axis=0))
    peak = np.abs(vectors).max(axis=1, keepdims=True)  # divided out first, so that no square underflows or overflows
    rows = vectors / np.where(peak > 0, peak, 1)
    rows /= np.where(peak > 0, np.linalg.norm(rows, axis=1, keepdims=True), 1)
    return np.asarray(rows)


def check_count(k: int, n: int) -> None:
    """Raise an error unless there are k other nodes."""
    if not 1 <= k < n:
        raise InputError(f"k must be 1..{n - 1} (one less than the number of nodes); received {k}.")


def scored(
    rows: NDArray[np.floating[Any]], queries: NDArray[np.int64], position: NDArray[np.int64], metric: Metric
) -> Neighbors:
    """Return the neighbors found, nearest first, with their cosines or distances.

    Distances are computed from the differences: the expanded square would lose precision for close rows.
    """
    score = np.empty(position.shape, dtype=rows.dtype)
    for rank in range(position.shape[1]):
        others = rows[position[:, rank]]
        if metric == "cosine":
            score[:, rank] = np.einsum("ij,ij->i", rows[queries], others)
        else:
            score[:, rank] = np.linalg.norm(rows[queries] - others, axis=1)
    distance = -score if metric == "cosine" else score
    order = np.lexsort((position, distance), axis=1)
    return Neighbors(np.take_along_axis(position, order, axis=1), np.take_along_axis(score, order, axis=1))


def _without(found: Neighbors, out: NDArray[np.bool_]) -> Neighbors:
    """Move excluded neighbors to the end, as -1 and NaN."""
    order = np.argsort(out, axis=1, kind="stable")
    position, score = (np.take_along_axis(part, order, axis=1) for part in found)
    last = np.take_along_axis(out, order, axis=1)
    return Neighbors(np.where(last, -1, position), np.where(last, np.nan, score))


def _largest(similar: NDArray[np.floating[Any]], k: int) -> NDArray[np.int64]:
    """Return the columns of the k largest entries of each row, in ascending order; ties go to the first."""
    n = similar.shape[1]
    bound = np.partition(similar, n - k, axis=1)[:, n - k, None]
    chosen = similar >= bound
    tied = np.flatnonzero(np.count_nonzero(chosen, axis=1) > k)
    if tied.size:
        part, limit = similar[tied], bound[tied]
        above, equal = part > limit, part == limit
        room = k - np.count_nonzero(above, axis=1)[:, None]
        chosen[tied] = above | (equal & (np.cumsum(equal, axis=1) <= room))
    return np.nonzero(chosen)[1].reshape(-1, k)
