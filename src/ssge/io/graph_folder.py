"""A graph as a folder of plain NumPy arrays that are memory-mapped: what graphs larger than memory are trained from.

======================== =====================================================================================
file                     content
======================== =====================================================================================
graph.json               sizes, digests of the other files; marks the folder as a graph of ssge
incoming.indptr.npy      int64, n + 1: in-edges of node i are entries ``indptr[i]`` to ``indptr[i + 1]``
incoming.indices.npy     their sources, ascending; int32, or int64 from 2^31 nodes on. No self-loops.
incoming.weights.npy     their weights, float32; left out where all are 1
outgoing.*.npy           the same by source; left out where the graph is symmetric, since it would be the same
features.npy             n x p
ids.npy                  int64; or ids.offsets.npy and ids.text.npy: UTF-8 text of all ids, and where each begins
labels.npy               int64, one class per node; left out without labels
features.json            how the features were made of tables; left out where they were not
======================== =====================================================================================
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError, one_line
from ssge.graph import Graph, GraphInfo
from ssge.schema import FeatureSchema

MANIFEST, FORMAT, VERSION = "graph.json", "ssge graph folder", 1
SCHEMA, FEATURES = "features.json", "features.npy"
_FACTS = {"name": str, "digest": str, "weighted": bool, "symmetric": bool, "max_degree": int, "isolated": int}


class Neighbors(NamedTuple):
    """In- or out-neighbors of all nodes as memory-mapped arrays; weights are None where all are 1."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.integer[Any]]
    weights: NDArray[np.floating[Any]] | None


def is_graph_folder(path: Path) -> bool:
    """Return whether a path is a folder that `ssge.io.graph_writer` wrote."""
    return path.is_dir() and manifest(path) is not None


