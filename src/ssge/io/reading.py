"""`read_graph`: a user's own graph, from tables, whole-graph files or objects, as a checked `Graph`."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssge.errors import InputError, cut, printable, shown
from ssge.foreign import Parts, array_of, from_adjacency, is_graph, take_apart
from ssge.graph import Direction, Graph, arrange
from ssge.io.columns import EMPTY, Raw
from ssge.io.edges import open_edges, read_edges, usual_ends
from ssge.io.features import make_features
from ssge.io.formats import from_networkx, read_gml, read_graphml, read_ogb, read_torch
from ssge.io.graph_folder import StoredGraph, is_graph_folder
from ssge.io.ids import encode
from ssge.io.matrices import read_matrix_market, read_npz, refuse_size
from ssge.io.nodes import ID, Nodes, open_nodes, read_nodes
from ssge.io.options import ReadOptions
from ssge.io.roles import by_label, by_neighbors
from ssge.io.sources import LIMIT, errors_of, kind_of
from ssge.io.sql import is_sql, parse, read_tables
from ssge.io.tables import Table, is_frame, named
from ssge.schema import FeatureSchema, LeftOut

log = logging.getLogger(__name__)

_TWO_TABLES = {"graphml": read_graphml, "gml": read_gml}
_PARTS = {"npz": read_npz, "torch": read_torch, "matrix market": read_matrix_market}
"""Readers of a whole graph by the kind of its file: as tables of edges and nodes, or as arrays."""

Column = str | int
"""A column by its name, or by its position from 0."""


def read_graph(
    edges: Any,
    nodes: Any = None,
    *,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | None = None,
    id: Column | None = None,
    columns: Sequence[Column] | None = None,
    ignore: Sequence[Column] | None = None,
    label: Column | None = None,
    features: str | Sequence[str] | None = None,
    edge_columns: Mapping[str, str] | Sequence[str | tuple[str, str]] | None = None,
    direction: Direction | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    missing: Literal["error", "impute"] | None = None,
    scale: Literal["none", "standard"] | None = None,
    unknown: Literal["error", "add", "drop"] | None = None,
    limit: int | None = None,
    bag: Sequence[Column] | None = None,
    text: Sequence[Column] | None = None,
    like: Any = None,
    name: str | None = None,
) -> Graph:
    """Read a graph from tables, from a file that holds all of it, or from an object.

    `ssge.io.options.ReadOptions` describes the parameters from ``source`` to ``text``.

    Parameters
    ----------
    edges
        A table with one edge per row: CSV, TSV or other delimited text (also gzip or zstd), a Parquet file or a folder
        of them, a pandas, polars or pyarrow table. Or a whole graph: scipy or gnn-benchmark ``.npz``, Matrix Market,
        GraphML, GML, a PyG ``Data`` in a ``.pt`` file, a folder with the raw files of an OGB dataset, a graph folder of
        ``ssge convert``; a NetworkX, PyG or DGL graph, a scipy sparse adjacency, a `Graph`. Or a DuckDB database,
        ``duckdb:///flights.db?edges=routes&nodes=airports``, with tables, views or queries. Pickles are never opened.
    nodes
        A table with one node per row, as above, or JSON with the ids that each node has, ``{node: [ids]}``. The nodes
        of a matrix have no ids: rows are in the order of its nodes.
    edge_columns
        ``{"distance": "mean"}`` makes the feature ``mean(distance)``. A list may hold pairs, to aggregate one column
        in several ways, and names, for their means.
    like
        A `FeatureSchema`, or a graph or model that has one. Features are made in the same way, with the same levels,
        means and standard deviations; other columns are left out. Ids have the same kind, weights are in the same
        column, or in none, and the direction is the same.
    name
        A name for logs and records. Default: that of the file.

    Returns
    -------
    Graph
        Nodes are those of the node table in its order, isolated ones too, then others in ascending order of their id.

    Notes
    -----
    Ids are integers if all of them are, in every column and file, and text otherwise; ``007`` is text.

    Text columns of the node table are categories, one feature per level, if they have at most 50 levels and at most
    half as many levels as rows, or 10,000 levels if ``columns`` names them. Digits after a zero, as in 08001, are text.
    Lists of numbers, of one length in all rows, become as many features. Lists of text, and of integers that are not
    as many in each row, are bags of ids: one feature for each id. As many integers in each row may be either, so they
    need ``bag`` or ``columns``. An empty field is a missing value; in columns
    of numbers NA, NaN and null are too.

    Columns that look like labels, ids, dates, free text or the index of a data frame are left out, with a warning,
    unless ``columns`` names them. The log has a table of all columns; so has `Graph.schema`, as ``schema.table()``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> edges = pa.table({"source": ["ann", "bob"], "target": ["bob", "cy"]})
    >>> nodes = pa.table({"id": ["ann", "bob", "cy", "di"], "age": [31, 45, 27, 60]})
    >>> graph = read_graph(edges, nodes)
    >>> graph
    Graph('graph': 4 nodes, 4 directed edges, 1 features)
    >>> graph.node_ids.tolist()
    ['ann', 'bob', 'cy', 'di']
    >>> read_graph(edges, features="degree").schema.names
    ('degree',)
    """
    named = (nodes, source, target, weight, id, columns, ignore, label)
    more: Any = (features, edge_columns, direction, delimiter, header, missing, scale, unknown, limit, bag, text)
    options = ReadOptions(*named, *more)
    if isinstance(edges, str | Path) and is_graph_folder(Path(edges)):
        graph = open_stored(Path(edges), [option for option in options.given() if option != "limit"], like).load()
        log.info("%s: %s.", printable(str(edges)), graph)
        return graph if name is None else replace(graph, name=name)
    where = printable(str(edges)) if isinstance(edges, str | Path) else "edges"
    file = edges.partition("?")[0] if is_sql(edges) else edges
    found = printable(Path(file).name.split(".")[0]) if isinstance(file, str | Path) else ""
    return _read(edges, options, options.schema(like), where, name or found or "graph")


def open_stored(path: Path, given: Sequence[str] = (), like: Any = None) -> StoredGraph:
    """Open a graph folder; refuse options of reading, and features other than those of ``like``."""
    if given:
        raise InputError(f"{', '.join(given)}: only for tables; {path} is a graph folder, read when it was converted.")
    stored = StoredGraph.open(path)
    if like is not None:
        expected, found = ReadOptions().schema(like).names, () if stored.schema is None else stored.schema.names
        if expected != found:
            raise InputError(f"{path} has the features {shown(list(found))}; like expects {shown(list(expected))}.")
    return stored


def _read(edges: Any, options: ReadOptions, schema: FeatureSchema, where: str, name: str) -> Graph:
    """Open the source, read nodes and edges, make the features, and validate the graph."""
    found, options = _opened(edges, options, schema)
    rows = _nodes(found, options, schema, where)
    kept = None if isinstance(edges, Graph) else schema.direction
    if kept and options.direction not in (None, kept):
        raise InputError(f"direction is {kept!r} in like; received {options.direction!r}.")
    direction = options.direction or kept
    if isinstance(found, Parts):
        weight = None if is_graph(edges) else options.weight
        if any(column is not None for column in (options.source, options.target, weight, options.edge_columns or None)):
            raise InputError(f"source, target, weight, edge_columns name columns of an edge table; {where} is none.")
        parts, raws = _of_parts(found, rows, schema, where)
    else:
        parts, raws, schema = _of_table(found, rows, options, schema, direction)
    if rows is not None and not schema.fitted:
        ends = array_of(parts.edges, "edges")
        raws, schema = without_labels(raws, rows, ends, options, schema, where)
    labels = parts.labels if options.label is not None else None
    if parts.labels is not None and len(parts.labels) < (parts.num_nodes or 0):
        parts = parts._replace(labels=None)  # found unasked; nodes that were added have none
    default: Direction | None = None if isinstance(edges, Graph) else "both"  # a graph does not record how it was read
    sides = "both" if parts.undirected else direction or default
    schema = schema.model_copy(update={"ids": _kind_of_ids(parts.node_ids), "direction": sides})
    with errors_of(where):
        parts = arrange(parts, direction or default or "in", name=name)
    features, schema = make_features(parts, raws, schema, where)
    with errors_of(where):
        graph = Graph.of(parts, features=features, labels=labels, name=name)
    log.info("%s: %s.", where, graph)
    return replace(graph, schema=schema)


def _opened(edges: Any, options: ReadOptions, schema: FeatureSchema) -> tuple[Table | Parts, ReadOptions]:
    """Return a table of edges, or the parts of a graph, and the options, with the nodes of a graph that has its own."""
    limit, nodes, found = options.limit or LIMIT, None, None
    if is_sql(edges):
        edges, nodes = read_tables(parse(edges), limit)
        nodes = nodes if options.nodes is None else options.nodes
        return open_edges(edges, options, schema), replace(options, nodes=nodes)
    if isinstance(edges, Graph):
        found = Parts(edges.features, edges.edges, edges.weights, edges.labels, edges.node_ids, edges.num_nodes)
    elif sp.issparse(edges):
        found = from_adjacency(edges)
    elif hasattr(edges, "is_multigraph"):
        edges, nodes = from_networkx(edges, "edges")
    elif isinstance(edges, str | Path):
        path = Path(edges)
        kind = kind_of(path)
        if kind in _TWO_TABLES:
            edges, nodes = _TWO_TABLES[kind](path, limit)
        elif kind in _PARTS:
            found = _PARTS[kind](path, limit)
        elif folder := next((f for f in (path, path / "raw") if (f / "edge.csv.gz").is_file()), None):
            found = read_ogb({file.name: file for file in folder.glob("*.csv.gz")}, limit)
    elif not is_frame(edges) and is_graph(edges):
        found = take_apart(edges, (), options.weight if isinstance(options.weight, str) else None)
    if nodes is not None:
        if options.nodes is not None:
            raise InputError("nodes goes with an edge table or a matrix; this graph has its own nodes.")
        if (options.source, options.target, options.id) != (None, None, None):
            raise InputError("source, target and id name columns of tables; this graph has its own ends.")
        options = replace(options, nodes=nodes, source="source", target="target", id="id")
    return found or open_edges(edges, options, schema), options


def _nodes(found: Table | Parts, options: ReadOptions, schema: FeatureSchema, where: str) -> Nodes | None:
    """Read the node table, if there is one."""
    if options.nodes is not None:
        table = open_nodes(options)
        if not isinstance(found, Parts):
            _refuse_swapped(found, table)
        return read_nodes(table, options, schema)
    others = (options.id, options.columns, options.ignore or None, options.label, options.bag, options.text)
    if any(column is not None for column in others):
        raise InputError("id, columns, ignore, label, bag and text name columns of a node table: give nodes=...")
    if not isinstance(found, Parts) and (lacking := schema.table_columns):
        needed = cut(", ".join(column.name for column in lacking))
        raise InputError(f"{where} has no node features: like needs the columns {needed}; give nodes=...")
    return None


def read_columns(edges: Any, schema: FeatureSchema, reading: Mapping[str, Any]) -> Nodes | None:
    """Read the node columns of the features again; None if the features have none.

    Parameters
    ----------
    edges
        The source of the graph, as given to `read_graph`.
    schema
        How its features were made.
    reading
        The options it was read with, but for those that the schema has decided.
    """
    if not schema.table_columns:
        return None
    return _nodes(*_opened(edges, ReadOptions(**reading), schema), schema, str(edges))


def own_nodes(path: Path) -> Table | None:
    """Return the node table of a GraphML or GML file, with all attributes; None for any other file."""
    read = _TWO_TABLES.get(kind_of(path))
    return read(path, LIMIT)[1] if read else None


def _refuse_swapped(edges: Table, nodes: Table) -> None:
    """Refuse tables in the wrong order: only the node table has columns for source and target."""
    if usual_ends(nodes.names) and not usual_ends(edges.names) and named(edges, ID) is not None:
        raise InputError(
            f"{nodes.where} has columns for the ends of edges, {edges.where} one for ids: give the edges first, "
            "and the nodes as nodes=..."
        )


def _of_table(
    table: Table, rows: Nodes | None, options: ReadOptions, schema: FeatureSchema, direction: Direction | None
) -> tuple[Parts, list[Raw], FeatureSchema]:
    """Return the parts of a graph in an edge table, its feature columns, and the schema with the column of weights.

    Node columns are padded for added nodes; aggregated edge columns follow them.
    """
    parts, aggregated, schema = read_edges(table, rows.ids if rows else None, options, schema, direction)
    raws, labels, n = rows.raws if rows else [], rows.labels if rows else None, len(parts.node_ids)
    if schema.missing == "error" and any(raw.kind not in EMPTY and n > len(raw.values) for raw in raws):
        raise InputError("unknown='add' leaves columns of the added nodes without values: give missing='impute'.")
    if labels is not None and options.label is not None and len(labels) < n:
        raise InputError("unknown='add' leaves added nodes without a label: leave label out, or give unknown='drop'.")
    raws = [*(raw.padded(n) for raw in raws), *aggregated]
    counts = Counter(raw.name for raw in raws)
    if twice := next((name for name, count in counts.items() if count > 1), None):
        found = shown(twice)
        raise InputError(f"Columns that become features must have different names; {found} occurs more than once.")
    return parts._replace(labels=labels), raws, schema


def _of_parts(parts: Parts, rows: Nodes | None, schema: FeatureSchema, where: str) -> tuple[Parts, list[Raw]]:
    """Return the parts of a whole graph, and its features as columns; a node table replaces its own features."""
    n = parts.num_nodes
    if rows is not None:
        size = len(rows.ids.values)
        if n not in (None, size):
            raise InputError(
                f"{rows.ids.table.where} must have {n:,} rows, one per node of {where}; received {size:,}."
            )
        ids, _ = encode([rows.ids], True, schema.ids)
        labels = parts.labels if rows.labels is None else rows.labels
        return parts._replace(node_ids=ids, labels=labels, num_nodes=size), rows.raws
    if n is None:  # a PyG graph without features does not store its size
        n = int(array_of(parts.edges, "edges").max(initial=-1)) + 1
        refuse_size(Path(where), n, LIMIT)
    parts = parts._replace(num_nodes=n)
    if parts.features is None or "table" not in schema.features:
        return parts, []
    matrix = array_of(parts.features, "features")
    if matrix.ndim != 2 or not (np.issubdtype(matrix.dtype, np.number) or matrix.dtype == bool):
        raise InputError(f"{where}: features must be a matrix of numbers; received {matrix.dtype}, {matrix.shape}.")
    if np.iscomplexobj(matrix) or matrix.shape[0] != n or not matrix.shape[1]:
        raise InputError(f"{where}: features must be real, one row per node ({n:,}); received shape {matrix.shape}.")
    return parts, [Raw("x", "matrix", matrix, lambda row: f"{where}, row {row + 1}, column 'x'")]


def without_labels(
    raws: list[Raw], rows: Nodes, edges: NDArray[Any], options: ReadOptions, schema: FeatureSchema, where: str
) -> tuple[list[Raw], FeatureSchema]:
    """Leave out columns that look like labels, unless they are named; warn of those that determine the given label.

    The labels themselves decide nothing: with them or without them, features are the same.
    """
    mine = raws[: len(rows.raws)]
    roles = by_neighbors(mine, edges)
    left_out = list(rows.left_out)
    if options.columns is None:
        left_out += [LeftOut(name=name, why=why) for name, why in roles.items()]
        raws = [raw for raw in raws if raw.name not in roles]
    if rows.labels is not None:
        told = by_label([raw for raw in mine if raw.name not in roles], rows.labels, f"label {rows.label!r}")
        for name, why in told.items():
            warnings.warn(f"{where}: column {name!r} {why}; leave it out with ignore=[{name!r}].", stacklevel=4)
        roles = told | roles
    raws = [raw._replace(note=roles.get(raw.name, raw.note)) for raw in raws]
    return raws, schema.model_copy(update={"left_out": tuple(left_out)})


def _kind_of_ids(ids: Any) -> Literal["integer", "text"] | None:
    if ids is None:
        return None
    if np.issubdtype(ids.dtype, np.integer):
        return "integer"
    return "text" if all(isinstance(node, str) for node in ids) else None
