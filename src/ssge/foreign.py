"""Conversion of graph objects of other libraries, by duck typing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, shown

FEATURE_NAMES = ("x", "feat", "features", "attr")
LABEL_NAMES = ("y", "label", "labels")
WEIGHT_NAMES = ("edge_weight", "weight")

Names: TypeAlias = tuple[str, ...]


class Parts(NamedTuple):
    """The parts of a graph before validation; None for missing parts.

    Attributes
    ----------
    edges
        2 x m node positions.
    num_nodes
        Number of nodes, if the source has it.
    undirected
        Each edge has both directions.
    arranged
        Whether edges and weights have the form of `Graph`, as from `ssge.graph.arrange`.
    """

    features: Any = None
    edges: Any = None
    weights: Any = None
    labels: Any = None
    node_ids: Any = None
    num_nodes: int | None = None
    undirected: bool = False
    arranged: bool = False


def is_graph(value: Any) -> bool:
    """Return whether an object is a graph of another library; tables are not, with any column names."""
    return _reader(value) is not None


def take_apart(source: Any, features: Names = (), weights: str | None = None) -> Parts:
    """Return the parts of a PyTorch Geometric, DGL or NetworkX graph.

    Parameters
    ----------
    source
        The graph; it is only read.
    features
        Node attributes to concatenate; by default the first of `FEATURE_NAMES` that exists.
    weights
        Edge attribute with the weights; by default the first of `WEIGHT_NAMES` that exists.
    """
    read = _reader(source)
    if read is None:
        raise InputError(
            "source must be a Graph, a PyG Data, a DGL graph, a NetworkX graph or a scipy sparse adjacency; "
            f"received {type(source).__name__}."
        )
    return read(source, features, weights)


def _reader(value: Any) -> Callable[[Any, Names, str | None], Parts] | None:
    marks = {("edge_index",): _from_pyg, ("ndata", "edata"): _from_dgl, ("is_multigraph", "nodes"): _from_networkx}
    found = (read for names, read in marks.items() if all(hasattr(value, name) for name in names))
    return None if hasattr(value, "shape") else next(found, None)


def _from_pyg(source: Any, features: Names, weights: str | None) -> Parts:
    def attribute(name: str) -> Any:
        return getattr(source, name, None)

    found = _features(attribute, features)
    # If it is not stored, Data.num_nodes is inferred, with a warning.
    held = "num_nodes" in (source if hasattr(source, "keys") else getattr(source, "__dict__", ()))
    size = source.num_nodes if held else None
    return Parts(
        features=found,
        edges=source.edge_index,
        weights=_weights(attribute, weights),
        labels=_first(attribute, LABEL_NAMES),
        num_nodes=int(size) if size is not None else None if found is None else found.shape[0],
    )


def _from_dgl(source: Any, features: Names, weights: str | None) -> Parts:
    if len(getattr(source, "ntypes", ())) > 1 or len(getattr(source, "etypes", ())) > 1:
        raise InputError("source must have one type of nodes and of edges; received a heterogeneous DGL graph.")

    def of_nodes(name: str) -> Any:
        return source.ndata.get(name)

    def of_edges(name: str) -> Any:
        return source.edata.get(name)

    return Parts(
        features=_features(of_nodes, features),
        edges=np.stack([array_of(end, "edges") for end in source.edges()]),
        weights=_weights(of_edges, weights),
        labels=_first(of_nodes, LABEL_NAMES),
        num_nodes=int(source.num_nodes()),
    )


def _from_networkx(source: Any, features: Names, weights: str | None) -> Parts:
    n = len(source)
    ids = ids_of(source)
    position = dict(zip(source, range(n), strict=True))

    def of_nodes(name: str) -> Any:
        values = [data.get(name) for _, data in source.nodes(data=True)]
        return None if all(value is None for value in values) else _rows(values, ids, name)

    def of_edges(name: str) -> Any:
        values = [value for _, _, value in source.edges(data=name)]
        missing = sum(value is None for value in values)
        if 0 < missing < len(values):
            u, v, _ = next(edge for edge in source.edges(data=name) if edge[2] is None)
            raise InputError(f"Edge attribute {name!r} must be on every edge; ({shown(u)}, {shown(v)}) has none.")
        return None if missing else array_of(values, f"Edge attribute {name!r}")

    def label(name: str) -> Any:
        values = _objects(data.get(name) for _, data in source.nodes(data=True))
        return None if all(value is None for value in values) else values

    ends = [(position[u], position[v]) for u, v in source.edges()]
    return Parts(
        features=_features(of_nodes, features),
        edges=np.array(ends, dtype=np.int64).reshape(-1, 2).T,
        weights=_weights(of_edges, weights) if ends else None,
        labels=_first(label, LABEL_NAMES),
        node_ids=ids,
        num_nodes=n,
        undirected=not source.is_directed(),
    )


def _rows(values: list[Any], ids: NDArray[Any], name: str) -> NDArray[Any]:
    """Stack one attribute of all nodes, numbers or vectors, into a matrix."""
    rows: list[NDArray[Any]] = []
    for node, value in zip(ids.tolist(), values, strict=True):
        if value is None:
            raise InputError(f"Node attribute {name!r} must be on every node; {node!r} has none.")
        row = np.atleast_1d(array_of(value, f"Node attribute {name!r}"))
        if row.ndim != 1 or (rows and row.size != rows[0].size):
            allowed = f"as long on every node ({rows[0].size})" if rows else "a number or a vector"
            raise InputError(f"Node attribute {name!r} must be {allowed}; {node!r} has shape {row.shape}.")
        rows.append(row)
    return np.stack(rows)


def _first(attribute: Callable[[str], Any], names: Names) -> Any:
    return next((value for name in names if (value := attribute(name)) is not None), None)


def _features(attribute: Callable[[str], Any], names: Names) -> Any:
    if not names:
        found = _first(attribute, FEATURE_NAMES)
        return None if found is None else array_of(found, "features")
    columns = []
    for name in names:
        if (value := attribute(name)) is None:
            raise InputError(f"features names the attribute {name!r}, which no node has.")
        columns.append(array_of(value, f"Attribute {name!r}"))
    try:
        return columns[0] if len(columns) == 1 and columns[0].ndim > 1 else np.column_stack(columns)
    except ValueError as error:
        raise InputError(f"features must name attributes with as many rows; {error}.") from None


def _weights(attribute: Callable[[str], Any], name: str | None) -> Any:
    if name is None:
        return _first(attribute, WEIGHT_NAMES)
    if (value := attribute(name)) is None:
        raise InputError(f"weights names the attribute {name!r}, which no edge has.")
    return value


def from_adjacency(adjacency: Any) -> Parts:
    """Return the edges and weights of a square matrix, scipy sparse, dense, tensor or frame."""
    given = array_of(adjacency, "adjacency")
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise InputError(f"adjacency must be a square matrix n x n; received shape {given.shape}.")
    if not (np.issubdtype(given.dtype, np.number) or given.dtype == bool) or np.iscomplexobj(given):
        raise InputError(f"adjacency must hold real numbers; received dtype {given.dtype}.")
    matrix = sp.csr_array(given)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # it may share memory with the input
        matrix.sum_duplicates()
    entries = matrix.tocoo()
    edges, values = np.stack([entries.row, entries.col]), entries.data
    if not values.all():  # an explicit zero is not an edge
        edges, values = edges[:, values != 0], values[values != 0]
    return Parts(edges=edges, weights=None if np.all(values == 1) else values, num_nodes=int(matrix.shape[0]))


def from_edges(edges: Any, node_ids: NDArray[Any] | None) -> NDArray[Any]:
    """Return edges as a 2 x m array of node positions; with ``node_ids``, the edges are pairs of ids."""
    pairs = isinstance(edges, list) and bool(edges) and isinstance(edges[0], tuple)
    if pairs and any(len(pair) != 2 for pair in edges):
        raise InputError("edges must be pairs of nodes; a tuple of another length was received.")
    if pairs and node_ids is not None:  # NumPy would unify types and split tuple ids
        return _positions([pair[0] for pair in edges] + [pair[1] for pair in edges], node_ids)
    array = array_of(edges, "edges")
    if array.size == 0:
        return np.empty((2, 0), dtype=np.int64)
    if array.ndim != 2 or 2 not in array.shape:
        raise InputError(f"edges must have shape 2 x m or m x 2; received {array.shape}.")
    if pairs or hasattr(edges, "columns") or array.shape[0] != 2:
        array = array.T
    return array if node_ids is None else _positions(array, node_ids)


def _positions(nodes: NDArray[Any] | list[Any], node_ids: NDArray[Any]) -> NDArray[np.int64]:
    """Return the positions of the ends of edges in ``node_ids``, all sources first, then all targets."""
    flat = nodes.reshape(-1) if isinstance(nodes, np.ndarray) else nodes
    try:
        found = find(node_ids, flat)
    except TypeError as error:
        raise InputError(f"edges must name nodes by hashable ids; {error}.") from None
    if (found < 0).any():
        node = flat[int(np.argmax(found < 0))]
        node = node.item() if isinstance(node, np.generic) else node
        raise InputError(f"edges must name nodes among node_ids; {shown(node)} is not one of them.")
    return found.reshape(2, -1)


def find(known: NDArray[Any], ids: NDArray[Any] | list[Any]) -> NDArray[np.int64]:
    """Return the positions of some ids among the known ones, -1 if unknown."""
    if isinstance(ids, np.ndarray) and np.can_cast(ids.dtype, np.int64) and known.dtype == np.int64 and known.size:
        order = np.argsort(known, kind="stable")
        place = order[np.minimum(np.searchsorted(known, ids, sorter=order), known.size - 1)]
        return np.where(known[place] == ids, place, -1)
    position = {node: row for row, node in enumerate(known.tolist())}
    given = ids.tolist() if isinstance(ids, np.ndarray) else ids
    return np.fromiter((position.get(node, -1) for node in given), np.int64, len(given))


def ids_of(node_ids: Any) -> NDArray[Any]:
    """Return ids as int64 if all are integers, else as Python objects."""
    if hasattr(node_ids, "shape"):
        array = array_of(node_ids, "node_ids")
        if array.ndim != 1:
            raise InputError(f"node_ids must be one id per node; received shape {array.shape}.")
        integers = np.can_cast(array.dtype, np.int64) and array.dtype != bool
        ids = array.astype(np.int64) if integers else _objects(array.tolist())
    else:
        ids = _objects(node_ids)
    if ids.dtype == object and ids.size and all(type(i) is int for i in ids):
        with suppress(OverflowError):
            ids = ids.astype(np.int64)
    listed = ids.tolist()
    try:
        repeated = len(set(listed)) < len(listed)
    except TypeError as error:
        raise InputError(f"node_ids must be hashable; {error}.") from None
    if repeated:
        twice = next(node for node, count in Counter(listed).items() if count > 1)
        raise InputError(f"node_ids must be unique; {shown(twice)} occurs more than once.")
    return ids


def _objects(values: Iterable[Any]) -> NDArray[Any]:
    """Return a one-dimensional object array of the values, including tuples."""
    return np.fromiter(values, dtype=object)


def array_of(value: Any, what: str) -> Any:
    """Convert a tensor, list or data frame to an array, a sparse tensor to scipy CSR; arrays are not copied."""
    if sp.issparse(value):
        return value
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        if tensor.is_floating_point() and tensor.element_size() < 4:
            tensor = tensor.float()  # NumPy has no bfloat16
        if "sparse" not in str(tensor.layout):
            return tensor.numpy()
        entries = tensor.to_sparse_coo().coalesce()
        return sp.csr_array((entries.values().numpy(), tuple(entries.indices().numpy())), shape=tuple(tensor.shape))
    try:
        return np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"{what} must be a regular array; {error}") from None
