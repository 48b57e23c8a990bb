"""L-BFGS for smooth convex functions without bounds.

SciPy's L-BFGS-B supports bounds, and its overhead is several times the cost of a small cross entropy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from ssge.evaluation._arrays import Matrix

_MEMORY = 10
_DECREASE = 1e-4  # required share of the predicted decrease
_SHORTEST = 1e-10


def minimize(
    objective: Callable[[Matrix], tuple[float, Matrix]], x: Matrix, curvature: Matrix, tolerance: float, max_iter: int
) -> Matrix:
    """Return a point at which no entry of the gradient exceeds ``tolerance``, or the last iterate.

    Parameters
    ----------
    objective
        Maps a point to its value and its gradient.
    x
        The point to start from, an array of any shape.
    curvature
        A positive estimate of the diagonal of the Hessian, of a shape that broadcasts to that of ``x``.
    tolerance, max_iter
        Stopping criteria.
    """
    value, gradient = objective(x)
    pairs: deque[tuple[Matrix, Matrix, float]] = deque(maxlen=_MEMORY)
    scale, rounding = 1.0, 4 * float(np.finfo(x.dtype).eps)
    for _ in range(max_iter):
        if np.abs(gradient).max() <= tolerance:
            break
        direction, weights = gradient.copy(), []
        for step, change, inner in reversed(pairs):
            weights.append(np.vdot(step, direction) / inner)
            direction -= weights[-1] * change
        direction *= scale / curvature
        for (step, change, inner), weight in zip(pairs, reversed(weights), strict=True):
            direction += (weight - np.vdot(change, direction) / inner) * step
        slope, length = np.vdot(gradient, direction), 1.0
        while True:  # halve the step until the decrease suffices
            new = x - length * direction
            new_value, new_gradient = objective(new)
            if new_value <= value - _DECREASE * length * slope + rounding * abs(value):
                break
            length /= 2
            if length < _SHORTEST:  # rounding hides any further decrease
                return x
        step, change = new - x, new_gradient - gradient
        x, value, gradient = new, new_value, new_gradient
        inner = float(np.vdot(step, change))
        if inner > 0:
            pairs.append((step, change, inner))
            scale = inner / float(np.vdot(change, change / curvature))
    return x
