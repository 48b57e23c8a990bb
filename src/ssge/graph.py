"""Graph: the one input type, and the one place where input is checked."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError

log = logging.getLogger(__name__)

Direction: TypeAlias = Literal["both", "in", "out"]
FeatureMatrix: TypeAlias = "NDArray[np.floating[Any]] | sp.csr_array"


class Split(NamedTuple):
    """Indices of the training, validation and test nodes; a node may be in none of them."""

    train: NDArray[np.int64]
    valid: NDArray[np.int64]
    test: NDArray[np.int64]


class GraphInfo(NamedTuple):
    """What a method must know of a graph to be built."""

    num_nodes: int
    num_edges: int
    num_features: int


@dataclass(frozen=True, eq=False)
class Graph:
    """An attributed graph, checked once and never changed afterwards.

    Build one with `Graph.of`; the constructor itself checks nothing.

    Parameters
    ----------
    features
        Node features, n x p, dense float or ``scipy.sparse.csr_array``.
    edges
        2 x m array of (source, target) node positions, sorted by target, then source. Messages flow from source
        to target. No self-loops (encoders add their own) and no duplicates.
    weights
        One positive weight an edge, or None for all ones.
    labels
        One class index a node, or None. Unsupervised training never sees them: it is given `without_labels`.
    node_ids
        One hashable name a node, in the order of the rows of ``features``.
    splits
        The public train/validation/test splits, where the dataset has any.
    name
        Used in logs, records and plots.
    class_names
        What the class indices stand for, where known.
    """

    features: FeatureMatrix
    edges: NDArray[np.int64]
    node_ids: NDArray[Any]
    weights: NDArray[np.floating[Any]] | None = None
    labels: NDArray[np.int64] | None = None
    splits: tuple[Split, ...] = ()
    name: str = "graph"
    class_names: tuple[str, ...] = ()

    @property
    def num_nodes(self) -> int:
        """Number of nodes, n."""
        return int(self.features.shape[0])

    @property
    def num_edges(self) -> int:
        """Number of directed edges, m: an undirected edge counts twice."""
        return int(self.edges.shape[1])

    @property
    def num_features(self) -> int:
        """Number of feature columns, p."""
        return int(self.features.shape[1])

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 without labels."""
        return 0 if self.labels is None else int(self.labels.max()) + 1

    @property
    def info(self) -> GraphInfo:
        """The three sizes that a method is built from."""
        return GraphInfo(self.num_nodes, self.num_edges, self.num_features)

    def without_labels(self) -> Graph:
        """Return the same graph with nothing in it that names a class."""
        return replace(self, labels=None, splits=(), class_names=())

    def __repr__(self) -> str:
        labels = f", {self.num_classes} classes" if self.labels is not None else ""
        sizes = f"{self.num_nodes:,} nodes, {self.num_edges:,} directed edges, {self.num_features:,} features"
        return f"Graph({self.name!r}: {sizes}{labels})"

    @classmethod
    def of(
        cls,
        source: Any = None,
        *,
        features: Any = None,
        edges: Any = None,
        adjacency: Any = None,
        weights: Any = None,
        labels: Any = None,
        node_ids: Sequence[Hashable] | NDArray[Any] | None = None,
        direction: Direction = "both",
        name: str | None = None,
        dtype: type[np.floating[Any]] = np.float32,
    ) -> Graph:
        """Build a checked graph from whatever holds one; the input is never modified.

        Parameters
        ----------
        source
            A `Graph` (returned as it is when nothing else is given), a PyTorch Geometric ``Data``, a DGL graph, a
            NetworkX graph, a scipy sparse adjacency, or None when ``edges`` or ``adjacency`` is given.
        features
            n x p matrix (array, tensor, scipy sparse or data frame), or the name of the attribute that holds it in a
            NetworkX, DGL or PyG graph (tried by default: ``x``, ``feat``, ``features``, ``attr``).
        edges
            2 x m (or m x 2) array of node positions, or of node ids if ``node_ids`` is given.
        adjacency
            n x n matrix, scipy sparse or dense; ``adjacency[i, j]`` is the weight of the edge from i to j.
        weights
            One weight an edge, finite and not negative; or the name of an edge attribute.
        labels
            One class a node: integers or names.
        node_ids
            Any hashable, unique. Default: the ids the source has, else 0..n-1.
        direction
            ``both`` (default) makes the graph symmetric; ``in`` lets a node hear from those that point at it, ``out``
            from those it points at.
        name
            A name for logs and records.
        dtype
            ``numpy.float32`` or ``numpy.float64``.

        Notes
        -----
        Duplicate edges become one (weights are added), self-loops are removed because encoders add their own, and with
        ``direction="both"`` an edge given in both directions gets the larger of its two weights, so a symmetric graph
        stays as it is. Each of these is counted in the log. Isolated nodes are kept.

        Examples
        --------
        >>> import numpy as np
        >>> Graph.of(edges=[[0, 1], [1, 2]], features=np.eye(3))
        Graph('graph': 3 nodes, 4 directed edges, 3 features)
        """
        given = {"features": features, "labels": labels, "node_ids": node_ids, "weights": weights}
        if isinstance(source, Graph):
            if edges is not None or adjacency is not None:
                raise InputError("Give a Graph or edges/adjacency, not both.")
            changes = {key: value for key, value in given.items() if value is not None}
            if not changes and name in (None, source.name):
                return source
            held = _Raw(source.features, source.edges, source.weights, source.labels, source.node_ids)
            raw, name = held, name or source.name
        elif source is not None:
            raw = _read(source, features, weights)
        else:
            raw = _Raw()
        if edges is not None or adjacency is not None:
            raw = raw._replace(**_edges_of(edges, adjacency, node_ids))
        fields = {k: v for k, v in given.items() if v is not None and not isinstance(v, str)}
        raw = raw._replace(**fields)
        graph = _checked(raw, direction, dtype, name or "graph")
        if isinstance(source, Graph):
            graph = replace(graph, splits=source.splits, class_names=graph.class_names or source.class_names)
        return graph