@dataclass(frozen=True)
class StoredGraph:
    """A graph in a folder; arrays are mapped on first use, and nothing is read before.

    Attributes
    ----------
    path
        The folder.
    name
        A name for logs and records.
    info
        Sizes.
    digest
        Of all arrays.
    weighted, symmetric
        Whether edges have weights, and whether each edge is there in both directions with the same weight.
    max_degree
        The largest number of in-edges or out-edges of a node.
    isolated
        Number of nodes without in-edges.
    class_names
        Names of the classes, where known.
    memory, scratch
        Bytes that the process may have when it streams the graph, and a folder for unnamed files.
    labeled
        Whether labels may be seen.
    """

    path: Path
    name: str
    info: GraphInfo
    digest: str
    weighted: bool
    symmetric: bool
    max_degree: int
    isolated: int
    class_names: tuple[str, ...] = ()
    memory: int = 0
    scratch: Path = Path()
    labeled: bool = True

    @property
    def num_nodes(self) -> int:
        """Number of nodes, n."""
        return self.info.num_nodes

    @property
    def num_edges(self) -> int:
        """Number of directed edges, m."""
        return self.info.num_edges

    @property
    def num_features(self) -> int:
        """Number of feature columns, p."""
        return self.info.num_features

    def streamed(self, memory: int, scratch: Path) -> StoredGraph:
        """Return the graph for training in a process of ``memory`` bytes, with unnamed files in ``scratch``."""
        return replace(self, memory=memory, scratch=scratch)

    def without_labels(self) -> StoredGraph:
        """Return the same graph with nothing in it that names a class."""
        return replace(self, labeled=False, class_names=())

    @classmethod
    def open(cls, path: Path) -> StoredGraph:
        """Open a folder that `ssge.io.graph_writer` wrote, after a check that its files are as long as they were."""
        found = manifest(path)
        if found is None:
            raise InputError(
                f"{path} is not a graph folder: {MANIFEST} is missing or of another kind; see ssge convert."
            )
        if found.get("version") != VERSION:
            raise InputError(f"{path} is a graph folder of version {found.get('version')}; this is version {VERSION}.")
        try:
            for name, facts in found["files"].items():
                if Path(name).name != name or (path / name).stat().st_size != facts["bytes"]:
                    raise InputError(f"{path / name} is not as it was written: {facts['bytes']:,} bytes expected.")
            info = GraphInfo(*(int(found[key]) for key in ("nodes", "edges", "features")))
            facts = {key: found[key] for key in _FACTS}
            if wrong := next((key for key, kind in _FACTS.items() if type(found[key]) is not kind), None):
                raise InputError(f"{path / MANIFEST} is damaged: {wrong} must be of type {_FACTS[wrong].__name__}.")
            return cls(path, info=info, class_names=tuple(found["class_names"]), **facts)
        except (KeyError, TypeError, AttributeError, ValueError, OSError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path / MANIFEST} is damaged: {one_line(error)}.") from None

    @cached_property
    def incoming(self) -> Neighbors:
        """In-neighbors of each node."""
        return self._neighbors("incoming")

    @cached_property
    def outgoing(self) -> Neighbors:
        """Out-neighbors of each node."""
        return self._neighbors("incoming" if self.symmetric else "outgoing")

    @cached_property
    def features(self) -> NDArray[np.floating[Any]]:
        """Features, n x p."""
        n, _, p, _ = self.info
        return self._array(FEATURES, (n, p), "f")

    @cached_property
    def node_ids(self) -> NDArray[Any]:
        """Ids, int64 or str objects."""
        n = self.info.num_nodes
        if (self.path / "ids.npy").exists():
            return self._array("ids.npy", (n,), "i")
        import pyarrow as pa

        offsets = self._array("ids.offsets.npy", (n + 1,), "i")
        text = self._array("ids.text.npy", (int(offsets[-1]),), "u")
        column = pa.LargeStringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(text))
        column.validate(full=True)  # a damaged file must not reach outside the text
        return np.array(column.to_pylist(), dtype=object)

    @cached_property
    def labels(self) -> NDArray[np.int64] | None:
        """One class per node, or None."""
        there = self.labeled and (self.path / "labels.npy").exists()
        return self._array("labels.npy", (self.info.num_nodes,), "i") if there else None

    @property
    def schema(self) -> FeatureSchema | None:
        """How the features were made of tables, if they were."""
        return FeatureSchema.read(self.path / SCHEMA)

    def load(self) -> Graph:
        """Return the graph itself: edges in memory, features mapped from the disk."""
        n, m, _, _ = self.info
        indptr, indices, weights = self.incoming
        edges = np.empty((2, m), dtype=np.int64)
        edges[0] = indices
        edges[1] = np.repeat(np.arange(n), np.diff(indptr))
        if m and (edges[0].min() < 0 or edges[0].max() >= n):
            raise InputError(f"{self.path / 'incoming.indices.npy'} is damaged: it names nodes beyond {n - 1}.")
        labels = None if self.labels is None else np.array(self.labels)
        ids, weights = np.array(self.node_ids), None if weights is None else np.array(weights)
        names = self.class_names
        return Graph(self.features, edges, ids, weights, labels, (), self.name, names, self.schema)

    def _neighbors(self, side: str) -> Neighbors:
        n, m, _, _ = self.info
        indptr = self._array(f"{side}.indptr.npy", (n + 1,), "i")
        if indptr[0] != 0 or indptr[-1] != m:
            raise InputError(f"{self.path / f'{side}.indptr.npy'} is damaged: it must lead from 0 to {m}.")
        indices = self._array(f"{side}.indices.npy", (m,), "i")
        weights = self._array(f"{side}.weights.npy", (m,), "f") if self.weighted else None
        return Neighbors(indptr, indices, weights)

    def _array(self, name: str, shape: tuple[int, ...], kind: str) -> NDArray[Any]:
        path = self.path / name
        try:
            # A file without any entry cannot be mapped.
            array = np.load(path, mmap_mode="r" if 0 not in shape else None, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {one_line(error)}.") from None
        if array.shape != shape or array.dtype.kind != kind:
            raise InputError(f"{path} must have shape {shape}; received {array.dtype} {array.shape}.")
        return np.asarray(array)


def manifest(path: Path) -> dict[str, Any] | None:
    """Return the facts of a graph folder; None for anything else."""
    try:
        found = json.loads((path / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None
