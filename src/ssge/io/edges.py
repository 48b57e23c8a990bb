"""A table of edges: the columns of source, target and weight, and the ends as positions of nodes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ssge.errors import InputError, shown
from ssge.foreign import Parts
from ssge.graph import Direction, wrong_weight
from ssge.io.columns import Raw
from ssge.io.ids import encode, hint
from ssge.io.options import ReadOptions
from ssge.io.tables import Table, TableColumn, is_number, is_text, named, numbers, open_table, position
from ssge.schema import FeatureSchema

log = logging.getLogger(__name__)

ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("head", "tail"))
_LOOKED_AT = 16
"""Columns of a node table that are searched for an id that its ids lack."""


def open_edges(edges: Any, options: ReadOptions, schema: FeatureSchema) -> Table:
    """Open the edge table; names of columns that the options give help to find its header."""
    asked = (options.source, options.target, options.weight, *(column for column, _ in schema.edge_columns))
    return open_table(edges, "edges", options, ENDS, asked, doubt=False)


def usual_ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of two columns with usual names for source and target, in any case."""
    folded = [name.casefold() for name in names]
    pair = next((pair for pair in ENDS if set(pair) <= set(folded)), None)
    return None if pair is None else (folded.index(pair[0]), folded.index(pair[1]))


def ends_of(table: Table, source: str | int | None, target: str | int | None) -> tuple[int, int]:
    """Return the columns of source and target: as given, by their usual names, or the first two."""
    if (source is None) != (target is None):
        raise InputError("Give both source and target, or neither of them.")
    if source is not None and target is not None:
        ends = position(table, source, "source"), position(table, target, "target")
        if ends[0] == ends[1]:
            raise InputError(f"source and target must be two columns of {table.where}; received {shown(source)} twice.")
        return ends
    if (found := usual_ends(table.names)) is not None:
        return found
    if len(table.names) < 2:
        raise InputError(
            f"{table.where} must have two columns at least, source and target; received {shown(table.names)}."
        )
    return 0, 1


def read_edges(
    table: Table,
    nodes: TableColumn | None,
    options: ReadOptions,
    schema: FeatureSchema,
    direction: Direction | None,
) -> tuple[Parts, list[Raw], FeatureSchema]:
    """Read a table of edges: the graph, its aggregated edge columns, and the schema with the column of weights.

    Nodes are those of the node table in its order, then others in ascending order.

    Parameters
    ----------
    nodes
        The ids of the node table, if there is one.
    options
        Columns by name or position, and what to do with an end that is not in the node table.
    schema
        Kind of ids and column of weights, where they are known; edge columns to read, where missing values are NaN
        if they may be missing.
    direction
        Which edges of a node count when a column is aggregated.
    """
    ends = ends_of(table, options.source, options.target)
    weight = weight_of(table, options.weight, ends, schema)
    others = {name: position(table, name, "edge_columns") for name, _ in schema.edge_columns}
    chosen = list(dict.fromkeys([*ends, *([] if weight is None else [weight]), *others.values()]))
    data = table.read(chosen, text=ends)
    _log_columns(table, ends, weight, range(len(table.names)) if schema.fitted else chosen)
    if _like_a_matrix(table, data.num_rows):
        log.warning(
            "%s: looks like an adjacency matrix, %d rows and %d columns, but is read as one edge per row; "
            "matrices are read from scipy, .npz and Matrix Market.",
            *(table.where, data.num_rows, len(table.names)),
        )

    column = {i: TableColumn(table, table.names[i], data.column(k)) for k, i in enumerate(chosen)}
    ids = [column[i] for i in ends]
    weights = None if weight is None else weights_in(column[weight])
    values = {name: numbers(column[i]) for name, i in others.items()}
    for name, value in values.items():
        bad = np.isinf(value) if schema.missing == "impute" else ~np.isfinite(value)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{column[others[name]].at(row)}: a number expected, {value[row]} found.")
    found, codes = encode([nodes, *ids] if nodes else ids, nodes is not None, schema.ids)
    n = len(nodes.values) if nodes else 0
    # Ids that only edges have are sorted, so that the graph does not depend on the order of the edges.
    order = np.concatenate([np.arange(n), n + np.argsort(found[n:], kind="stable")])
    rank = np.argsort(order).astype(np.int32)
    pair = np.stack([rank[end] for end in codes[-2:]])
    parts, kept = Parts(None, pair, weights, None, found[order], found.size, table.undirected), np.s_[:]
    if nodes is not None:
        parts, kept = _resolve_unknown(parts, ids, nodes, options.unknown or "error")
    sides = "both" if table.undirected else direction or "both"
    raws = [_aggregated(name, how, parts, values[name][kept], sides) for name, how in schema.edge_columns]
    update = {"weight": None if weight is None else table.names[weight], "weighted": weight is not None}
    return parts, raws, schema.model_copy(update=update)


def weight_of(table: Table, weight: str | int | None, ends: tuple[int, int], schema: FeatureSchema) -> int | None:
    """Return the column of the weights: as given, as in ``like``, or by its usual name."""
    if weight is not None:
        if schema.weighted is False:
            raise InputError(f"weight: the graph of like has no weights, so this one has none; received {weight!r}.")
        found = position(table, weight, "weight")
        if found in ends:
            raise InputError(f"weight must be another column than source and target; received {weight!r}.")
        return found
    usual = named(table, [(schema.weight or "weight").casefold()])
    usual = None if usual in ends else usual
    if schema.weight and usual is None:
        raise InputError(
            f"{table.where} lacks the column {schema.weight!r}, the weights in like; weight=... names another."
        )
    if usual is not None and schema.weighted is False:
        log.info("%s: column %r is not used, as the graph of like has no weights.", table.where, table.names[usual])
        return None
    return usual


