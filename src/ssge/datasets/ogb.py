"""The raw csv files of ogbn-arxiv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.datasets.facts import Facts
from ssge.datasets.features import compact
from ssge.errors import InputError
from ssge.graph import Graph, Split


def read(facts: Facts, paths: Mapping[str, Path]) -> Graph:
    """Read the citations, made symmetric, with the split by year: up to 2017, 2018, and after it."""
    edges = _table(paths["edge.csv.gz"], np.int64, columns=2)
    labels = _table(paths["node-label.csv.gz"], np.int64, columns=1)[:, 0]
    features = _table(paths["node-feat.csv.gz"], np.float32)
    if len(features) != len(labels):
        raise InputError(f"{paths['node-feat.csv.gz']} must have {len(labels):,} rows; received {len(features):,}.")
    parts = [_table(paths[f"{part}.csv.gz"], np.int64, columns=1)[:, 0] for part in ("train", "valid", "test")]
    graph = Graph.of(edges=edges.T, features=compact(features), labels=labels, name=facts.name)
    return replace(graph, splits=(Split(*(np.sort(part) for part in parts)),))


def _table(path: Path, dtype: type[np.generic], columns: int | None = None) -> NDArray[Any]:
    """Read a csv file of numbers without a header."""
    import pyarrow as pa
    from pyarrow import csv

    try:
        table = csv.read_csv(path, read_options=csv.ReadOptions(autogenerate_column_names=True))
        if columns not in (None, table.num_columns):
            raise ValueError(f"{columns} column(s) expected, {table.num_columns} received")
        return np.column_stack([column.to_numpy().astype(dtype, casting="same_kind") for column in table.columns])
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{path} is not a csv file of numbers ({' '.join(str(error).split())}).") from error
