"""The json file of WikiCS, with its 20 splits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ssge.datasets.facts import Facts
from ssge.datasets.features import compact
from ssge.errors import InputError
from ssge.graph import Graph, Split


def read(facts: Facts, paths: Mapping[str, Path]) -> Graph:
    """Read features, labels and links, the latter made symmetric.

    Split k has its own training and validation nodes; the test nodes are common to all. The file also has
    ``stopping_masks``, a second validation set for early stopping, which is not used here.
    """
    path = paths["data.json"]
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        features = np.array(content["features"], dtype=np.float32)
        edges = [(i, j) for i, targets in enumerate(content["links"]) for j in targets]
        masks = {key: np.array(content[key], dtype=bool) for key in ("train_masks", "val_masks", "test_mask")}
        labels = np.array(content["labels"], dtype=np.int64)
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InputError(f"{path} is not the data.json of WikiCS ({reason}).") from error
    n = len(features)
    count = len(masks["train_masks"])
    expected = {"train_masks": (count, n), "val_masks": (count, n), "test_mask": (n,)}
    for key, shape in expected.items():
        if masks[key].shape != shape:
            raise InputError(f"{path}: {key} must have shape {shape}; received {masks[key].shape}.")
    graph = Graph.of(
        edges=np.array(edges, dtype=np.int64).reshape(-1, 2).T,
        features=compact(features),
        labels=labels,
        name=facts.name,
    )
    test = np.flatnonzero(masks["test_mask"])
    splits = (
        Split(np.flatnonzero(train), np.flatnonzero(valid), test)
        for train, valid in zip(masks["train_masks"], masks["val_masks"], strict=True)
    )
    return replace(graph, splits=tuple(splits))
