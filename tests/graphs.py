"""Small graphs for the tests."""

from __future__ import annotations

import numpy as np

from ssge.graph import Graph


def random_graph(n: int = 60, p: int = 12, m: int = 150, seed: int = 0, weighted: bool = False) -> Graph:
    """Return a small random graph with labels; node n-1 is isolated."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - 1, size=(2, m))
    return Graph.of(
        edges=edges,
        features=rng.normal(size=(n, p)),
        weights=rng.uniform(0.5, 2, size=m) if weighted else None,
        labels=rng.integers(0, 3, size=n),
        dtype=np.float64,
        name="random",
    )
