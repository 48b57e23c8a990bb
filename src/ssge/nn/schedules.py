"""Schedules: functions of the training progress from 0 to 1."""

from __future__ import annotations

import math


def warm_up_cosine(progress: float, warm_up: float) -> float:
    """Return the factor of the learning rate: linear from 0 to 1 during ``warm_up``, then cosine decay to 0."""
    if progress < warm_up:
        return progress / warm_up
    return (1 + math.cos(math.pi * (progress - warm_up) / max(1 - warm_up, 1e-12))) / 2


def momentum(progress: float, start: float) -> float:
    """Return the momentum of a moving average, which rises from ``start`` to 1 on a cosine schedule."""
    return 1 - (1 - start) * (1 + math.cos(math.pi * progress)) / 2
