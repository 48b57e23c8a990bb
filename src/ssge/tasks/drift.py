"""Drift: how far the vectors of the same nodes moved from one embedding to another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.io.embeddings import find_ids


def drift(
    before: tuple[NDArray[Any], NDArray[np.floating[Any]]], after: tuple[NDArray[Any], NDArray[np.floating[Any]]]
) -> NDArray[np.float64]:
    """Return the cosine of the two vectors of each node that two embeddings (ids, vectors) share.

    The embeddings are of one model, or of a model and its warm start. Models trained apart have unrelated axes, and a
    cosine between them means nothing.
    """
    old = find_ids(before[0], after[0])
    shared = np.flatnonzero(old >= 0)
    x, y = before[1][old[shared]].astype(np.float64), after[1][shared].astype(np.float64)
    norms = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    cosine: NDArray[np.float64] = np.divide((x * y).sum(axis=1), norms, out=np.ones(len(shared)), where=norms > 0)
    return cosine
