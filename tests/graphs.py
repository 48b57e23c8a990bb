"""Small graphs for the tests."""

from __future__ import annotations

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
