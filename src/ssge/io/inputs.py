"""The input of an estimator: tables and paths are read, edges in place of features are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ssge.errors import InputError
from ssge.foreign import is_graph
from ssge.graph import Graph
from ssge.io.edges import usual_ends
from ssge.io.reading import read_graph
from ssge.io.tables import is_frame

_FEW = 10
"""Two columns of integers with so few different values may well be features, whatever they share."""


def is_table(value: Any) -> bool:
    """Return whether a value is a path, or a data frame with two columns or more."""
    names = getattr(value, "column_names", getattr(value, "columns", ()))
    return isinstance(value, str | Path) or (is_frame(value) and len(names) > 1)


def read_given(X: Any, nodes: Any, like: Any = None) -> Any:
    """Return the graph of a path, or of tables of edges and of nodes; X itself if it is something else.

    Parameters
    ----------
    X
        A path, a table of edges, or anything else.
    nodes
        A table of nodes, or None.
    like
        How to read them; see `ssge.read_graph`.
    """
    if type(X).__name__ == "HeteroData":
        raise InputError("X has several types of nodes or edges (HeteroData): give one graph, X.to_homogeneous().")
    if not is_table(X) or not (isinstance(X, str | Path) or nodes is not None):
        if nodes is not None:
            what = "a graph" if isinstance(X, Graph) or is_graph(X) else type(X).__name__
            raise InputError(f"nodes is a table that goes with a table of edges, or a path, as X; received {what}.")
        return X
    if isinstance(X, str) and not Path(X).exists() and not Path(X).suffix:
        raise InputError(f"No such file: {X}. A dataset is loaded by ssge.load_dataset({X!r}).")
    return read_graph(X, nodes, like=like)


def refuse_table_of_nodes(X: Any, y: Any) -> None:
    """Refuse a table in the place of y, which is ignored, if X is one of edges."""
    if is_table(y) and is_table(X) and (isinstance(y, str | Path) or _ends(X) or len(X) != len(y)):
        raise InputError("y is a table, which fit ignores; a table of nodes is given by name: fit(edges, nodes=nodes).")


def refuse_edges(X: Any) -> None:
    """Refuse edges in the place of a matrix of features."""
    if isinstance(X, list | tuple) and X and all(isinstance(pair, tuple) and len(pair) == 2 for pair in X):
        raise _edges("a list of pairs", "Graph.of(edges=X, features=...)")
    if pair := _ends(X):
        raise _edges(f"a table of edges ({', '.join(pair)})", "fit(X, nodes=nodes) with a table of nodes")
    shape: tuple[int, ...] = getattr(X, "shape", ())
    kind = str(getattr(X, "dtype", ""))
    if is_frame(X) and hasattr(X, "dtypes"):
        kinds = {str(kind).casefold() for kind in X.dtypes}
        kind = kinds.pop() if len(kinds) == 1 else ""
    if len(shape) != 2 or "int" not in kind:
        return
    if shape[0] == 2 and shape[1] > 2:
        raise _edges(f"an edge_index ({shape[0]} x {shape[1]} integers)", "Graph.of(edges=X, features=...)")
    if shape[1] == 2:
        values = np.asarray(X)
        source, target = np.unique(values[:, 0]), np.unique(values[:, 1])
        least = min(source.size, target.size)
        if least > _FEW and 2 * np.intersect1d(source, target).size >= least:
            raise _edges("a list of edges (two columns of the same integers)", "Graph.of(edges=X, features=...)")


def _ends(X: Any) -> tuple[str, str] | None:
    """Return the names of the two ends, if X is a table of edges."""
    if not is_frame(X):
        return None
    names = [str(name) for name in getattr(X, "column_names", getattr(X, "columns", ()))]
    if found := usual_ends(names):
        return names[found[0]], names[found[1]]
    if len(names) in (2, 3) and hasattr(X, "dtypes"):
        text = [str(kind).casefold() in ("object", "str", "string", "category") for kind in X.dtypes]
        return (names[0], names[1]) if all(text[:2]) else None
    return None


def _edges(what: str, instead: str) -> InputError:
    return InputError(
        f"X looks like {what}, not like a matrix of node features: {instead}, or ssge.read_graph(X, "
        "features='structural') for edges alone; if these are features, pass them as floats."
    )
