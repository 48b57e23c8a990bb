"""From what a user types, the name of a dataset or a file, to a graph."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from ssge.datasets import facts_of, load
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.graph_folder import StoredGraph, is_graph_folder
from ssge.io.reading import open_stored, read_graph
from ssge.io.sizes import bytes_of
from ssge.schema import FeatureSchema

log = logging.getLogger(__name__)

_DECIDED = ("columns", "ignore", "features", "edge_columns", "missing", "scale")


def open_graph(source: str, reading: dict[str, Any] | None = None, like: FeatureSchema | None = None) -> Graph:
    """Load a dataset by its name, or read a user's own graph.

    Parameters
    ----------
    source
        A name in `DATASETS`, options after a colon; else the path of an edge table or of a whole graph. A file
        named like a dataset is given by a path, as in ``./cora``.
    reading
        Options of `ssge.read_graph`.
    like
        How the feature columns of another graph were made, to make these in the same way.
    """
    if is_dataset(source):
        if reading:
            raise InputError(f"{', '.join(sorted(reading))}: only for a graph of your own; {source} is a dataset.")
        return load(source)
    path = Path(source)
    if not path.exists() and not path.suffix and path.name == source:  # more likely a name mistyped than a file
        return load(source)
    if is_graph_folder(path):
        from ssge.runs.estimate import available_memory  # torch
        from ssge.runs.estimate_streamed import check_loading

        check_loading(StoredGraph.open(path), available_memory())
    return read_graph(path, like=like, **(reading or {}))


def open_streamed(
    source: str, memory: str, scratch: Path, reading: dict[str, Any] | None = None, like: FeatureSchema | None = None
) -> StoredGraph:
    """Open a graph folder to be streamed in a process of so much memory, with unnamed files in ``scratch``."""
    limit = bytes_of(memory)
    if is_dataset(source) or not is_graph_folder(Path(source)):
        raise InputError(f"memory is for a graph folder; make one with: ssge convert {source} --out graph.")
    return open_stored(Path(source), list(reading or ()), like).streamed(limit, scratch)


def made_like(schema: FeatureSchema | None, reading: dict[str, Any]) -> dict[str, Any]:
    """Return options of `ssge.read_graph` without those that a schema has decided, for use beside it."""
    return {key: value for key, value in reading.items() if schema is None or key not in _DECIDED}


def suited_to(method: str, source: str, reading: dict[str, Any]) -> dict[str, Any]:
    """Return options of `ssge.read_graph` for a method; a method that reads no features gets degrees.

    Every graph must have features, so this also admits tables without usable ones.
    """
    from ssge.methods import METHODS  # torch

    cls = METHODS[method]
    asked = {"columns", "ignore", "features", "edge_columns"} & set(reading)
    if asked or is_dataset(source) or is_graph_folder(Path(source)) or "X" in cls.inputs.split(", "):
        return reading
    log.info("%s reads no features: the degrees of %s stand in for them.", cls.title, source)
    return reading | {"features": ["degree"]}


def is_dataset(source: str) -> bool:
    """Return whether this is the name of a dataset, with or without options."""
    return facts_of(source) is not None
