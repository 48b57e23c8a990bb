"""Benchmarks in open formats: Computer and CoauthorCS (npz), ArXiv (CSV) and WikiCS (JSON)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ssge.datasets.facts import Facts
from ssge.errors import InputError
from ssge.foreign import Parts
from ssge.graph import Graph, Split
from ssge.io.formats import read_integers, read_ogb
from ssge.io.matrices import read_npz


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