class _Raw(NamedTuple):
    """The parts of a graph as they were found, before any check."""

    features: Any = None
    edges: Any = None
    weights: Any = None
    labels: Any = None
    node_ids: Any = None


def _read(source: Any, features: Any, weights: Any) -> _Raw:
    """Take the parts out of a foreign graph object, by what it offers rather than by its class."""
    feature_names = [features] if isinstance(features, str) else ["x", "feat", "features", "attr"]
    label_names = ["y", "label", "labels"]
    if sp.issparse(source):
        return _Raw(**_edges_of(None, source, None))
    if hasattr(source, "edge_index"):  # PyTorch Geometric
        weight_name = weights if isinstance(weights, str) else "edge_weight"
        return _Raw(
            _first(source, feature_names, getattr, isinstance(features, str)),
            _array(source.edge_index),
            _optional(getattr(source, weight_name, None)),
            _optional(_first(source, label_names, getattr)),
        )
    if hasattr(source, "ndata") and hasattr(source, "edges"):  # DGL
        src, dst = source.edges()
        found = _first(source.ndata, feature_names, dict.__getitem__, isinstance(features, str))
        weight = source.edata[weights] if isinstance(weights, str) else source.edata.get("weight")
        if found is None:
            found = _NodeCount(int(source.num_nodes()))
        return _Raw(
            found,
            np.stack([_array(src), _array(dst)]),
            _optional(weight),
            _optional(_first(source.ndata, label_names, dict.__getitem__)),
        )
    if hasattr(source, "nodes") and hasattr(source, "adj"):  # NetworkX
        return _read_networkx(source, feature_names, label_names, features, weights)
    raise InputError(
        "source must be a Graph, a PyG Data, a DGL graph, a NetworkX graph or a scipy sparse adjacency; "
        f"received {type(source).__name__}."
    )


class _NodeCount(NamedTuple):
    """Stands for features that are not there, so that the error can still name the size."""

    n: int


def _read_networkx(source: Any, feature_names: list[str], label_names: list[str], features: Any, weights: Any) -> _Raw:
    ids = np.empty(len(source), dtype=object)
    ids[:] = list(source)
    position = {node: i for i, node in enumerate(ids)}
    weight_name = weights if isinstance(weights, str) else "weight"
    # PERF: one pass over the edges; NetworkX offers nothing columnar.
    triples = [(position[u], position[v], data.get(weight_name)) for u, v, data in source.edges(data=True)]
    edges = np.array([(u, v) for u, v, _ in triples], dtype=np.int64).reshape(-1, 2).T
    found = [w for _, _, w in triples]
    if all(w is None for w in found):
        if isinstance(weights, str):
            raise InputError(f"weights names the edge attribute {weights!r}, but no edge has it.")
        weight = None
    elif any(w is None for w in found):
        raise InputError(f"Edge attribute {weight_name!r} is missing on some edges.")
    else:
        weight = np.array(found, dtype=np.float64)
    rows = _node_attribute(source, ids, feature_names)
    if rows is None and isinstance(features, str):
        raise InputError(f"features names the node attribute {features!r}, but no node has it.")
    labels = _node_attribute(source, ids, label_names)
    return _Raw(
        _NodeCount(len(ids)) if rows is None else np.array([np.atleast_1d(row) for row in rows]),
        edges,
        weight,
        None if labels is None else np.asarray(labels),
        ids,
    )


