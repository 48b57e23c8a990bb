"""Graphs from what a user types: the name of a dataset, a file, or a database."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.datasets import facts_of, load
from ssge.errors import InputError, UnknownNameError
from ssge.graph import Graph
from ssge.io.embeddings import find_ids
from ssge.io.features import renew_structure
from ssge.io.graph_folder import StoredGraph, is_graph_folder
from ssge.io.ids import hint
from ssge.io.options import ReadOptions
from ssge.io.reading import open_stored, read_graph
from ssge.io.sizes import bytes_of
from ssge.io.sql import SCHEME, is_sql
from ssge.records import RunRecord
from ssge.runs.digests import changed, digests
from ssge.runs.folder import RunFolder
from ssge.schema import FeatureSchema

log = logging.getLogger(__name__)

_DECIDED = ("columns", "ignore", "bag", "text", "features", "edge_columns", "missing", "scale")
_ENDS = ("source", "target", "delimiter", "header", "limit")


def open_graph(source: str, reading: dict[str, Any] | None = None, like: FeatureSchema | None = None) -> Graph:
    """Load a dataset by its name, or read a user's own graph.

    Parameters
    ----------
    source
        A name in `DATASETS`, options after a colon; else the path of an edge table or of a whole graph, or a database.
        A file named like a dataset is given by a path, as in ``./cora``.
    reading
        Options of `ssge.read_graph`.
    like
        How the feature columns of another graph were made, to make these in the same way.
    """
    if is_dataset(source):
        if reading:
            raise InputError(f"{', '.join(sorted(reading))}: only for a graph of your own; {source} is a dataset.")
        return load(source)
    if is_sql(source):
        return read_graph(source, like=like, **(reading or {}))
    path = Path(source)
    if not path.exists() and not path.suffix and path.name == source:  # more likely a name mistyped than a file
        return load(source)
    known = [field.name for field in fields(ReadOptions)]
    if unknown := next((name for name in reading or () if name not in known), None):  # of a record that was changed
        raise UnknownNameError("option of reading", unknown, known)
    if is_graph_folder(path):
        from ssge.runs.estimate import available_memory, check_loading  # torch

        check_loading(StoredGraph.open(path), available_memory())
    if path.is_file():
        with path.open("rb") as file:
            if file.read(12)[8:] == b"DUCK":
                raise InputError(f"{path} is a DuckDB database: give {SCHEME}{path}?edges=TABLE&nodes=TABLE.")
    return read_graph(path, like=like, **(reading or {}))


def open_streamed(
    source: str, memory: str, scratch: Path, reading: dict[str, Any] | None = None, like: FeatureSchema | None = None
) -> StoredGraph:
    """Open a graph folder to be streamed in a process of so much memory, with unnamed files in ``scratch``."""
    limit = bytes_of(memory)
    if is_dataset(source) or not is_graph_folder(Path(source)):
        raise InputError(f"memory is for a graph folder; make one with: ssge convert {source} --out graph.")
    return open_stored(Path(source), list(reading or ()), like).streamed(limit, scratch)


def reopen(folder: RunFolder) -> Graph:
    """Read the graph that a run was fitted on once more."""
    record, schema = folder.read_record(), folder.read_schema()
    graph = open_graph(record.dataset, made_like(schema, record.reading), schema)
    if not np.array_equal(folder.read_embedding().node_ids, graph.node_ids):
        raise InputError(f"{record.dataset} has changed: its nodes are not those of the run in {folder.path}.")
    if changed(record.digests, digests(graph), "edges"):
        raise InputError(f"{record.dataset} has changed: its edges are not those of the run in {folder.path}.")
    return graph


def known_edges(source: str, node_ids: NDArray[Any], record: RunRecord | None = None) -> NDArray[np.int64]:
    """Return the edges of a dataset or file as positions among some nodes, 2 x m; those of other nodes are left out.

    A file is read as that of the run, if its record is given and the file has the same columns.
    """
    degrees = None if is_dataset(source) else {"features": ["degree"]}
    reading = record.reading if record and degrees else {}
    try:
        graph = open_graph(source, {key: reading[key] for key in _ENDS if key in reading} | (degrees or {}))
    except UnknownNameError:
        graph = open_graph(source, degrees)
    ends = find_ids(node_ids, graph.node_ids)[graph.edges]
    known = (ends >= 0).all(axis=0)
    if graph.num_edges and not known.any():
        first = graph.node_ids[graph.edges[0, 0]]
        raise InputError(f"{source} has no edge between nodes of the embedding; {hint(first, node_ids) or first!r}.")
    if not known.all():
        log.info("%s: %s edges of nodes without a vector are left out.", source, f"{(~known).sum():,}")
    return np.asarray(ends[:, known], dtype=np.int64)


def with_edges(graph: Graph, edges: NDArray[np.int64]) -> Graph:
    """Return a graph with other edges, made symmetric, and the features that come from edges computed from these."""
    found = Graph.of(edges=edges, features=graph.features, dtype=graph.features.dtype.type)
    return renew_structure(replace(graph, edges=found.edges, weights=None))


def made_like(schema: FeatureSchema | None, reading: dict[str, Any]) -> dict[str, Any]:
    """Return options of `ssge.read_graph` without those that a schema has decided, for use beside it."""
    return {key: value for key, value in reading.items() if schema is None or key not in _DECIDED}


def suited_to(method: str, source: str, reading: dict[str, Any]) -> dict[str, Any]:
    """Return options of `ssge.read_graph` for a method; a method that reads no features gets degrees.

    Every graph must have features, so this also admits tables without usable ones.
    """
    from ssge.methods import METHODS  # torch

    cls = METHODS[method]
    given = {"columns", "ignore", "bag", "text", "features", "edge_columns"} & set(reading)
    if given or is_dataset(source) or is_graph_folder(Path(source)) or "X" in cls.inputs.split(", "):
        return reading
    log.info("%s reads no features: the degrees of %s stand in for them.", cls.title, source)
    return reading | {"features": ["degree"]}


def is_dataset(source: str) -> bool:
    """Return whether this is the name of a dataset, with or without options."""
    return facts_of(source) is not None
