"""L-BFGS on functions with known minima, and in fewer steps with the right curvature."""

from __future__ import annotations

import numpy as np
import pytest

from ssge.evaluation._lbfgs import minimize


def quadratic(hessian, minimum, calls):
    def objective(x):
        calls.append(x)
        gradient = hessian @ (x - minimum)
        return float((x - minimum) @ gradient / 2), gradient

    return objective


def test_minimum_of_a_quadratic_is_found():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(30, 30))
    hessian, minimum = factor @ factor.T + np.eye(30), rng.normal(size=30)
    found = minimize(quadratic(hessian, minimum, []), np.zeros(30), np.ones(30), 1e-9, 1000)
    np.testing.assert_allclose(found, minimum, atol=1e-8)


def test_exact_curvature_of_a_diagonal_quadratic_needs_one_step():
    scales, minimum = np.logspace(-3, 3, 40), np.linspace(-1, 1, 40)
    good: list[np.ndarray] = []
    plain: list[np.ndarray] = []
    for curvature, calls in ((scales, good), (np.ones(40), plain)):
        found = minimize(quadratic(np.diag(scales), minimum, calls), np.zeros(40), curvature, 1e-5, 5000)
        assert np.abs(scales * (found - minimum)).max() <= 1e-5
    assert len(good) == 2
    assert len(plain) > 20


def test_a_step_that_overshoots_is_shortened():
    values = []

    def objective(x):  # log cosh: its slope is bounded, its curvature falls with distance
        values.append(float(np.logaddexp(x, -x).sum()))
        return values[-1], np.tanh(x)

    found = minimize(objective, np.full(3, 2.0), np.full(3, 0.01), 1e-8, 100)
    assert max(values) > values[0]
    np.testing.assert_allclose(found, 0, atol=1e-7)


@pytest.mark.parametrize("max_iter", [0, 3])
def test_iterations_are_bounded_and_the_start_is_not_changed(max_iter):
    start, calls = np.ones(20), []
    minimize(quadratic(np.diag(np.logspace(0, 4, 20)), np.zeros(20), calls), start, np.full(20, 1e4), 1e-12, max_iter)
    assert len(calls) == max_iter + 1
    assert np.array_equal(start, np.ones(20))
