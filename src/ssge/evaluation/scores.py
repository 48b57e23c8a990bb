"""Mean and standard deviation of scores; agreement of two partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError


class MeanStd(NamedTuple):
    """Mean and sample standard deviation of repeated scores."""

    mean: float
    std: float


def mean_std(values: Sequence[float]) -> MeanStd:
    """Mean and standard deviation (n - 1 in the denominator; 0 for a single value) of repeated scores."""
    if len(values) == 0:
        raise InputError("values must hold at least one score; received none.")
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return MeanStd(float(np.mean(values)), deviation)


def agreement(first: NDArray[np.int64], second: NDArray[np.int64]) -> tuple[float, float]:
    """Return NMI (by the arithmetic mean of the entropies) and ARI of two partitions of the same rows.

    Both equal those of scikit-learn, whose import takes longer than many clusterings.
    """
    _, first = np.unique(first, return_inverse=True)
    columns, second = np.unique(second, return_inverse=True)
    together = np.bincount(first * columns.size + second, minlength=(int(first.max()) + 1) * columns.size)
    counts = [together, *(together.reshape(-1, columns.size).sum(axis=axis) for axis in (0, 1))]
    joint, *own = (-float(p[p > 0] @ np.log(p[p > 0])) for p in (one / first.size for one in counts))
    pairs, *pairs_of = (float(one @ (one - 1)) for one in counts)
    expected, most = pairs_of[0] * pairs_of[1] / max(first.size * (first.size - 1), 1), sum(pairs_of) / 2
    nmi = max(sum(own) - joint, 0.0) / (sum(own) / 2) if sum(own) > 0 else 1.0
    return nmi, (pairs - expected) / (most - expected) if most != expected else 1.0
