"""Node embeddings of attributed graphs without labels.

Names are imported on first use, so that ``import ssge`` costs nothing.

Examples
--------
>>> import ssge
>>> graph = ssge.load_dataset("karate")
>>> graph
Graph('karate': 34 nodes, 156 directed edges, 34 features, 2 classes)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ssge.datasets import load as load_dataset
    from ssge.estimator import SSGE, GraphEmbedder
    from ssge.graph import Graph
    from ssge.io.reading import read_graph

_WHERE = {
    "Graph": ("ssge.graph", "Graph"),
    "GraphEmbedder": ("ssge.estimator", "GraphEmbedder"),
    "SSGE": ("ssge.estimator", "SSGE"),
    "load_dataset": ("ssge.datasets", "load"),
    "read_graph": ("ssge.io.reading", "read_graph"),
}
__all__ = ["SSGE", "Graph", "GraphEmbedder", "__version__", "load_dataset", "read_graph"]


def __getattr__(name: str) -> Any:
    try:
        module, attribute = _WHERE[name]
    except KeyError:
        raise AttributeError(f"module 'ssge' has no attribute {name!r}") from None
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
