"""A table of labels: the classes of some nodes of an embedding."""

from __future__ import annotations

import logging
import math
import string
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError, shown
from ssge.foreign import LABEL_NAMES
from ssge.io.embeddings import find_ids
from ssge.io.ids import hint
from ssge.io.nodes import ID, NONE
from ssge.io.options import ReadOptions
from ssge.io.tables import Table, named, open_table, position

log = logging.getLogger(__name__)

LABELS = (*LABEL_NAMES, "class")


def read_labels(
    path: Path, node_ids: NDArray[Any], id: str | None = None, label: str | None = None
) -> tuple[NDArray[np.int64], list[Any]]:
    """Return the rows of the labeled nodes in an embedding and their labels, in the order of the file.

    Labels, and ids in text files, lose the blanks around them. Labels that are missing, and ids that are not in the
    embedding, are counted in the log; a second label of one node is an error that names its line.

    Parameters
    ----------
    path
        CSV, TSV or Parquet.
    node_ids
        Of the embedding.
    id
        Column of the ids. Default: one named id, node, node_id or name; else the first.
    label
        Column of the labels. Default: one named y, label, labels or class; else the only other one.
    """
    table = open_table(path, "labels", ReadOptions(), (*ID, *LABELS), (id, label))
    at, target = _columns(table, id, label)
    log.info("%s: ids are in column %r, labels in %r.", path, table.names[at], table.names[target])
    data = table.read([at, target], text=[at, target])
    names = data.column(0).to_pylist()
    if table.free:  # elsewhere blanks are part of an id, as in a node table
        names = [_trimmed(value, ("",)) for value in names]
    labels = [_trimmed(value, NONE) for value in data.column(1).to_pylist()]
    lines = [line for line, value in enumerate(labels) if value is not None]
    if len(lines) < len(labels):
        log.info("%s: %s of %s rows have no label.", path, f"{len(labels) - len(lines):,}", f"{len(labels):,}")
    nameless = next((line for line in lines if names[line] is None), None)
    if nameless is not None:
        raise InputError(f"{table.place(nameless)}, column {table.names[at]!r}: the id is missing.")
    rows = find_ids(node_ids, [names[line] for line in lines])
    unknown = [names[line] for line, row in zip(lines, rows, strict=True) if row < 0]
    if unknown:
        text = f"{len(unknown):,} of {len(lines):,} labeled ids are not in the embedding, such as {shown(unknown[0])}"
        text = f"{text}; {hint(unknown[0], node_ids)}".removesuffix("; ")
        if len(unknown) == len(lines):
            raise InputError(f"{path}: {text}.")
        log.warning("%s: %s.", path, text)
    found: dict[int, int] = {}
    for line, row in zip(lines, rows.tolist(), strict=True):
        if row >= 0 and found.setdefault(row, line) != line:
            before = table.place(found[row])
            raise InputError(f"{table.place(line)}: the id {shown(names[line])} has a label already, {before}.")
    return np.array(list(found), dtype=np.int64), [labels[line] for line in found.values()]


def has_labels(nodes: Path | str, label: str | int, **text: Any) -> bool:
    """Return whether a node table has a column of labels with one in each row; ``text`` are options of reading."""
    table = open_table(nodes, "nodes", ReadOptions(**text), ID, (label,))
    try:
        at = position(table, label, "label")
    except InputError:
        return False
    return all(_trimmed(value, NONE) is not None for value in table.read([at], text=[at]).column(0).to_pylist())


def _columns(table: Table, id: str | None, label: str | None) -> tuple[int, int]:
    if len(table.names) < 2:
        raise InputError(f"{table.where} must have a column of ids and one of labels; received {table.names[0]!r}.")
    at = position(table, id, "id") if id is not None else named(table, ID) or 0
    target = position(table, label, "label") if label is not None else named(table, LABELS)
    if target is None:
        if len(table.names) > 2:
            raise InputError(f"{table.where}: label must name the column of the labels; there are {table.names}.")
        target = 1 - at
    if at == target:
        raise InputError(f"id and label must be two columns; received {table.names[at]!r} for both.")
    return at, target


def _trimmed(value: Any, none: Collection[str]) -> Any:
    """Return text without the blanks around it, and None for a missing value."""
    if isinstance(value, str):
        value = value.strip(string.whitespace)  # as ids in node tables: a no-break space is part of an id
        return None if value in none else value
    return None if isinstance(value, float) and math.isnan(value) else value
