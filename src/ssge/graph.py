"""Graph: the validated input type."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, shown
from ssge.foreign import Parts, array_of, from_adjacency, from_edges, ids_of, take_apart

if TYPE_CHECKING:
    from ssge.schema import FeatureSchema

log = logging.getLogger(__name__)

Direction: TypeAlias = Literal["both", "in", "out"]
FeatureMatrix: TypeAlias = "NDArray[np.floating[Any]] | sp.csr_array"


class Split(NamedTuple):
    """Indices of the training, validation and test nodes; a node may be in none of them."""

    train: NDArray[np.int64]
    valid: NDArray[np.int64]
    test: NDArray[np.int64]


class GraphInfo(NamedTuple):
    """Sizes of a graph that a method is built from; the number of classes is 0 except for supervised methods."""

    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int = 0


@dataclass(frozen=True, eq=False)
class Graph:
    """An attributed graph, validated once and immutable.

    Build it with `Graph.of`; the constructor itself does not validate.

    Parameters
    ----------
    features
        Node features, n x p, dense float or ``scipy.sparse.csr_array``.
    edges
        2 x m array of (source, target) node positions, sorted by target, then source. Messages flow from
        source to target. No self-loops (encoders add their own) and no duplicates.
    weights
        One positive weight per edge, or None for all ones.
    labels
        One class index per node, or None. Unsupervised training never sees them: it gets `without_labels`.
    node_ids
        One hashable id per node, in the order of the rows of ``features``.
    splits
        The public train/validation/test splits, if the dataset has any.
    name
        Used in logs, records and plots.
    class_names
        Names of the classes, if known.
    schema
        The encoding of the feature columns, if `ssge.read_graph` read the graph from tables.
    """

    features: FeatureMatrix
    edges: NDArray[np.int64]
    node_ids: NDArray[Any]
    weights: NDArray[np.floating[Any]] | None = None
    labels: NDArray[np.int64] | None = None
    splits: tuple[Split, ...] = ()
    name: str = "graph"
    class_names: tuple[str, ...] = ()
    schema: FeatureSchema | None = None

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

    def with_labels_of(self, nodes: NDArray[np.int64]) -> Graph:
        """Return the graph with the labels of these nodes only: class -1 for the others, and no splits."""
        if self.labels is None:
            raise InputError(f"{self.name} has no labels, and a supervised method needs some.")
        if nodes.size == 0:
            raise InputError("A supervised method needs at least 1 training node; received none.")
        labels = np.full_like(self.labels, -1)
        labels[nodes] = self.labels[nodes]
        return replace(self, labels=labels, splits=(), class_names=())

    def without_labels(self) -> Graph:
        """Return the same graph without any class information."""
        return replace(self, labels=None, splits=(), class_names=())

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Raise an error: a graph is not an array of rows, which scikit-learn's cross-validation would assume."""
        raise InputError(
            "A graph is no matrix of rows, so it cannot be divided into folds: embed it first, then cross-validate on "
            "the embedding, as in cross_val_score(classifier, ssge.SSGE().fit_transform(graph), labels)."
        )

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
        node_ids: Iterable[Hashable] | NDArray[Any] | None = None,
        direction: Direction | None = None,
        name: str | None = None,
        dtype: type[np.floating[Any]] | None = None,
    ) -> Graph:
        """Build a validated graph from any supported object; the input is never modified.

        Parameters
        ----------
        source
            A `Graph` (returned unchanged if nothing else is given), a PyTorch Geometric ``Data``, a DGL or
            NetworkX graph, a scipy sparse adjacency, the ``Parts`` of a reader; or None if ``edges`` or
            ``adjacency`` is given.
        features
            n x p matrix (array, tensor, scipy sparse or data frame); or the name, or a list of names, of node
            attributes of a NetworkX, DGL or PyG graph (tried by default: ``x, feat, features, attr``).
        edges
            2 x m or m x 2 array of node positions, or of node ids if ``node_ids`` is given. A 2 x 2 array is
            read as 2 x m, unless it is a data frame or a list of tuples.
        adjacency
            n x n matrix, scipy sparse or dense; ``adjacency[i, j]`` is the weight of the edge from i to j.
        weights
            One weight per edge, finite and not negative; or the name of an edge attribute (tried by default:
            ``edge_weight, weight``).
        labels
            One class per node: integers or names. Integers with gaps, such as 0 and 10, are names of classes 0, 1, ...
        node_ids
            Unique hashable ids. Default: the ids of the source, else 0..n-1.
        direction
            ``both`` makes the graph symmetric; ``in`` sends messages along the edges, ``out`` against them.
            Default: ``both``, but the edges of a `Graph` do not change.
        name
            A name for logs and records.
        dtype
            ``numpy.float32`` or ``numpy.float64``. Default: float32, but a `Graph` keeps its own.

        Notes
        -----
        Duplicate edges become one (weights are added); edges of weight zero are removed, and so are
        self-loops, because encoders add their own. With ``direction="both"`` an edge given in both directions
        gets the larger of its two weights, so a symmetric graph does not change. The log counts each of these.
        Isolated nodes are kept.

        Edges, weights, labels and ids are always copied. Features are not copied if they are contiguous and of the
        right dtype: the graph then shares their memory, and changing them later changes the graph.

        Examples
        --------
        >>> import numpy as np
        >>> Graph.of(edges=[[0, 1], [1, 2]], features=np.eye(3))
        Graph('graph': 3 nodes, 4 directed edges, 3 features)
        """
        if sum(given is not None for given in (source, edges, adjacency)) != 1:
            raise InputError("Give one of source, edges and adjacency; received none or more than one of them.")
        if sp.issparse(source):
            source, adjacency = None, source
        old = source if isinstance(source, Graph) else None
        if adjacency is not None and weights is not None:
            raise InputError("weights goes with edges; an adjacency holds its weights itself.")
        names, weight_name = _names(features), weights if isinstance(weights, str) else None
        if (names or weight_name) and (source is None or old is not None):
            raise InputError("features and weights can name attributes only of a PyG, DGL or NetworkX graph.")
        ids = None if node_ids is None else ids_of(node_ids)
        if old is not None:
            if all(given is None for given in (features, weights, labels, ids, direction, dtype)):
                return old if name is None else replace(old, name=name)
            parts = Parts(old.features, old.edges, old.weights, old.labels, old.node_ids, old.num_nodes)
            direction, dtype, name = direction or "in", dtype or old.features.dtype.type, name or old.name
        elif isinstance(source, Parts):
            parts = source
        elif source is not None:
            parts = take_apart(source, names, weight_name)
        elif adjacency is not None:
            parts = from_adjacency(adjacency)
        else:
            parts = Parts(edges=from_edges(edges, ids))
        if features is not None and not names:
            parts = parts._replace(features=features)
        if weights is not None and weight_name is None:
            parts = parts._replace(weights=weights)
        if ids is not None:
            parts = parts._replace(node_ids=ids)
        graph = _checked(parts, labels, direction or "both", dtype or np.float32, name or "graph")
        if old is not None:
            graph = replace(graph, splits=old.splits, schema=old.schema if features is None else None)
            graph = graph if labels is not None else replace(graph, class_names=old.class_names)
        return graph


