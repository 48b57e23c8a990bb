"""A table of nodes: which column is the id, which the label, and which become features."""

from __future__ import annotations

import logging
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ssge.errors import InputError, cut, printable, shown
from ssge.foreign import LABEL_NAMES
from ssge.io.columns import EMPTY, NotAFeatureError, Raw, has_codes, raw_column
from ssge.io.options import ReadOptions
from ssge.io.roles import by_name, by_values
from ssge.io.sources import explained
from ssge.io.tables import JsonTable, Table, TableColumn, is_text, named, open_table, position
from ssge.schema import FeatureSchema, LeftOut

log = logging.getLogger(__name__)

ID = ("id", "node", "node_id", "name")
KNOWN = frozenset((*ID, *LABEL_NAMES))
NONE = frozenset(("", "NA", "NaN", "nan", "null", "NULL"))
"""Texts that mean a missing label."""


class Nodes(NamedTuple):
    """What a node table holds.

    Attributes
    ----------
    ids
        Its column of ids.
    raws
        The columns that become features.
    labels
        One per row, or None.
    left_out
        The columns that become no features.
    label
        Name of the column of the labels, if there is one.
    """

    ids: TableColumn
    raws: list[Raw]
    labels: NDArray[Any] | None
    left_out: list[LeftOut]
    label: str | None


def open_nodes(options: ReadOptions) -> Table:
    """Open the node table; names of columns that the options give help to find its header."""
    lists = (options.columns, options.ignore, options.bag, options.text)
    asked = (options.id, options.label, *(name for names in lists for name in names or ()))
    return open_table(options.nodes, "nodes", options, KNOWN, asked)


def read_nodes(table: Table, options: ReadOptions, schema: FeatureSchema) -> Nodes:
    """Read a node table: its ids, its labels, and the columns that become features.

    A fitted schema decides which columns the table must have, and their kinds.
    """
    at = position(table, options.id, "id") if options.id is not None else named(table, ID) or 0
    chosen = None if options.columns is None else [position(table, column, "columns") for column in options.columns]
    if chosen and at in chosen:
        raise InputError(f"columns must not hold the id, {table.names[at]!r}.")
    left_out = {position(table, column, "ignore") for column in options.ignore or ()}
    wanted = "table" in schema.features
    kinds: dict[int, str] = {}
    if wanted:
        kinds = _expected(table, schema) if schema.fitted else _bags_and_texts(table, options, at)
    target = _label(table, options.label, at, list(kinds) if schema.fitted else chosen)
    if not wanted:
        chosen = []
    elif schema.fitted:
        extra = [name for i, name in enumerate(table.names) if i not in {at, target, *kinds}]
        if extra:
            log.info("%s: columns not in the schema are left out: %s.", table.where, cut(printable(", ".join(extra))))
        chosen = list(kinds)
    elif chosen is None:
        chosen = [i for i in range(len(table.names)) if i not in (at, target)]
    chosen = [i for i in dict.fromkeys([*chosen, *kinds]) if i not in left_out]
    parts = list(dict.fromkeys([at, *chosen, *([] if target is None else [target])]))
    data = table.read(parts, text=[at, *(i for i, kind in kinds.items() if kind in ("category", "bag", "text"))])
    log.info("%s: id %r%s.", table.where, table.names[at], table.form)
    columns = dict(zip(parts, data.columns, strict=True))
    written = codes(table, [i for i in chosen if i not in kinds], columns) if table.free else {}
    roles = {at: "the id", **dict.fromkeys(left_out, "ignored")} | ({} if target is None else {target: "the label"})
    raws = []
    for i in chosen:
        column = TableColumn(table, table.names[i], written.get(i, columns[i]))
        found = _feature(column, options.columns is not None, kinds.get(i))
        if isinstance(found, Raw):
            raws.append(found)
        else:
            roles[i] = found
    label = labels = None
    if target is not None:
        label = table.names[target]
        labels = labels_in(TableColumn(table, label, columns[target]), options.label is not None)
    used = set(chosen) - set(roles) if wanted else range(len(table.names))
    others = [
        LeftOut(name=name, why=roles.get(i, "not named")) for i, name in enumerate(table.names) if i not in used
    ]  # fmt: skip
    return Nodes(TableColumn(table, table.names[at], columns[at]), raws, labels, others, label)


