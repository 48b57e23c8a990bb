"""Names of nodes: columns of the node table for the nodes of an embedding, and tables of answers with these columns."""

from __future__ import annotations

import logging
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ssge.datasets import facts_of, load
from ssge.errors import InputError, UnknownNameError, cut, printable, shown
from ssge.graph import Graph
from ssge.io.embeddings import find_ids
from ssge.io.nodes import ID, KNOWN, codes
from ssge.io.options import ReadOptions
from ssge.io.reading import own_nodes
from ssge.io.sources import LIMIT
from ssge.io.sql import is_sql, parse, read_tables
from ssge.io.tables import ArrowTable, Table, named, open_table, position
from ssge.ops.neighbors import Metric, Neighbors
from ssge.records import RunRecord
from ssge.tasks.clusters import Clusters

log = logging.getLogger(__name__)

LABEL = "label"
"""What the classes of a dataset are called as a column."""
_MOST_LISTED = 10
TABLE = ("id", "delimiter", "header", "limit")
"""The options of reading that concern the node table as a whole."""


@dataclass(frozen=True)
class Names:
    """What is known of the nodes of an embedding besides their ids.

    Attributes
    ----------
    node_ids
        Of the embedding, in its order.
    columns
        One value per node by the name of the column, None where there is none; the first holds the names.
    """

    node_ids: NDArray[Any]
    columns: dict[str, list[Any]] = field(default_factory=dict)

    def of(self, row: int) -> dict[str, Any]:
        """Return the id and the values of a node by column."""
        return {"id": self.node_ids[[row]].tolist()[0]} | {
            name: values[row] for name, values in self.columns.items() if name != "id"
        }

    def cells(self, row: int) -> list[str]:
        """Return the id and the values of a node as text, for a table."""
        return [str(self.node_ids[row]), *(as_text(values[row]) for values in self.columns.values())]

    def title(self, row: int) -> str:
        """Return a node as one writes it in a sentence: its name, and its id in brackets."""
        node, *names = self.cells(row)
        return f"{names[0]} ({node})" if names and names[0] not in ("", node) else node

    def table(self, columns: dict[str, Any], *ends: str) -> dict[str, Any]:
        """Return columns about nodes, then the shown columns of these nodes, whose type no choice of nodes changes.

        ``ends`` are columns of rows, which become ids. Their names stand before those of the shown columns, except
        ``id``. A shown column that has the name of one about nodes is called ``node`` and that name.
        """
        shown = {
            name if end == "id" else f"{end} {name}": pa.array(values).take(pa.array(columns[end]))
            for end in ends
            for name, values in self.columns.items()
        }
        own = columns | {end: self.node_ids[columns[end]] for end in ends}
        return own | {f"node {name}" if name in own else name: values for name, values in shown.items() if name != "id"}

    def positions(self, nodes: Sequence[Any]) -> NDArray[np.int64]:
        """Return the rows of nodes, given by id or by their name in the first column.

        An id comes first, then a name as it is written, then one that differs in case alone. A name of several nodes
        is an error that lists them.
        """
        rows = find_ids(self.node_ids, nodes)
        for i in np.flatnonzero(rows < 0).tolist():
            rows[i] = self._named(str(nodes[i]))
        return rows

    def _named(self, name: str) -> int:
        column = next(iter(self.columns), "")
        texts = [as_text(value) for value in self.columns.get(column, ())]
        found = [row for row, text in enumerate(texts) if text == name]
        found = found or [row for row, text in enumerate(texts) if text.casefold() == name.casefold()]
        if not found:
            raise UnknownNameError("node", name, [*map(str, self.node_ids.tolist()), *filter(None, texts)])
        if len(found) > 1:
            cells = (self.cells(row) for row in found[:_MOST_LISTED])
            some = ", ".join(" ".join(filter(None, (node, *others))) for node, _, *others in cells)
            more = f" and {len(found) - _MOST_LISTED:,} more" if len(found) > _MOST_LISTED else ""
            raise InputError(f"{column} is {shown(name)} for {len(found):,} nodes; ask by id: {printable(some)}{more}.")
        return found[0]


def read_names(
    node_ids: NDArray[Any],
    show: str | Sequence[str] | None,
    record: RunRecord | None = None,
    *,
    nodes: Any = None,
    id: str | None = None,
) -> Names:
    """Read columns of the node table for the nodes of an embedding.

    Parameters
    ----------
    node_ids
        Of the embedding.
    show
        Names of columns, in a list or with commas between them; the first names the nodes. A dataset has one column,
        ``label``. None: no columns.
    record
        Of the run: it knows the node table.
    nodes
        Another node table: a path or a data frame.
    id
        Its column of ids. Default: one named id, node, node_id or name; else the first.
    """
    if show is None:
        return Names(node_ids)
    if nodes is not None:
        names = [id, *([show] if isinstance(show, str) else show)]
        return _from_table(node_ids, show, open_table(nodes, "nodes", ReadOptions(), KNOWN, names), id)
    if record is None:
        raise InputError("show names columns of a node table, and an embedding knows none: give nodes=...")
    options = {key: value for key, value in record.reading.items() if key in TABLE}
    if "nodes" in record.reading:
        if not Path(record.reading["nodes"]).exists():
            raise InputError(f"The node table of the run, {record.reading['nodes']}, is gone: give nodes=...")
        table: Table | None = open_table(record.reading["nodes"], "nodes", ReadOptions(**options), KNOWN)
    elif facts_of(record.dataset) is not None:
        table = _labels(load(record.dataset))
    elif is_sql(record.dataset):
        found = read_tables(parse(record.dataset), LIMIT)[1]
        table = None if found is None else ArrowTable(found, "nodes")
    else:
        table = own_nodes(Path(record.dataset)) if Path(record.dataset).exists() else None
    if table is None:
        raise InputError(f"show names columns of a node table; {printable(record.name)} has none: give nodes=...")
    return _from_table(node_ids, show, table, id or options.get("id"))


