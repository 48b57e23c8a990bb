"""Propagation of features along edges without weights to learn: what a graph convolution does before it learns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from ssge.graph import Graph

_FILLED = 0.25  # share of nonzero entries above which a dense matrix takes less time and memory


def normalized_adjacency(graph: Graph) -> sp.csr_array:
    """Return D^(-1/2) (A + I) D^(-1/2), in-degrees on the left and out-degrees on the right."""
    n = graph.num_nodes
    weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
    source, target = graph.edges
    adjacency = sp.coo_array((weights, (target, source)), shape=(n, n)).tocsr() + sp.eye_array(n, format="csr")
    incoming, outgoing = adjacency.sum(axis=1), adjacency.sum(axis=0)
    scaled = sp.diags_array(incoming**-0.5) @ adjacency @ sp.diags_array(outgoing**-0.5)
    return scaled.astype(graph.features.dtype)


def propagate(graph: Graph, hops: int = 2) -> Any:
    """Return A^hops X, with A as in `normalized_adjacency`; sparse features stay sparse until a quarter is filled."""
    adjacency, features = normalized_adjacency(graph), graph.features
    for _ in range(hops):
        features = dense_if_filled(adjacency @ features)
    return features


def dense_if_filled(features: Any) -> Any:
    """Return a sparse matrix as a dense one, if a quarter of it or more is filled."""
    filled = sp.issparse(features) and features.nnz > _FILLED * math.prod(features.shape)
    return features.toarray() if filled else features
