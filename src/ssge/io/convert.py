"""`convert`: from tables of any size to a graph folder, in bounded memory.

The result is that of `ssge.read_graph`, with one difference: which columns become features, and of what kind, is
decided on the first rows of the node table (64 MiB of text), not on all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ssge.errors import InputError, printable, shown
from ssge.graph import classes_of
from ssge.io.columns import EMPTY, Raw, coded, raw_column
from ssge.io.edge_sort import EdgeSorter
from ssge.io.edges import ends_of, open_edges, weight_of, weights_in
from ssge.io.features import ColumnFit, encode, log_columns
from ssge.io.graph_folder import FEATURES, StoredGraph
from ssge.io.graph_writer import GraphWriter, check_target, graph_folder, write_graph
from ssge.io.id_maps import IntegerIds, TextIds
from ssge.io.ids import CANONICAL, plain
from ssge.io.nodes import labels_in, open_nodes, read_nodes
from ssge.io.options import ReadOptions
from ssge.io.reading import read_graph, without_labels
from ssge.io.sources import kind_of
from ssge.io.tables import Table, TableColumn, is_text
from ssge.schema import FeatureSchema

log = logging.getLogger(__name__)

_ANY = 1 << 62
_HEAD = 1 << 26
_BASE = 400 << 20
"""Bytes of Python and its libraries, and of a piece of a table in work."""
_ENTRY = 100
"""Bytes per edge while it is sorted."""


class _TextIdsError(Exception):
    """An id that is no integer, in tables without types."""


def convert(edges: Path, out: Path, options: ReadOptions, force: bool = False, memory: int = 2 * 10**9) -> StoredGraph:
    """Convert a graph to a graph folder.

    Tables of edges and of nodes are streamed. Anything else, such as a whole-graph file, structural features or nodes
    that only edges name, is read into memory by `ssge.read_graph` first.

    Parameters
    ----------
    edges
        The table of edges, or a file with a whole graph.
    out
        The folder to write.
    options
        How to read the tables.
    force
        Replace a graph folder.
    memory
        Bytes to stay below while tables are streamed.
    """
    check_target(out, force)
    if memory < 2 * _BASE:
        raise InputError(f"memory must be 800 MiB or more to convert tables; received {memory:,} bytes.")
    reason = _unstreamed(edges, options)
    if reason:
        log.info("%s is read into memory: %s.", printable(str(edges)), reason)
        return write_graph(read_graph(edges, **options.given()), out, force)
    options = options if options.limit else replace(options, limit=_ANY)
    with graph_folder(out, force) as folder:
        conversion = _Conversion(edges, options, folder, memory)
        if kind := next((raw.kind for raw in conversion.head.raws if raw.kind in EMPTY), None):
            raise InputError(
                f"{options.nodes}: a column is a {kind}, which is not streamed; leave it out with ignore=[...]."
            )
        try:
            conversion.run(text=False)
        except _TextIdsError:
            log.info("Ids are text: DuckDB matches them.")
            conversion.run(text=True)
    return StoredGraph.open(out)


def _unstreamed(edges: Path, options: ReadOptions) -> str:
    """Return why a graph cannot be streamed; an empty string if it can."""
    if options.nodes is None:
        return "there is no node table"
    kinds = [kind_of(Path(table)) if Path(table).exists() else "query" for table in (edges, options.nodes)]
    if any(kind not in ("text", "parquet", "folder") for kind in kinds) or any(edges.glob("**/edge.csv.gz")):
        return "it is no table of edges with one of nodes"
    if options.bag or options.text:
        return "bags and texts are counted over all nodes"
    if options.edge_columns:
        return "edge columns are aggregated"
    if options.features not in (None, ["table"], ("table",)):
        return "structural features need all edges"
    return "nodes are added" if options.unknown == "add" else ""


class _Conversion:
    """One conversion: ids and labels, then edges, then features."""

    def __init__(self, edges: Path, options: ReadOptions, folder: Path, memory: int) -> None:
        self.options, self.folder, self.memory, self.work = options, folder, memory, folder.parent / "work"
        self.name = printable(edges.name.split(".")[0]) or "graph"
        self.schema = options.schema()
        self.nodes, self.edges = open_nodes(options), open_edges(edges, options, self.schema)
        self.ends = ends_of(self.edges, options.source, options.target)
        self.weight = weight_of(self.edges, options.weight, self.ends, self.schema)
        self.head = read_nodes(_head(self.nodes), options, self.schema)
        self.id = self.nodes.names.index(self.head.ids.name)

    def run(self, text: bool) -> None:
        """Write the folder, with ids that are integers or text."""
        self.text = text
        ids = TextIds(self.work, self.memory - _BASE, self._ids()) if text else IntegerIds(self._ids())
        if (twice := ids.repeated()) is not None:
            raise InputError(f"{self.nodes.where}: the id {shown(twice)} occurs more than once.")
        labels, names = self._labels()
        self.writer = GraphWriter(self.folder, ids.count)
        self._write_edges(ids)
        del ids  # features need its memory
        self.writer.ids(self._ids(), text)  # only now: an end of an edge may be the first id that is no integer
        self.writer.finish(self.name, labels, names, self._write_features())

    def _columns(self, table: Table, at: list[int], kinds: Mapping[int, str]) -> Iterator[list[TableColumn]]:
        """Yield some columns of a table, piece by piece."""
        begin = 0
        for batch in table.batches(at, kinds):
            yield [
                TableColumn(table, table.names[i], values, begin) for i, values in zip(at, batch.columns, strict=True)
            ]
            begin += batch.num_rows

    def _ids(self) -> Iterator[Any]:
        return (self._plain(column) for (column,) in self._columns(self.nodes, [self.id], {self.id: "text"}))

    def _plain(self, column: TableColumn) -> Any:
        """Return ids as integers, or as text if that is what they are."""
        values = plain(column)
        if not is_text(values.type):
            if self.text:
                raise InputError(f"Ids must be all integers or all text; {column} holds integers.")
            return values.to_numpy()
        if self.text:
            return values
        if column.table.free and pc.all(pc.match_substring_regex(values, CANONICAL)).as_py():
            with suppress(pa.ArrowInvalid):  # too long for 64 bits: text
                return values.cast(pa.int64()).to_numpy()
        raise _TextIdsError

    def _labels(self) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
        """Return one class per node, if the table has labels, and their names."""
        if self.head.label is None or self.head.labels is None:
            return None, ()
        at = self.nodes.names.index(self.head.label)
        given = self.options.label is not None
        parts: list[Any] = []
        text = self.head.labels.dtype == object
        for (column,) in self._columns(self.nodes, [at], {at: "text"} if text else {}):
            found = labels_in(column, given)
            if found is None:
                return None, ()
            parts.append(pa.array(found).dictionary_encode() if text else found)
        if text:
            classes, names = coded(pa.chunked_array(parts))
            return classes, tuple(names.to_pylist())
        labels = np.concatenate(parts)
        return classes_of(labels, labels.size)

    def _edge_batches(self) -> Iterator[tuple[Any, Any, Any]]:
        weight = [] if self.weight is None else [self.weight]
        kinds = dict.fromkeys(self.ends, "text") | dict.fromkeys(weight, "number")
        for source, target, *weights in self._columns(self.edges, [*self.ends, *weight], kinds):
            yield self._plain(source), self._plain(target), weights_in(weights[0]) if weights else None

    def _write_edges(self, ids: IntegerIds | TextIds) -> None:
        """Sort the edges by target and, if the graph is directed, by source."""
        direction = self.options.direction or "both"
        entries = max(1 << 18, (self.memory - _BASE) // 4 // _ENTRY)
        sides = ("incoming",) if direction == "both" else ("incoming", "outgoing")
        sorters = {side: EdgeSorter(self.work, ids.count, self.weight is not None, entries) for side in sides}
        loops = dropped = total = 0
        for source, target, given, unknown in ids.ends(self._edge_batches()):
            if unknown is not None and self.options.unknown != "drop":
                raise InputError(
                    f"{self.edges.where}: the node {shown(unknown)} is not in {self.nodes.where}, column "
                    f"{self.nodes.names[self.id]!r}; unknown='drop' leaves out such edges."
                )
            known = (source >= 0) & (target >= 0)
            kept = known & (source != target)
            total += int(known.sum())
            dropped += int((~known).sum())
            loops += int((known & ~kept).sum())
            kept &= True if given is None else given > 0
            weights = None if given is None else given[kept]
            row, column = (source[kept], target[kept]) if direction == "out" else (target[kept], source[kept])
            for sorter in sorters.values():
                sorter.add(row, column, weights, reverse=direction == "both")
                row, column = column, row
        if dropped:
            log.info("%s: %s edges dropped, ends not in %s.", self.edges.where, f"{dropped:,}", self.nodes.where)
        if not total:
            raise InputError(f"{self.edges.where}: no edge has both ends in {self.nodes.where}.")
        if loops:
            log.info("%s: %s self-loops removed (encoders add their own).", self.name, f"{loops:,}")
        for side, sorter in sorters.items():
            self.writer.neighbors(side, sorter.parts())

    def _write_features(self) -> FeatureSchema:
        """Decide which columns become features, fit their encoding, and write them."""
        head, where = self.head, self.edges.where
        edges = self.writer.sample_edges(len(head.ids.values))
        heads, schema = without_labels(head.raws, head, edges, self.options, self.schema, where)
        if not heads:
            left = ", ".join(f"{entry.name!r} {entry.why}" for entry in schema.left_out[:8])
            raise InputError(f"{where} has no node features. Columns are left out: {left}.")
        fits = [ColumnFit(head, schema) for head in heads]
        if any(fit.needed for fit in fits):
            for raws in self._raws(heads):
                for fit, raw in zip(fits, raws, strict=True):
                    fit.add(raw)
        fitted = tuple(fit.column() for fit in fits)
        names = tuple(name for column in fitted for name in column.names)
        with self.writer.array(FEATURES, np.float32, len(names)) as file:
            for raws in self._raws(heads):
                blocks = [encode(raw, column) for raw, column in zip(raws, fitted, strict=True)]
                file.append(np.concatenate([b if isinstance(b, np.ndarray) else b.toarray() for b in blocks], axis=1))
        schema = schema.model_copy(update={
            "columns": fitted, "names": names, "ids": "text" if self.text else "integer",
            "weighted": self.weight is not None,
            "weight": None if self.weight is None else self.edges.names[self.weight],
            "direction": self.options.direction or "both",
        })  # fmt: skip
        if schema.left_out:
            log_columns(schema, where)
        return schema

    def _raws(self, heads: list[Raw]) -> Iterator[list[Raw]]:
        """Yield the columns piece by piece."""
        at = [self.nodes.names.index(head.name) for head in heads]
        kinds = {i: "text" if head.kind == "category" else head.kind for i, head in zip(at, heads, strict=True)}
        for columns in self._columns(self.nodes, at, kinds if self.nodes.free else {}):
            yield [raw_column(column, True, head.kind) for column, head in zip(columns, heads, strict=True)]


def _head(table: Table) -> Table:
    """Return a table of which `read` gives the first rows alone."""
    head = copy(table)
    head.read = lambda columns, text=(): next(  # type: ignore[method-assign]
        iter(table.batches(columns, dict.fromkeys(text, "text"), _HEAD))
    )
    return head
