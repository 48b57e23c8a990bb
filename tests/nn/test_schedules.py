"""Schedules at the points where their values are known."""

from __future__ import annotations

import pytest

from ssge.nn.schedules import momentum, warm_up_cosine


@pytest.mark.parametrize(("progress", "factor"), [(0, 0), (0.05, 0.5), (0.1, 1), (0.55, 0.5), (1, 0)])
def test_rate_warms_up_and_falls(progress: float, factor: float) -> None:
    assert warm_up_cosine(progress, 0.1) == pytest.approx(factor)


def test_rate_without_warm_up_starts_at_once() -> None:
    assert warm_up_cosine(0, 0) == 1
    assert warm_up_cosine(1, 1) == 1


@pytest.mark.parametrize(("progress", "value"), [(0, 0.9), (0.5, 0.95), (1, 1)])
def test_momentum_rises_to_one(progress: float, value: float) -> None:
    assert momentum(progress, 0.9) == pytest.approx(value)
