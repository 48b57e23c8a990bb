"""One number and its spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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
