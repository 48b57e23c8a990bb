"""Reference rows: what raw features, propagated features, edges alone and an untrained encoder are worth.

`evaluation.cluster` makes a clustering of each: k-means on raw features, and spectral clustering of the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.graph import Graph
from ssge.ops.structural import spectral_embedding
from ssge.runs.plan import Plan


def raw_features(graph: Graph) -> NDArray[np.floating[Any]]:
    """Return X as it is."""
    return _dense(graph.features)


def propagated_features(graph: Graph, hops: int = 2) -> NDArray[np.floating[Any]]:
    """Return A^hops X, with A the symmetrically normalized adjacency with self-loops: a GCN without weights."""
    n = graph.num_nodes
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    source, target = graph.edges
    adjacency = sp.coo_array((weights, (target, source)), shape=(n, n)).tocsr() + sp.eye_array(n, format="csr")
    incoming, outgoing = adjacency.sum(axis=1), adjacency.sum(axis=0)
    adjacency = sp.diags_array(incoming**-0.5) @ adjacency @ sp.diags_array(outgoing**-0.5)
    features = graph.features
    for _ in range(hops):
        features = adjacency @ features
    return _dense(features).astype(graph.features.dtype)


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
    "spectral clustering": spectral_clustering,
}
"""Rows that depend on the graph alone."""

CLUSTERINGS = frozenset({"spectral clustering"})
"""Rows that are a clustering and nothing else: no classifier is trained on them."""


def _dense(features: Any) -> NDArray[np.floating[Any]]:
    array: NDArray[np.floating[Any]] = features.toarray() if sp.issparse(features) else np.asarray(features)
    return array
