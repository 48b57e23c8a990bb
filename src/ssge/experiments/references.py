"""Reference rows: raw features, propagated features, edges alone and an untrained encoder.

`evaluation.cluster` makes a clustering of each: k-means on raw features, and spectral clustering of the graph.
Features keep all their columns. The first 512 singular vectors of A^2 X lose 0.5 points of accuracy on the import
graph (``benchmarks/scoring.py``), so wide rows are not reduced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.graph import Graph
from ssge.ops.propagation import dense_if_filled, normalized_adjacency, propagate
from ssge.ops.structural import spectral_embedding
from ssge.runs.plan import Plan


def raw_features(graph: Graph) -> NDArray[np.floating[Any]]:
    """Return X as it is."""
    return _dense(graph.features)


def propagated_features(graph: Graph, hops: int = 2) -> NDArray[np.floating[Any]]:
    """Return A^hops X, with A the symmetrically normalized adjacency with self-loops: a GCN without weights."""
    return _dense(propagate(graph, hops)).astype(graph.features.dtype, copy=False)


def mean_of_hops(graph: Graph, hops: int = 8) -> NDArray[np.floating[Any]]:
    """Return S = (X + A X + ... + A^K X) / (K + 1) for K hops, with A as in `propagated_features`.

    By Horner's scheme, S_0 = X and S_(k+1) = X + A S_k. Sparse features stay sparse until a quarter of S is filled.
    """
    adjacency, features = normalized_adjacency(graph), graph.features
    total = features
    for _ in range(hops):
        total = dense_if_filled(features + adjacency @ total)
    return _dense(total / (hops + 1)).astype(features.dtype, copy=False)


def spectral_clustering(graph: Graph) -> NDArray[np.floating[Any]]:
    """Return as many eigenvectors of the graph's regularized Laplacian as there are classes; features play no part.

    K-means on its rows, scaled to unit norm, is spectral clustering.
    """
    return spectral_embedding(graph.edges, graph.weights, graph.num_nodes, graph.num_classes).astype(np.float32)


def untrained_encoder(graph: Graph, plan: Plan) -> NDArray[np.floating[Any]]:
    """Return the raw output of a freshly built, never trained encoder."""
    built = plan.build(graph)
    built.offset = 0.0  # a setting of trained embeddings, whose root mean square is 1
    embedding: NDArray[np.floating[Any]] = built.embed(graph).cpu().numpy()
    return embedding


UNTRAINED: dict[str, Callable[[Graph], NDArray[np.floating[Any]]]] = {
    "raw features": raw_features,
    "propagated features": propagated_features,
    "mean of 8 hops": mean_of_hops,
    "spectral clustering": spectral_clustering,
}
"""Rows that depend on the graph alone."""

CLUSTERINGS = frozenset({"spectral clustering"})
"""Rows that are a clustering and nothing else: no classifier is trained on them."""


def _dense(features: Any) -> NDArray[np.floating[Any]]:
    array: NDArray[np.floating[Any]] = features.toarray() if sp.issparse(features) else np.asarray(features)
    return array
