"""Label-free metrics of an embedding on edges. Training has seen these edges, so they are no test."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssge.errors import InputError
from ssge.evaluation._arrays import checked_embedding, unit_rows

_MOST = 100_000


def edge_figures(embedding: ArrayLike, edges: NDArray[np.int64]) -> dict[str, float]:
    """Compare the cosines of linked nodes with those of random pairs.

    Parameters
    ----------
    embedding
        n x d.
    edges
        2 x m positions of nodes. More than 100,000 are subsampled.

    Returns
    -------
    dict
        ``edge_cosine`` and ``pair_cosine`` (mean over edges, and over random pairs of different nodes) and ``edge_auc``
        (probability that an edge has a higher cosine than a random pair; ties count half). Empty for a graph without
        edges.
    """
    from scipy.stats import mannwhitneyu

    rows = unit_rows(checked_embedding(embedding))
    n = rows.shape[0]
    if edges.size and (edges.min() < 0 or edges.max() >= n):
        raise InputError(f"edges must hold rows 0..{n - 1}; received {edges.min()}..{edges.max()}.")
    if not edges.size or n < 3:
        return {}
    rng = np.random.default_rng(0)
    linked = edges if edges.shape[1] <= _MOST else edges[:, rng.choice(edges.shape[1], _MOST, replace=False)]
    first = rng.integers(0, n, linked.shape[1])
    other = (first + rng.integers(1, n, first.size)) % n
    near, far = (_cosines(rows, *pair) for pair in (linked, (first, other)))
    above = float(mannwhitneyu(near, far).statistic) / (near.size * far.size)
    return {"edge_cosine": float(near.mean()), "pair_cosine": float(far.mean()), "edge_auc": above}


def _cosines(rows: NDArray[Any], i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float64]:
    step = 1 << 14
    parts = [
        np.einsum("ij,ij->i", rows[i[at : at + step]], rows[j[at : at + step]], dtype=np.float64)
        for at in range(0, i.size, step)
    ]
    return np.concatenate(parts)