def _log_columns(table: Table, ends: tuple[int, int], weight: int | None, used: Sequence[int]) -> None:
    """Log which columns are the ends and the weight, and which are not used."""
    names, where = table.names, table.where
    weights = "no weights" if weight is None else f"weights {shown(names[weight])}"
    log.info("%s: ends %s and %s, %s%s.", where, shown(names[ends[0]]), shown(names[ends[1]]), weights, table.form)
    if rest := [i for i in range(len(names)) if i not in used]:
        nameless = table.form.endswith("no header")
        listed = ", ".join(f"{i + 1}" if nameless else shown(names[i], 60) for i in rest[:8])
        listed += ", ..." * (len(rest) > 8)
        columns = f"column {listed} is" if len(rest) == 1 else f"columns {listed} are"
        which = "it" if len(rest) == 1 else "the first of them"
        option = shown(rest[0] if nameless else names[rest[0]], 60)
        log.info("%s: %s not used; weight=%s takes %s as weights.", where, columns, option, which)


def _like_a_matrix(table: Table, rows: int) -> bool:
    """Return whether a table is square, with names in its first column and row, or only zeros and ones."""
    n = len(table.names)
    if not table.names[0] and rows in (n - 1, n):
        return True
    if rows != n or n <= 3:
        return False
    data = table.read(range(n))
    return all(
        is_number(column.type) and np.isin(numbers(TableColumn(table, name, column)), (0, 1)).all()
        for name, column in zip(table.names, data.columns, strict=True)
    )


def _resolve_unknown(
    parts: Parts, columns: Sequence[TableColumn], nodes: TableColumn, unknown: str
) -> tuple[Parts, Any]:
    """Refuse, add or drop ends that are not in the node table; return the graph and which edges were kept."""
    n, where = len(nodes.values), columns[0].table.where
    unlisted = parts.edges >= n
    count = parts.node_ids.size - n
    if not count:
        return parts, np.s_[:]
    if unknown == "error":
        row = int(np.argmax(unlisted.any(axis=0)))
        end = int(np.argmax(unlisted[:, row]))
        found = parts.node_ids[parts.edges[end, row]]
        others = f" ({count:,} such ids)" if count > 1 else ""
        raise InputError(
            f"{columns[end].at(row)}: the node {shown(found)} is not in {nodes}{others}; "
            f"{hint(found, parts.node_ids[:n]) or _elsewhere(found, nodes)}unknown='add' or 'drop' lets it through."
        )
    if unknown == "add":
        log.info("%s: %s nodes added that are not in %s.", where, f"{count:,}", nodes.table.where)
        return parts, np.s_[:]
    kept = ~unlisted.any(axis=0)
    log.info("%s: %s edges dropped, ends not in %s.", where, f"{(~kept).sum():,}", nodes.table.where)
    if not kept.any():
        raise InputError(f"{where}: no edge has both ends in {nodes}, so unknown='drop' would leave none.")
    weights = None if parts.weights is None else parts.weights[kept]
    ids, edges = parts.node_ids[:n], parts.edges[:, kept]
    return parts._replace(edges=edges, weights=weights, node_ids=ids, num_nodes=n), kept


def _elsewhere(node: Any, ids: TableColumn) -> str:
    """Return the advice to use another column as ids, if one holds a node that the ids lack."""
    others = [i for i, name in enumerate(ids.table.names[:_LOOKED_AT]) if name != ids.name]
    for i, column in zip(others, ids.table.read(others, text=others).columns if others else (), strict=True):
        if (is_text(column.type) or is_number(column.type)) and str(node) in map(str, column.to_pylist()):
            name = shown(ids.table.names[i], 60)
            return f"it is in column {name}: id={name} takes that as ids; "
    return ""


def weights_in(column: TableColumn) -> NDArray[np.float64]:
    """Return a column of weights, checked."""
    values = numbers(column)
    if (wrong := wrong_weight(values, np.float32)) is not None:
        row, why = wrong
        raise InputError(f"{column.at(row)}: {why.replace('found nan', 'found none')}.")
    return values


def _aggregated(column: str, how: str, parts: Parts, values: NDArray[np.float64], direction: Direction) -> Raw:
    """Aggregate an edge column per node, over incoming edges, outgoing ones, or both.

    Rows count as they are in the table, duplicates twice, a self-loop once. Missing values are left out; nodes without
    a value get 0.
    """
    source, target = parts.edges
    at = {"in": target, "out": source}.get(direction)
    if at is None:
        once = source != target
        at, values = np.concatenate([target, source[once]]), np.concatenate([values, values[once]])
    known = ~np.isnan(values)
    table = pa.table({"node": at[known], "value": values[known]})
    found = table.group_by("node", use_threads=False).aggregate([("value", how)])  # threads sum in any order
    result, name = np.zeros((parts.node_ids.size, 1)), f"{how}({column})"
    result[found["node"].to_numpy(), 0] = found[f"value_{how}"].to_numpy()
    return Raw(name, "number", result, partial("row {1}, column {0!r}".format, name))
