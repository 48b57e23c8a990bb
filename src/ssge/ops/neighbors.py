"""Nearest neighbours by cosine, exact, in chunks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError


class Neighbors(NamedTuple):
    """For each query row: positions of its nearest rows, nearest first, and their cosines."""

    position: NDArray[np.int64]
    cosine: NDArray[np.floating[Any]]


def nearest(vectors: NDArray[np.floating[Any]], queries: NDArray[np.int64], k: int, chunk: int = 1024) -> Neighbors:
    """Return the k rows nearest to each of some rows, themselves left out; ties go to the lower position.

    Columns are centred first: the objective leaves the mean of a column free, and a common offset would make all
    cosines alike. Cost O(q n d) time, O(chunk n) memory.
    """
    n = vectors.shape[0]
    if not 1 <= k < n:
        raise InputError(f"k must be 1..{n - 1} (one less than the number of nodes); received {k}.")
    rows = vectors - vectors.mean(axis=0)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(rows.dtype).tiny)
    index = np.empty((len(queries), k), dtype=np.int64)
    cosine = np.empty((len(queries), k), dtype=rows.dtype)
    for start in range(0, len(queries), chunk):
        part = queries[start : start + chunk]
        similar = rows[part] @ rows.T
        similar[np.arange(len(part)), part] = -np.inf
        best = np.argsort(-similar, axis=1, kind="stable")[:, :k]
        index[start : start + chunk] = best
        cosine[start : start + chunk] = np.take_along_axis(similar, best, axis=1)
    return Neighbors(index, cosine)
