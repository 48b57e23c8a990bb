"""Small graphs for the tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ssge.graph import Graph

X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [0.5, 0.5]])
PATH = np.array([[0, 1, 2], [1, 2, 3]])  # 0 -> 1 -> 2 -> 3
WEIGHTS = np.array([1.0, 2.0, 4.0])
ADJACENCY = sp.csr_array((WEIGHTS, tuple(PATH)), shape=(4, 4)).toarray()


def dense(graph: Graph) -> np.ndarray:
    """Return the matrix with the weight of the edge from j to i in row i, column j."""
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    matrix[graph.edges[1], graph.edges[0]] = 1 if graph.weights is None else graph.weights
    return matrix


def random_graph(
    n: int = 60,
    p: int = 12,
    m: int = 150,
    seed: int = 0,
    weighted: bool = False,
    directed: bool = False,
    sparse: bool = False,
    dtype: type[np.floating[Any]] = np.float64,
) -> Graph:
    """Return a small random graph with labels; node n-1 is isolated."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n - 1, size=(2, m))
    features = rng.normal(size=(n, p))
    return Graph.of(
        edges=edges,
        features=sp.csr_array(np.where(features > 0.3, features, 0)) if sparse else features,
        weights=rng.uniform(0.5, 2, size=m) if weighted else None,
        labels=rng.integers(0, 3, size=n),
        direction="in" if directed else "both",
        dtype=dtype,
        name="random",
    )