def _names(features: Any) -> tuple[str, ...]:
    """Return the attribute names in ``features``, if it is not a matrix."""
    if isinstance(features, str):
        return (features,)
    several = isinstance(features, list | tuple) and all(isinstance(name, str) for name in features)
    return tuple(features) if several else ()


def _checked(parts: Parts, labels: Any, direction: Direction, dtype: type[np.floating[Any]], name: str) -> Graph:
    if dtype not in (np.float32, np.float64):
        raise InputError(f"dtype must be numpy.float32 or numpy.float64; received {dtype!r}.")
    if parts.num_nodes == 0:
        raise InputError("The graph must have at least 1 node; received 0.")
    features = _checked_features(parts.features, dtype)
    n = int(features.shape[0])
    if parts.num_nodes not in (None, n):
        raise InputError(f"features must have one row per node ({parts.num_nodes}); received {n} rows.")
    if parts.node_ids is not None and parts.node_ids.size != n:
        raise InputError(f"node_ids must have one id per node ({n}); received {parts.node_ids.size}.")
    if not parts.arranged:
        parts = arrange(parts._replace(num_nodes=n), direction, dtype, name)
    ids = np.arange(n) if parts.node_ids is None else parts.node_ids
    labels, class_names = _checked_labels(labels, parts.labels, n, name)
    return Graph(features, parts.edges, ids, parts.weights, labels, (), name, class_names)