def _bags_and_texts(table: Table, options: ReadOptions, at: int) -> dict[int, str]:
    """Return the columns that are bags or text, by position, with their kinds: those named, and the lists of JSON."""
    asked = {kind: [position(table, column, kind) for column in getattr(options, kind) or ()] for kind in EMPTY}
    if isinstance(table, JsonTable):
        asked["bag"].append(1)
    if at in asked["bag"] + asked["text"]:
        raise InputError(f"bag and text must not hold the id, {table.names[at]!r}.")
    if both := set(asked["bag"]) & set(asked["text"]):
        raise InputError(f"bag and text must be different columns; received {table.names[both.pop()]!r} in both.")
    return {i: kind for kind, columns in asked.items() for i in columns}


def _feature(column: TableColumn, named: bool, kind: str | None) -> Raw | str:
    """Return a feature column; for one that is used only if it is named, return what it looks like."""
    if kind is not None:  # a schema has decided
        return raw_column(column, named, kind)
    role = by_name(column.name)
    if role and not named:
        return role
    try:
        raw = raw_column(column, named)
    except NotAFeatureError as error:
        if named:
            raise
        return error.why
    role = role or by_values(raw, column.values)
    return role if role and not named else raw._replace(note=role or "")


def codes(table: Table, chosen: Sequence[int], found: Mapping[int, Any]) -> dict[int, Any]:
    """Return, as text, the integer columns of a text file in which some values have leading zeros."""
    whole = [i for i in chosen if pa.types.is_integer(found[i].type)]
    if not whole:
        return {}
    again = table.read(whole, text=whole)
    return {i: column for i, column in zip(whole, again.columns, strict=True) if has_codes(column)}


def _label(table: Table, label: str | int | None, at: int, chosen: list[int] | None) -> int | None:
    """Return the label column: as given, or by its usual names, which become features only if they are named."""
    if label is not None:
        target = position(table, label, "label")
        if target == at or (chosen and target in chosen):
            raise InputError(f"label must be neither the id nor among columns; received {label!r}.")
        return target
    found = named(table, LABEL_NAMES)
    if found is None or found == at or (chosen and found in chosen):
        return None
    log.info("%s: column %r is taken as the label; columns=[...] makes it a feature.", table.where, table.names[found])
    return found


def _expected(table: Table, like: FeatureSchema) -> dict[int, str]:
    """Return the position and the kind of the columns that a schema expects of a node table."""
    matrix = next((column for column in like.columns if column.kind == "matrix"), None)
    if matrix is not None:
        raise InputError(f"like expects a feature matrix of {matrix.width} columns, not a table such as {table.where}.")
    columns, places = like.table_columns, {name: i for i, name in enumerate(table.names)}
    missing = [column.name for column in columns if column.name not in places]
    if missing:
        raise InputError(f"{table.where} lacks columns that like expects: {cut(', '.join(missing))}.")
    counts = Counter(table.names)
    if twice := next((column.name for column in columns if counts[column.name] > 1), None):
        raise InputError(f"like: {table.where} has more than one column named {shown(twice)}.")
    return {places[column.name]: column.kind for column in columns}


def labels_in(column: TableColumn, given: bool) -> NDArray[Any] | None:
    """Return the labels in a column; None if one is missing and the column was not asked for."""
    values = column.values
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    absent = pc.is_null(values, nan_is_null=True)
    if is_text(kind):
        values = pc.utf8_trim(values.cast(pa.string()), string.whitespace)
        absent = pc.or_(absent, pc.is_in(values, pa.array(sorted(NONE))))
    if pc.any(absent).as_py():
        row = pc.index(absent, True).as_py()
        if given:
            raise InputError(f"{column.at(row)}: the label is missing.")
        where, line = column.table.where, column.begin + row + 1
        log.warning("%s: column %r is left out: its label is missing in row %d.", where, column.name, line)
        return None
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        with explained(f"{column}: labels must be classes; received {kind}"):
            return np.array(values.cast(pa.string()).to_pylist(), dtype=object)
    return np.asarray(values.cast(kind).to_numpy())
