"""Pairs of nodes that look like the same thing: each among the nearest of the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation._arrays import checked_embedding
from ssge.ops.neighbors import Neighbors, nearest

_NEIGHBORS = 5


class Duplicates(NamedTuple):
    """Pairs of rows, the most alike first.

    Attributes
    ----------
    pairs
        2 x m positions, the lower one first.
    cosine
        Of each pair.
    next
        The highest cosine that either of the two has with a third row: a pair that stands out is well above it.
    """

    pairs: NDArray[np.int64]
    cosine: NDArray[np.float64]
    next: NDArray[np.float64]


def duplicates(vectors: ArrayLike, k: int = 20, least: float = -1.0) -> Duplicates:
    """Return the k pairs of rows with the highest cosines, each of the two among the five nearest of the other.

    Cosines are those of `ssge.tasks.search.search`. Cost O(n^2 d) time, bounded memory.

    Parameters
    ----------
    vectors
        n x d embedding.
    k
        How many pairs, at most.
    least
        Lowest cosine of a pair.
    """
    rows = checked_embedding(vectors)
    n = rows.shape[0]
    if k < 1:
        raise InputError(f"k must be 1 or more; received {k}.")
    if not -1 <= least <= 1:
        raise InputError(f"least must be a cosine, -1..1; received {least}.")
    if n < 2:
        return Duplicates(np.empty((2, 0), np.int64), np.empty(0), np.empty(0))
    found = nearest(rows, np.arange(n), min(_NEIGHBORS, n - 1))
    source, target = np.repeat(np.arange(n), found.position.shape[1]), found.position.ravel()
    forward, backward = source * n + target, target * n + source
    both = np.isin(forward, backward) & (source < target) & (found.score.ravel() >= least)
    cosine = found.score.ravel()[both].astype(np.float64)
    pairs = np.stack([source[both], target[both]])
    best = np.lexsort((pairs[1], pairs[0], -cosine))[:k]
    pairs, cosine = pairs[:, best], cosine[best]
    return Duplicates(pairs, cosine, np.maximum(_third(found, *pairs), _third(found, *pairs[::-1])))


def _third(found: Neighbors, row: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the highest cosine of each row with any but the other of its pair; -1 where there is none."""
    position, score = found
    rest = np.where(position[row] == other[:, None], -1.0, score[row])
    return np.asarray(rest.max(axis=1, initial=-1.0), dtype=np.float64)
