"""Drift: how far the vectors of the same nodes moved from one embedding to another."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.io.embeddings import find_ids


class Drift(NamedTuple):
    """Of the nodes that two embeddings share: how many, and the cosine of their two vectors.

    Attributes
    ----------
    nodes, new
        Nodes in both, and nodes in the second alone.
    mean, low
        Mean cosine, and the one that a twentieth of the nodes stays below.
    """

    nodes: int
    new: int
    mean: float
    low: float


def drift(
    before: tuple[NDArray[Any], NDArray[np.floating[Any]]], after: tuple[NDArray[Any], NDArray[np.floating[Any]]]
) -> Drift:
    """Compare two embeddings (ids, vectors) of one model, or of a model and its warm start.

    Models trained apart have unrelated axes, and a cosine between them means nothing.
    """
    old = find_ids(before[0], after[0])
    shared = np.flatnonzero(old >= 0)
    x, y = before[1][old[shared]].astype(np.float64), after[1][shared].astype(np.float64)
    norms = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    cosine = np.divide((x * y).sum(axis=1), norms, out=np.ones(len(shared)), where=norms > 0)
    if not shared.size:
        return Drift(0, len(after[0]), float("nan"), float("nan"))
    return Drift(len(shared), len(after[0]) - len(shared), float(cosine.mean()), float(np.quantile(cosine, 0.05)))
