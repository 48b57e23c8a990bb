"""Reference rows: raw features, training-free methods, edges alone and an untrained encoder.

`evaluation.cluster` makes a clustering of each: k-means on raw features, and spectral clustering of the graph.
Features keep all their columns. The first 512 singular vectors of A^2 X lose 0.5 points of accuracy on the import
graph (``benchmarks/scoring.py``), so wide rows are not reduced.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.graph import Graph
from ssge.methods import Method
from ssge.ops.structural import spectral_embedding
from ssge.runs.plan import Plan, plan
from ssge.training.device import Precision


def raw_features(graph: Graph) -> NDArray[np.floating[Any]]:
    """Return X as it is."""
    features: Any = graph.features
    return np.asarray(features.toarray() if sp.issparse(features) else features)


def training_free(graph: Graph, method: str, **settings: Any) -> NDArray[np.floating[Any]]:
    """Return the raw embedding of a training-free method (`ssge.methods`), by default with all columns of features."""
    settings = {"components": graph.num_features} | settings
    precision: Precision = "float64" if graph.features.dtype == np.float64 else "float32"
    planned = plan(graph.info, method, settings=settings, precision=precision)
    return _raw(planned.build(graph), graph.without_labels())


def propagated_features(graph: Graph) -> NDArray[np.floating[Any]]:
    """Return A^2 X, with A the symmetrically normalized adjacency with self-loops: a GCN without weights."""
    return training_free(graph, "sgc", hops=2)


def spectral_clustering(graph: Graph) -> NDArray[np.floating[Any]]:
    """Return as many eigenvectors of the graph's regularized Laplacian as there are classes; features play no part.

    K-means on its rows, scaled to unit norm, is spectral clustering.
    """
    return spectral_embedding(graph.edges, graph.weights, graph.num_nodes, graph.num_classes).astype(np.float32)


def untrained_encoder(graph: Graph, plan: Plan) -> NDArray[np.floating[Any]]:
    """Return the raw output of a freshly built, never trained encoder."""
    built = plan.build(graph)
    built.offset = 0.0  # a setting of trained embeddings, whose root mean square is 1
    return _raw(built, graph)


UNTRAINED: dict[str, Callable[[Graph], NDArray[np.floating[Any]]]] = {
    "raw features": raw_features,
    "propagated features": propagated_features,
    "mean of 8 hops": partial(training_free, method="ssgc", hops=8, alpha=1 / 9),
    "SSGC, 8 hops": partial(training_free, method="ssgc", hops=8),
    "NAFS": partial(training_free, method="nafs"),
    "spectral clustering": spectral_clustering,
}
"""Rows that depend on the graph alone."""

CLUSTERINGS = frozenset({"spectral clustering"})
"""Rows that are a clustering and nothing else: no classifier is trained on them."""


def _raw(built: Method, graph: Graph) -> NDArray[np.floating[Any]]:
    """Return what a fresh method makes of a graph, without the scale of trained embeddings."""
    return np.asarray((built.calibrate(built.prepare(graph)) / built.scale).cpu())
