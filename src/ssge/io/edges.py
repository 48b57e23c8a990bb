"""A table of edges: which of its columns are the ends and the weight, and where the ends stand among the nodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ssge.errors import InputError, UnknownNameError
from ssge.graph import Direction
from ssge.io.ids import IdColumn, encode
from ssge.io.sources import shown
from ssge.io.tables import Table, is_number, named, numbers, position
from ssge.schema import FeatureSchema

log = logging.getLogger(__name__)

ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("head", "tail"))
WEIGHT = ("weight",)
HOW = ("mean", "sum", "max", "min")

Unknown: TypeAlias = Literal["error", "add", "drop"]


class Edges(NamedTuple):
    """Edges between positions in a list of nodes.

    Attributes
    ----------
    ends
        2 x m positions in ``ids``.
    ids
        Those of the node table in its order, then others in ascending order.
    weights
        One an edge, or None.
    weight
        The name of their column, or None.
    values
        The further columns that were asked for, by name.
    """

    ends: NDArray[np.int32]
    ids: NDArray[Any]
    weights: NDArray[np.float64] | None
    weight: str | None
    values: dict[str, NDArray[np.float64]]


def ends_of(table: Table, source: str | int | None, target: str | int | None) -> tuple[int, int]:
    """Return the positions of the columns with the two ends: as given, by their usual names, or the first two."""
    if (source is None) != (target is None):
        raise InputError("Give both source and target, or neither of them.")
    if source is not None and target is not None:
        ends = position(table, source, "source"), position(table, target, "target")
        if ends[0] == ends[1]:
            raise InputError(f"source and target must be two columns of {table.where}; received {source!r} twice.")
        return ends
    for pair in ENDS:
        found = tuple(named(table, (name,)) for name in pair)
        if found[0] is not None and found[1] is not None:
            return found[0], found[1]
    if len(table.names) < 2:
        raise InputError(f"{table.where} must have two columns at least, source and target; received {table.names}.")
    return 0, 1


def read_edges(
    table: Table,
    nodes: IdColumn | None,
    *,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    columns: Sequence[str] = (),
    unknown: Unknown = "error",
    missing: bool = False,
    like: FeatureSchema | None = None,
) -> Edges:
    """Read a table of edges.

    Parameters
    ----------
    nodes
        The ids of the node table, if there is one.
    source, target, weight
        Columns by name or position.
    columns
        Further columns of numbers to read.
    unknown
        What to do with an end that is not in the node table.
    missing
        Whether further columns may have missing values; they are NaN then.
    like
        A schema that says of what kind ids are, and whether and where there are weights.
    """
    ends = ends_of(table, source, target)
    heavy = _weight_of(table, weight, ends, like)
    others = [position(table, name, "edge_columns") for name in columns]
    chosen = list(dict.fromkeys([*ends, *([] if heavy is None else [heavy]), *others]))
    data = table.read(chosen, text=ends)
    _tell(table, ends, heavy, chosen if like is None else range(len(table.names)))
    if _like_a_matrix(table, data.num_rows):
        log.warning(
            "%s: looks like an adjacency matrix, %d rows and %d columns, but is read as one edge per row; "
            "matrices are read from scipy, .npz and Matrix Market.",
            *(table.where, data.num_rows, len(table.names)),
        )
    ids = [IdColumn(table, table.names[i], data.column(chosen.index(i))) for i in ends]
    encoded = encode([nodes, *ids] if nodes else ids, like.ids if like else None)
    weights = None if heavy is None else _weights(table, data.column(chosen.index(heavy)), table.names[heavy])
    values = {
        name: numbers(table, data.column(chosen.index(i)), table.names[i])
        for name, i in zip(columns, others, strict=True)
    }
    for name, value in values.items():
        bad = np.isinf(value) if missing else ~np.isfinite(value)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{table.place(row)}, column {name!r}: a number expected, {value[row]} found.")
    del data
    n = 0
    if nodes:
        n = len(nodes.values)
        if (encoded.codes[0] != np.arange(n)).any():
            row = int(np.argmax(encoded.codes[0] != np.arange(n)))
            twice = encoded.ids[encoded.codes[0][row]]
            raise InputError(f"{nodes.at(row)}: the id {shown(twice)} occurs more than once.")
    # Ids that only edges have are put in order, so that the graph does not depend on the order of the edges.
    order = np.concatenate([np.arange(n), n + np.argsort(encoded.ids[n:], kind="stable")])
    rank = np.empty(order.size, dtype=np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    pair = np.stack([rank[codes] for codes in encoded.codes[-2:]])
    found = Edges(pair, encoded.ids[order], weights, None if heavy is None else table.names[heavy], values)
    return found if nodes is None else _settled(found, n, table, ids, nodes, unknown)


def _weight_of(table: Table, weight: str | int | None, ends: tuple[int, int], like: FeatureSchema | None) -> int | None:
    """Return the column of the weights: as given, as in the graph before, or by its usual name."""
    if weight is not None:
        if like is not None and like.weighted is False:
            raise InputError(f"weight: the graph of like has no weights, so this one has none; received {weight!r}.")
        found = position(table, weight, "weight")
        if found in ends:
            raise InputError(f"weight must be another column than source and target; received {weight!r}.")
        return found
    before = like.weight if like else None
    usual = named(table, (before.casefold(),) if before else WEIGHT)
    usual = None if usual in ends else usual
    if before and usual is None:
        raise InputError(f"{table.where} lacks the column {before!r}, the weights in like; weight=... names another.")
    if usual is not None and like is not None and like.weighted is False:
        log.info("%s: column %r is not used, as the graph of like has no weights.", table.where, table.names[usual])
        return None
    return usual


def _tell(table: Table, ends: tuple[int, int], heavy: int | None, used: Sequence[int]) -> None:
    """Say in the log which columns are taken for what, and which are not used."""
    names, where = table.names, table.where
    weights = "no weights" if heavy is None else f"weights {names[heavy]!r}"
    log.info("%s: ends %r and %r, %s%s.", where, names[ends[0]], names[ends[1]], weights, table.form)
    if rest := [i for i in range(len(names)) if i not in used]:
        nameless = table.form.endswith("no header")
        listed = ", ".join([f"{i + 1}" if nameless else repr(names[i]) for i in rest][:8]) + ", ..." * (len(rest) > 8)
        columns = f"column {listed} is" if len(rest) == 1 else f"columns {listed} are"
        which = "it" if len(rest) == 1 else "the first of them"
        option = rest[0] if nameless else names[rest[0]]
        log.info("%s: %s not used; weight=%r takes %s as weights.", where, columns, option, which)


def _like_a_matrix(table: Table, rows: int) -> bool:
    """Say whether a table is square: names in its first column and row, or nothing but zeros and ones."""
    n = len(table.names)
    if not table.names[0] and rows in (n - 1, n):
        return True
    if rows != n or n <= 3:
        return False
    data = table.read(range(n))
    return all(
        is_number(column.type) and np.isin(numbers(table, column, name), (0, 1)).all()
        for name, column in zip(table.names, data.columns, strict=True)
    )


def _settled(
    edges: Edges, n: int, table: Table, columns: Sequence[IdColumn], nodes: IdColumn, unknown: Unknown
) -> Edges:
    """Do what was asked with ends that are not among the first n nodes."""
    strange = edges.ends >= n
    count = edges.ids.size - n
    if not count:
        return edges
    if unknown == "error":
        row = int(np.argmax(strange.any(axis=0)))
        end = int(np.argmax(strange[:, row]))
        raise InputError(
            f"{columns[end].at(row)}: the node {shown(edges.ids[edges.ends[end, row]])} is not in {nodes}; "
            "unknown='add' or 'drop' lets it through."
        )
    if unknown == "add":
        log.info("%s: %s nodes added that are not in %s.", table.where, f"{count:,}", nodes.table.where)
        return edges
    kept = ~strange.any(axis=0)
    log.info("%s: %s edges dropped, ends not in %s.", table.where, f"{(~kept).sum():,}", nodes.table.where)
    if not kept.any():
        raise InputError(f"{table.where}: no edge has both ends in {nodes}, so unknown='drop' would leave none.")
    return Edges(
        edges.ends[:, kept],
        edges.ids[:n],
        None if edges.weights is None else edges.weights[kept],
        edges.weight,
        {name: value[kept] for name, value in edges.values.items()},
    )


def _weights(table: Table, column: Any, name: str) -> NDArray[np.float64]:
    values = numbers(table, column, name)
    with np.errstate(over="ignore"):
        good = np.isfinite(values.astype(np.float32)) & (values >= 0)  # as the graph will hold them
    if not good.all():
        row = int(np.argmin(good))
        found = "none" if np.isnan(values[row]) else values[row]
        raise InputError(
            f"{table.place(row)}, column {name!r}: a weight must be finite and not negative; found {found}."
        )
    return values


def aggregation(edge_columns: Any) -> tuple[tuple[str, str], ...]:
    """Return pairs of an edge column and how to aggregate it; a list of names means their mean."""
    if edge_columns is None:
        return ()
    if isinstance(edge_columns, str):
        edge_columns = [edge_columns]
    entries = edge_columns.items() if isinstance(edge_columns, Mapping) else edge_columns
    pairs = (entry if isinstance(entry, list | tuple) and len(entry) == 2 else (entry, "mean") for entry in entries)
    result = []
    for name, how in pairs:
        if not isinstance(name, str):
            raise InputError(f"edge_columns must be names of columns; received {name!r}.")
        if how not in HOW:
            raise UnknownNameError("aggregation in edge_columns", str(how), HOW)
        result.append((name, how))
    return tuple(result)


def aggregate(edges: Edges, name: str, how: str, direction: Direction) -> NDArray[np.float64]:
    """Return one number per node, of a column over its edges: those a node hears along, both ends if undirected.

    Rows count as they are in the table, duplicates twice, a self-loop once. Missing values are left out; a node with
    no value has 0.
    """
    source, target = edges.ends
    values = edges.values[name]
    at = {"in": target, "out": source}.get(direction)
    if at is None:
        once = source != target
        at, values = np.concatenate([target, source[once]]), np.concatenate([values, values[once]])
    known = ~np.isnan(values)
    at, values, n = at[known], values[known], edges.ids.size
    counts = np.bincount(at, minlength=n)
    if how in ("mean", "sum"):
        sums = np.bincount(at, values, minlength=n)
        return np.asarray(sums / np.maximum(counts, 1) if how == "mean" else sums, dtype=np.float64)
    result = np.full(n, -np.inf if how == "max" else np.inf)
    (np.maximum if how == "max" else np.minimum).at(result, at, values)
    return np.where(counts > 0, result, 0.0)