def as_text(value: Any) -> str:
    """Return a value of a column as text; an empty one where there is none."""
    if value is None or value != value:  # noqa: PLR0124 - not a number
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def wanted(show: str | Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names of the columns to show; commas separate names, unless a column has them in its name."""
    entries = [show] if isinstance(show, str) else list(show)
    split = [[entry] if entry in names else entry.split(",") for entry in entries]
    found = list(dict.fromkeys(name.strip() for part in split for name in part if name.strip()))
    if not found:
        raise InputError("show must name at least one column; received none.")
    return found


def lines_of(node_ids: NDArray[Any], ids: Sequence[Any], free: bool) -> NDArray[np.int64]:
    """Return the line of each node in a table with these ids, -1 where there is none; ``free`` is text of any kind."""
    rows = find_ids(node_ids, [i.strip(string.whitespace) if free and isinstance(i, str) else i for i in ids])
    line = np.full(len(node_ids), -1)
    line[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    return line


def _from_table(node_ids: NDArray[Any], show: str | Sequence[str], table: Table, id: str | int | None) -> Names:
    at = position(table, id, "id") if id is not None else named(table, ID) or 0
    chosen = [position(table, name, "show") for name in wanted(show, table.names)]
    parts = list(dict.fromkeys([at, *chosen]))
    columns = dict(zip(parts, table.read(parts, text=[at]).columns, strict=True))
    if table.free:  # 08001 is no number
        columns |= codes(table, [i for i in chosen if i != at], columns)
    line = lines_of(node_ids, columns[at].to_pylist(), table.free)
    lost = int((line < 0).sum())
    if lost == len(node_ids):
        raise InputError(
            f"{table.where}: no id in column {table.names[at]!r} is one of the embedding, such as "
            f"{shown(node_ids[0])}; give another column with id=..."
        )
    if lost:
        log.warning("%s: %s of %s nodes are not in this table.", table.where, f"{lost:,}", f"{len(node_ids):,}")
    found = {}
    for i in chosen:
        values = columns[i].to_pylist()
        found[table.names[i]] = [_plain(values[j]) if j >= 0 else None for j in line.tolist()]
    return Names(node_ids, found)


def _labels(graph: Graph) -> Table | None:
    """Return the classes of a dataset as a table of nodes, if it has any."""
    if graph.labels is None:
        return None
    classes = graph.class_names or range(int(graph.labels.max(initial=-1)) + 1)
    labels = [str(classes[i]) if i >= 0 else None for i in graph.labels.tolist()]
    return ArrowTable(pa.table({"id": graph.node_ids, LABEL: labels}), graph.name)


def _plain(value: Any) -> Any:
    """Return text, a number or a truth value as it is, and anything else, such as a date or a list, as text."""
    return value if value is None or isinstance(value, str | int | float | bool) else cut(str(value))


SCORES: dict[Metric, str] = {"cosine": "cosine", "euclidean": "distance"}
"""What the score of a neighbor is called."""


def neighbor_columns(
    names: Names, rows: NDArray[np.int64], found: Neighbors, metric: Metric, size: int = 1 << 14
) -> Iterator[dict[str, Any]]:
    """Yield id, rank, neighbor and its score, then the shown columns of both, in batches of some nodes."""
    k = found.position.shape[1]
    for start in range(0, max(1, len(rows)), size):  # once for no nodes: the columns are there all the same
        part = slice(start, start + size)
        near = found.position[part].ravel()
        there = near >= 0  # fewer than k, where linked nodes are left out
        columns = {
            "id": np.repeat(rows[part], k)[there],
            "rank": np.tile(np.arange(1, k + 1), len(rows[part]))[there],
            "neighbor": near[there],
            SCORES[metric]: found.score[part].ravel()[there],
        }
        yield names.table(columns, "id", "neighbor")


def pair_columns(names: Names, pairs: NDArray[np.int64], own: dict[str, Any]) -> dict[str, Any]:
    """Return the ids of two nodes per row and the columns about them, then the shown columns of both."""
    return names.table({"source": pairs[0], "target": pairs[1], **own}, "source", "target")


def cluster_columns(names: Names, found: Clusters) -> dict[str, Any]:
    """Return id, cluster and distance from its center, then the shown columns."""
    rows = np.arange(len(names.node_ids))
    return names.table({"id": rows, "cluster": found.cluster, "distance": found.distance}, "id")


def outlier_columns(names: Names, scores: NDArray[np.float64]) -> dict[str, Any]:
    """Return id and score of all nodes, the highest first, then the shown columns."""
    order = np.argsort(-scores, kind="stable")
    return names.table({"id": order, "score": scores[order]}, "id")