def arrange(
    parts: Parts, direction: Direction = "both", dtype: type[np.floating[Any]] = np.float32, name: str = "graph"
) -> Parts:
    """Validate the edges and weights of a graph of ``num_nodes`` nodes and convert them to the form of `Graph.edges`.

    Removes self-loops and zero weights, merges duplicates, applies the direction, sorts by target, then source.
    `Graph.of` accepts the result unchanged, so features can be computed from arranged edges before the graph is built.
    """
    if direction not in ("both", "in", "out"):
        raise InputError(f"direction must be 'both', 'in' or 'out'; received {direction!r}.")
    n = int(parts.num_nodes or 0)
    edges, weights = _checked_edges(parts.edges, parts.weights, n, dtype)
    source, target = edges if direction != "out" else edges[::-1]
    # In a boolean sparse matrix True + True is True: without weights, duplicates need no special case.
    values = np.ones(source.size, dtype=bool) if weights is None else weights
    loops = source == target
    kept = ~loops & (values > 0)
    if not kept.all():
        source, target, values = source[kept], target[kept], values[kept]
    matrix = sp.csr_array((values, (target, source)), shape=(n, n))
    given = matrix.nnz
    if direction == "both" or parts.undirected:
        matrix = matrix.maximum(matrix.T.tocsr())
    counts = {
        "self-loops removed (encoders add their own)": loops.sum(),
        "edges of weight zero removed": loops.size - kept.sum() - loops.sum(),
        "duplicate edges merged": kept.sum() - given,
        "reverse edges added (direction='in' or 'out' keeps the graph directed)": (matrix.nnz - given)
        * (not parts.undirected),
        "isolated nodes kept, embedded by their own features": n - np.count_nonzero(_touched(matrix)),
    }
    for what, count in counts.items():
        if count:
            log.info("%s: %s %s.", name, f"{count:,}", what)
    entries = matrix.tocoo()
    ordered = np.stack([entries.col, entries.row], dtype=np.int64)
    weights = None if weights is None or np.all(entries.data == 1) else entries.data
    return parts._replace(edges=ordered, weights=weights, arranged=True)


def _touched(matrix: sp.csr_array) -> NDArray[np.bool_]:
    """Return whether each node has an edge."""
    touched: NDArray[np.bool_] = np.diff(matrix.indptr) > 0
    touched[matrix.indices] = True
    return touched


def _checked_features(features: Any, dtype: type[np.floating[Any]]) -> FeatureMatrix:
    if features is None:
        raise InputError(
            "The graph has no node features: give features=..., or read it with "
            "ssge.read_graph(source, features='structural'), which makes some from its edges."
        )
    given = _numeric(features, "features")
    if given.ndim != 2:
        raise InputError(f"features must be a matrix n x p; received shape {given.shape}.")
    if 0 in given.shape:
        raise InputError(f"features must have at least 1 row and 1 column; received shape {given.shape}.")
    with np.errstate(over="ignore"):  # overflow of float32 gives inf, which is reported below
        if sp.issparse(given):
            matrix = sp.csr_array(given, dtype=dtype)
            if not matrix.has_canonical_format:
                matrix = matrix.copy()  # it may share memory with the input
                matrix.sum_duplicates()
            values = matrix.data
        else:
            matrix = values = np.ascontiguousarray(given, dtype=dtype)
    finite = np.isfinite(values)
    if not finite.all():
        first = int(np.argmin(finite))
        if sp.issparse(matrix):
            row, column = (
                int(np.searchsorted(matrix.indptr, first, side="right")) - 1,
                int(matrix.indices[first]),
            )
        else:
            row, column = divmod(first, matrix.shape[1])
        value = f"{values.flat[first]} in {np.dtype(dtype)}"
        raise InputError(f"features must be finite; row {row}, column {column} is {value}.")
    return matrix


