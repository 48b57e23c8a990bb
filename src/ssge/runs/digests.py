"""Digests of a graph, by which a run knows whether its data are still the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from ssge.graph import Graph
from ssge.io.graph_folder import StoredGraph


def digests(graph: Graph | StoredGraph) -> dict[str, str]:
    """Return a digest of the edges with their weights, of the features, and of the labels if there are any.

    A graph on disk has none: it would have to be read as a whole.
    """
    if isinstance(graph, StoredGraph):
        return {}
    X: Any = graph.features
    found = {
        "edges": _digest(graph.edges, graph.weights),
        "features": _digest(X.indptr, X.indices, X.data) if sp.issparse(X) else _digest(X),
    }
    return found if graph.labels is None else found | {"labels": _digest(graph.labels)}


def changed(before: Mapping[str, str], now: Mapping[str, str], *parts: str) -> bool:
    """Return whether one of these parts is another than before; a part without a digest counts as the same."""
    return any(part in before and part in now and before[part] != now[part] for part in parts)


def _digest(*arrays: Any) -> str:
    found = hashlib.sha256()
    for array in arrays:
        if array is not None:
            found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()[:16]
