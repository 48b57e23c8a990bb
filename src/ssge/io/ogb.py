"""The raw CSV files of an OGB node dataset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError
from ssge.foreign import Parts
from ssge.io.matrices import refuse_size
from ssge.io.sources import LIMIT
from ssge.io.tables import TableColumn, numbers
from ssge.io.text import TextTable


def read_ogb(paths: Mapping[str, Path], limit: int = LIMIT) -> Parts:
    """Read edges, features and labels; labels only where each node has one.

    Parameters
    ----------
    paths
        Files by name: edge, and where they exist num-node-list, node-feat and node-label, each .csv.gz.
    limit
        Most bytes to unpack per file.
    """
    found: dict[str, NDArray[Any]] = {
        name: _table(paths[f"node-{name}.csv.gz"], limit)
        for name in ("feat", "label")
        if f"node-{name}.csv.gz" in paths
    }
    if "num-node-list.csv.gz" in paths:
        sizes = read_integers(paths["num-node-list.csv.gz"], 1, limit)
        if sizes.size != 1:
            raise InputError(f"{paths['num-node-list.csv.gz']} must have 1 row, for one graph; received {sizes.size}.")
        n = int(sizes[0, 0])
    elif found:
        n = len(found.get("label", found.get("feat", ())))
    else:
        raise InputError(f"No such file: {paths['edge.csv.gz'].with_name('num-node-list.csv.gz')}.")
    edges = read_integers(paths["edge.csv.gz"], 2, limit).T
    features, labels = found.get("feat"), found.get("label")
    refuse_size(paths["edge.csv.gz"], n, limit, edges.size + sum(len(array) for array in found.values()))
    if features is not None and len(features) != n:
        raise InputError(f"{paths['node-feat.csv.gz']} must have {n:,} rows; received {len(features):,}.")
    whole = labels is not None and labels.shape == (n, 1) and not (labels % 1).any()
    return Parts(
        features=None if features is None else features.astype(np.float32),
        edges=edges,
        labels=labels[:, 0].astype(np.int64) if labels is not None and whole else None,
        num_nodes=n,
    )


def read_integers(path: Path, columns: int, limit: int = LIMIT) -> NDArray[np.int64]:
    """Read a CSV file of whole numbers without a header."""
    values = _table(path, limit)
    if values.shape[1] != columns or (values % 1).any() or (values < 0).any() or (values > 2**53).any():
        raise InputError(f"{path} must hold {columns} whole number(s) per row.")
    return values.astype(np.int64)


def _table(path: Path, limit: int) -> NDArray[np.float64]:
    text = TextTable(path, delimiter=",", header=False, limit=limit)
    data = text.read(range(len(text.names)))
    matrix = np.column_stack([numbers(TableColumn(text, str(i), column)) for i, column in enumerate(data.columns)])
    if np.isnan(matrix).any():
        row = int(np.argmax(np.isnan(matrix).any(axis=1)))
        raise InputError(f"{text.place(row)}: a number is missing.")
    return matrix