def _checked_edges(
    edges: Any, weights: Any, n: int, dtype: type[np.floating[Any]]
) -> tuple[NDArray[np.integer[Any]], NDArray[np.floating[Any]] | None]:
    if edges is None:
        raise InputError("The graph has no edges: its edge_index is None.")
    array = array_of(edges, "edges")
    if array.ndim != 2 or array.shape[0] != 2:
        raise InputError(f"edges must have shape 2 x m; received {array.shape}.")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(
            f"edges must be integer node positions, or ids along with node_ids; received dtype {array.dtype}."
        )
    if array.size and (array.min() < 0 or array.max() >= n):
        first = int(np.argmax(((array < 0) | (array >= n)).any(axis=0)))
        raise InputError(f"edges must name nodes 0..{n - 1}; edge {first} is {tuple(array[:, first].tolist())}.")
    if weights is None:
        return array, None
    values = _numeric(weights, "weights")
    m = array.shape[1]
    if values.shape not in ((m,), (m, 1)):
        raise InputError(f"weights must have one value per edge ({m}); received shape {values.shape}.")
    values = values.reshape(-1)
    if (wrong := wrong_weight(values, dtype)) is not None:
        first, why = wrong
        edge = " -> ".join(str(i) for i in array[:, first])
        raise InputError(f"weights, entry {first} (edge {edge}): {why}.")
    return array, values.astype(dtype)


def wrong_weight(weights: NDArray[Any], dtype: type[np.floating[Any]]) -> tuple[int, str] | None:
    """Return the first invalid weight and the reason; None if all are valid.

    Weights must be finite and not negative. Nonzero weights must not underflow in ``dtype``, and their sum, which
    bounds every degree, must not overflow.
    """
    limits = np.finfo(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        good = np.isfinite(weights.astype(dtype)) & (weights >= 0)
        small = good & (weights > 0) & (weights < limits.tiny)
        total = weights.sum(dtype=np.float64)
    if not good.all():
        first = int(np.argmin(good))
        return first, f"a weight must be finite and not negative; found {weights[first]}"
    if small.any():
        first = int(np.argmax(small))
        why = f"a weight must be 0 or at least {limits.tiny:.2g} ({np.dtype(dtype)}); found {weights[first]}"
        return first, f"{why}: multiply all weights by one number"
    if total > limits.max / 4:
        first = int(np.argmax(weights))
        why = f"the sum of all weights must be below {limits.max / 4:.2g}; found {weights[first]}"
        return first, f"{why}: divide all weights by one number"
    return None


def _numeric(value: Any, what: str) -> Any:
    """Return an array or a scipy matrix of real numbers, or raise an error that names the first invalid entry."""
    array = array_of(value, what)
    if array.dtype == object:
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{what} must be numbers; received {_first_other(array)}.") from None
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool) or np.iscomplexobj(array):
        raise InputError(f"{what} must be real numbers; received dtype {array.dtype}.")
    return array


def _first_other(array: NDArray[Any]) -> str:
    for place, entry in np.ndenumerate(array):
        try:
            float(entry)
        except (TypeError, ValueError):
            where = ", ".join(f"{kind} {i}" for kind, i in zip(("row", "column"), place, strict=False))
            return f"{shown(entry)} in {where}"
    raise AssertionError("every entry is a number")


def _checked_labels(given: Any, found: Any, n: int, name: str) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    if given is not None:
        return classes_of(given, n)
    try:
        return (None, ()) if found is None else classes_of(found, n)
    except InputError as error:  # unusable labels that were not requested are no error
        log.warning("%s: the labels found in the graph are left out: %s", name, error)
        return None, ()


def classes_of(labels: Any, n: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return one class index per node, and the names of the classes if they have names."""
    array = array_of(labels, "labels")
    if array.dtype == object:
        for node, label in enumerate(array.reshape(-1).tolist()):
            if not isinstance(label, str) and str(label) in ("None", "nan", "<NA>", "NaT"):
                raise InputError(f"labels must have a class for every node; node {node} has {label}.")
        array = array_of(array.tolist(), "labels")
    if array.shape not in ((n,), (n, 1)):
        raise InputError(f"labels must have one class per node ({n}); received shape {array.shape}.")
    array = array.reshape(-1)
    absent = array < 0 if array.dtype.kind == "i" else array != array  # noqa: PLR0124 - only NaN differs from itself
    if absent.any():
        node = int(np.argmax(absent))
        raise InputError(f"labels must be classes 0..k-1 or names; node {node} has {array[node]}.")
    names, index = np.unique(array.astype(str) if array.dtype == object else array, return_inverse=True)
    if array.dtype.kind in "iu" and int(names[-1]) < max(n, 1000):  # larger ones are codes, not indices
        return array.astype(np.int64), ()
    return index.astype(np.int64), tuple(str(label) for label in names)
