"""Benchmarks from their raw files: Computer and CoauthorCS (npz), ArXiv (CSV), WikiCS (JSON), and the citation graphs.

The Planetoid files of Cora, CiteSeer and PubMed are pickles, read without running what a pickle may contain.
"""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.datasets.facts import Facts
from ssge.errors import InputError
from ssge.foreign import Parts
from ssge.graph import Graph, Split
from ssge.io.formats import read_integers, read_ogb
from ssge.io.matrices import read_npz
from ssge.io.sources import errors_of, explained

_VALID_NODES = 500


def gnn_benchmark(facts: Facts, paths: Mapping[str, Path]) -> Graph:
    """Read a file of the gnn-benchmark collection, which has no public split."""
    (path,) = paths.values()
    return _graph(facts, path, read_npz(path)._replace(weights=None))


def ogb(facts: Facts, paths: Mapping[str, Path]) -> Graph:
    """Read the citations of ArXiv, made symmetric, with the split by year: up to 2017, 2018, after 2018."""
    graph = _graph(facts, paths["node-label.csv.gz"], read_ogb(paths))
    parts = (read_integers(paths[f"{part}.csv.gz"], 1)[:, 0] for part in ("train", "valid", "test"))
    return replace(graph, splits=(Split(*(np.sort(part) for part in parts)),))


def _graph(facts: Facts, path: Path, parts: Parts) -> Graph:
    if parts.features is None or parts.labels is None:
        raise InputError(f"{path} must hold features and one class per node, as in {facts.title}.")
    return Graph.of(parts, features=parts.features, labels=parts.labels, name=facts.name)


def wikics(facts: Facts, paths: Mapping[str, Path]) -> Graph:
    """Read features, labels and links, made symmetric, with 20 splits.

    Each split has its own training and validation nodes; all share the test nodes. The file also has
    ``stopping_masks``, a second validation set for early stopping, which is not used here.
    """
    path = paths["data.json"]
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        features = np.array(content["features"], dtype=np.float32)
        edges = [(i, j) for i, targets in enumerate(content["links"]) for j in targets]
        train, valid, test = (np.array(content[key], bool) for key in ("train_masks", "val_masks", "test_mask"))
        labels = np.array(content["labels"], dtype=np.int64)
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InputError(f"{path} is not the data.json of WikiCS ({reason}).") from error
    n, count = len(features), len(train)
    for key, mask, shape in (("train", train, (count, n)), ("val", valid, (count, n)), ("test", test, (n,))):
        if mask.shape != shape:
            name = f"{key}_mask" + "s" * (len(shape) - 1)
            raise InputError(f"{path}: {name} must have shape {shape}; received {mask.shape}.")
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    graph = Graph.of(edges=ends, features=features, labels=labels, name=facts.name)
    masks = zip(train, valid, [test] * count, strict=True)
    return replace(graph, splits=tuple(Split(*map(np.flatnonzero, parts)) for parts in masks))


def planetoid(facts: Facts, paths: Mapping[str, Path]) -> Graph:
    """Read a citation graph with its public split.

    Rows of ``allx`` are the first nodes, those of ``tx`` the nodes that ``test.index`` names, in its order.
    CiteSeer names only 1,000 of its last 1,015 nodes: the others get zero features and class 0, as everyone
    gives them.
    """
    from sklearn.preprocessing import normalize

    files = {name.split(".", 2)[2]: path for name, path in paths.items()}
    with explained(f"{facts.title}: the files in {files['graph'].parent} do not fit together"):
        order = np.loadtxt(files.pop("test.index"), dtype=np.int64, ndmin=1)
        content = {name: unpickle(path) for name, path in files.items()}
        first, rest = content["allx"].csr(), content["tx"].csr().tocoo()
        start, labeled = first.shape[0], content["y"].shape[0]
        if order.min() != start or order.size != rest.shape[0]:
            raise ValueError(
                f"test.index has {order.size} nodes from {order.min()}; tx has {rest.shape[0]} from {start}"
            )
        # Isolated nodes are absent from test.index, but their numbers are not: the range has gaps.
        n = int(order.max()) + 1
        rest = sp.csr_array((rest.data, (order[rest.row] - start, rest.col)), shape=(n - start, rest.shape[1]))
        features = normalize(sp.vstack([first, rest], format="csr").astype(np.float64), norm="l1")
        classes = np.zeros((n, content["ally"].shape[1]))
        classes[:start], classes[order] = content["ally"], content["ty"]
        edges = np.array([(i, j) for i, targets in content["graph"].items() for j in targets], dtype=np.int64)
        split = Split(np.arange(labeled), np.arange(labeled, labeled + _VALID_NODES), np.sort(order))
        ends, labels = edges.reshape(-1, 2).T, classes.argmax(axis=1)
        return replace(Graph.of(edges=ends, features=features, labels=labels, name=facts.name), splits=(split,))


def unpickle(path: Path) -> Any:
    """Read a pickle of arrays, sparse matrices, lists and dictionaries; refuse any other."""
    with explained(f"{path} is not a readable pickle"), errors_of(f"{path} was refused"), path.open("rb") as file:
        return _ArrayUnpickler(file, encoding="latin1").load()  # Python 2 wrote them


class _Matrix:
    """Takes the state of a pickled ``csr_matrix``, independently of the version of SciPy."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]

    def csr(self) -> sp.csr_array:
        shape = vars(self).get("_shape") or vars(self)["shape"]
        matrix = sp.csr_array((self.data, self.indices, self.indptr), shape=shape)
        matrix.check_format(full_check=True)  # an index out of range would read foreign memory
        return matrix


def _dtype(code: str, *_: Any) -> np.dtype[Any]:
    dtype = np.dtype(code, copy=True)
    if dtype.kind not in "biuf":
        raise InputError(f"it holds an array of type {code!r}, allowed are numbers.")
    return dtype


# Taken from an array, because its address differs between versions of numpy.
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("scipy.sparse.csr", "csr_matrix"): _Matrix,
    ("scipy.sparse._csr", "csr_matrix"): _Matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise InputError(f"it names {module}.{name}, allowed are arrays, sparse matrices and lists.") from None