def _node_attribute(source: Any, ids: NDArray[Any], names: list[str]) -> list[Any] | None:
    for key in names:
        values = [source.nodes[i].get(key) for i in ids]
        present = [v is not None for v in values]
        if all(present) and values:
            return values
        if any(present):
            raise InputError(f"Node attribute {key!r} is missing on node {ids[present.index(False)]!r}.")
    return None


def _first(source: Any, names: list[str], get: Any, required: bool = False) -> Any:
    for key in names:
        try:
            value = get(source, key)
        except (AttributeError, KeyError):
            continue
        if value is not None:
            return value
    if required:
        raise InputError(f"features names {names[0]!r}, which the graph does not have.")
    return None


def _optional(value: Any) -> Any:
    return None if value is None else _array(value)


def _array(value: Any) -> NDArray[Any]:
    """Make an array of a tensor, a list or a data frame; of what is an array already, no copy."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if hasattr(value, "to_numpy"):
        return np.asarray(value.to_numpy())
    return np.asarray(value)


def _edges_of(edges: Any, adjacency: Any, node_ids: Any) -> dict[str, Any]:
    if edges is not None and adjacency is not None:
        raise InputError("Give edges or adjacency, not both.")
    if adjacency is not None:
        if not sp.issparse(adjacency):
            adjacency = _array(adjacency)
            if adjacency.ndim != 2 or not np.issubdtype(adjacency.dtype, np.number) and adjacency.dtype != bool:
                raise InputError(f"adjacency must be a square numeric matrix; received shape {adjacency.shape}.")
        matrix = sp.coo_array(adjacency)
        if matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"adjacency must be square; received shape {matrix.shape}.")
        values = matrix.data
        kept = values != 0  # an explicit zero is no edge; NaN stays, so that the check can name it
        pairs = np.stack([matrix.row, matrix.col]).astype(np.int64)[:, kept]
        values = values[kept]
        return {
            "edges": pairs,
            "weights": None if np.all(values == 1) else values.astype(np.float64),
            "features": _NodeCount(matrix.shape[0]),
        }
    array = _array(edges)
    if array.size == 0:
        array = np.empty((2, 0), dtype=np.int64)
    if array.ndim != 2 or 2 not in array.shape:
        raise InputError(f"edges must have shape 2 x m or m x 2; received {array.shape}.")
    if array.shape[0] != 2:
        array = array.T
    if node_ids is not None:
        position = {node: i for i, node in enumerate(node_ids)}
        try:
            flat = [position[node] for node in array.ravel().tolist()]
        except KeyError as missing:
            raise InputError(f"edges names node {missing.args[0]!r}, which is not among node_ids.") from None
        array = np.array(flat, dtype=np.int64).reshape(array.shape)
    return {"edges": array}


def _checked(raw: _Raw, direction: Direction, dtype: type[np.floating[Any]], name: str) -> Graph:
    if direction not in ("both", "in", "out"):
        raise InputError(f"direction must be 'both', 'in' or 'out'; received {direction!r}.")
    features = _checked_features(raw.features, dtype)
    n = int(features.shape[0])
    edges, weights = _checked_edges(raw.edges, raw.weights, n, dtype)
    edges, weights = _arranged(edges, weights, n, direction, name)
    isolated = n - np.unique(edges).size
    if isolated:
        log.info("%s: %s isolated nodes kept; their embedding rests on their own features.", name, f"{isolated:,}")
    labels, class_names = _checked_labels(raw.labels, n)
    return Graph(features, edges, _checked_ids(raw.node_ids, n), weights, labels, (), name, class_names)


def _checked_features(features: Any, dtype: type[np.floating[Any]]) -> FeatureMatrix:
    if features is None or isinstance(features, _NodeCount):
        raise InputError(
            "The graph has no node features; give features=..., or make structural ones "
            "(degree, random-walk return, Laplacian coordinates) and pass them as features."
        )
    if dtype not in (np.float32, np.float64):
        raise InputError(f"dtype must be numpy.float32 or numpy.float64; received {dtype!r}.")
    if sp.issparse(features):
        matrix: Any = sp.csr_array(features, dtype=dtype, copy=False)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        values = matrix.data
    else:
        array = _array(features)
        if np.iscomplexobj(array):
            raise InputError("Complex data not supported: features must be real.")
        if array.dtype == object:
            try:
                array = array.astype(dtype)
            except (TypeError, ValueError) as error:
                raise InputError(f"features must be numeric; {error}.") from None
        elif not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
            raise InputError(f"features must be numeric; received dtype {array.dtype}.")
        if array.ndim != 2:
            raise InputError(f"features must be a matrix n x p; received shape {array.shape}.")
        matrix = values = np.ascontiguousarray(array, dtype=dtype)
    if matrix.shape[0] == 0:
        raise InputError("The graph is empty: features has 0 rows, at least 1 node is needed.")
    if matrix.shape[1] == 0:
        raise InputError(f"features has 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required.")
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values).reshape(-1))[0]
        if sp.issparse(matrix):
            row, column = int(np.searchsorted(matrix.indptr, bad, side="right")) - 1, int(matrix.indices[bad])
        else:
            row, column = (int(i) for i in np.unravel_index(bad, matrix.shape))
        raise InputError(f"features must be finite; row {row}, column {column} is NaN or inf.")
    return matrix  # type: ignore[no-any-return]


def _checked_edges(
    edges: Any, weights: Any, n: int, dtype: type[np.floating[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]] | None]:
    if edges is None:
        raise InputError("The graph has no edges given; pass edges=... or adjacency=....")
    array = _array(edges)
    if array.ndim != 2 or array.shape[0] != 2:
        raise InputError(f"edges must have shape 2 x m; received {array.shape}.")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"edges must hold integer node positions; received dtype {array.dtype}.")
    if array.size and (array.min() < 0 or array.max() >= n):
        column = int(np.flatnonzero(((array < 0) | (array >= n)).any(axis=0))[0])
        pair = tuple(int(i) for i in array[:, column])
        raise InputError(f"edges must name nodes 0..{n - 1}; edge {column} is {pair}.")
    if weights is None:
        return array.astype(np.int64), None
    values = _array(weights)
    if values.shape != (array.shape[1],):
        raise InputError(f"weights must have one value an edge ({array.shape[1]}); received shape {values.shape}.")
    values = values.astype(dtype)
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise InputError(f"weights must be finite and not negative; weight {first} is {values[first]}.")
    return array.astype(np.int64), values


def _arranged(
    edges: NDArray[np.int64], weights: NDArray[np.floating[Any]] | None, n: int, direction: Direction, name: str
) -> tuple[NDArray[np.int64], NDArray[np.floating[Any]] | None]:
    """Remove self-loops and zero weights, merge duplicates, apply the direction; sort by target, then source."""
    source, target = edges if direction != "out" else edges[::-1]
    loops = source == target
    if loops.any():
        log.info("%s: %s self-loops removed (encoders add their own).", name, f"{int(loops.sum()):,}")
    kept = ~loops if weights is None else ~loops & (weights > 0)
    key = target[kept] * n + source[kept]
    key, inverse = np.unique(key, return_inverse=True)
    if key.size < kept.sum():
        log.info("%s: %s duplicate edges merged.", name, f"{int(kept.sum()) - key.size:,}")
    merged = None if weights is None else np.bincount(inverse, weights[kept], key.size).astype(weights.dtype)
    if direction == "both":
        reverse = key % n * n + key // n
        both = np.union1d(key, reverse)
        if both.size > key.size:
            log.info(
                "%s: directed input made symmetric, %s -> %s edges (direction='in' or 'out' keeps it directed).",
                name,
                f"{key.size:,}",
                f"{both.size:,}",
            )
        if merged is not None:
            larger = np.zeros(both.size, dtype=merged.dtype)
            for k in (key, reverse):
                np.maximum.at(larger, np.searchsorted(both, k), merged)
            merged = larger
        key = both
    return np.stack([key % n, key // n]), merged


def _checked_labels(labels: Any, n: int) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    if labels is None:
        return None, ()
    array = _array(labels)
    if array.shape != (n,):
        raise InputError(f"labels must have one class a node ({n}); received shape {array.shape}.")
    if np.issubdtype(array.dtype, np.integer):
        if array.min() < 0:
            raise InputError("labels must be classes 0..k-1; a negative one was received.")
        return array.astype(np.int64), ()
    names, index = np.unique(array.astype(str), return_inverse=True)
    return index.astype(np.int64), tuple(names.tolist())


def _checked_ids(node_ids: Any, n: int) -> NDArray[Any]:
    if node_ids is None:
        return np.arange(n)
    if isinstance(node_ids, np.ndarray):
        ids = node_ids
    else:
        ids = np.empty(len(node_ids), dtype=object)
        ids[:] = list(node_ids)
        if ids.size and all(type(i) is int for i in ids):
            ids = ids.astype(np.int64)
    if ids.shape != (n,):
        raise InputError(f"node_ids must have one id a node ({n}); received {ids.shape[0]}.")
    try:
        distinct = len(set(ids.tolist()))
    except TypeError as error:
        raise InputError(f"node_ids must be hashable; {error}.") from None
    if distinct != n:
        seen: set[Any] = set()
        twice = next(i for i in ids.tolist() if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        raise InputError(f"node_ids must be unique; {twice!r} occurs more than once.")
    return ids
