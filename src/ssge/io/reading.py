"""`read_graph`: a user's own graph, from tables, whole-graph files or objects, as a checked `Graph`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from ssge.errors import InputError
from ssge.foreign import Parts, array_of, from_adjacency, is_graph, take_apart
from ssge.graph import Direction, Graph
from ssge.io import nodes as node_tables
from ssge.io.columns import Raw
from ssge.io.edges import ENDS, Edges, Unknown, aggregate, read_edges
from ssge.io.encoding import encode, fit, joined, warn_of_spreads
from ssge.io.formats import Tables, from_networkx, read_gml, read_graphml, read_ogb, read_torch
from ssge.io.ids import encode as encode_ids
from ssge.io.matrices import read_matrix_market, read_npz, refuse_size
from ssge.io.nodes import Nodes, read_nodes
from ssge.io.recipe import Recipe, recipe
from ssge.io.sources import LIMIT, kind_of, shown
from ssge.io.tables import ParquetTable, Table, is_frame, open_table
from ssge.ops.structural import structural_features
from ssge.schema import FeatureSchema

log = logging.getLogger(__name__)

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
    ignore: Sequence[Column] = (),
    label: Column | None = None,
    features: str | Sequence[str] | None = None,
    edge_columns: Mapping[str, str] | Sequence[str | tuple[str, str]] | None = None,
    direction: Direction | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    missing: Literal["error", "impute"] | None = None,
    scale: Literal["none", "standard"] | None = None,
    unknown: Unknown = "error",
    like: Any = None,
    limit: int = LIMIT,
    name: str | None = None,
) -> Graph:
    """Read a graph from tables, from a file that holds all of it, or from an object.

    Parameters
    ----------
    edges
        A table with one edge per row: CSV, TSV or other delimited text (also gzip or zstd), a Parquet file or a folder
        of them, a pandas, polars or pyarrow table. Or a whole graph: scipy or gnn-benchmark ``.npz``, Matrix Market,
        GraphML, GML, a PyG ``Data`` in a ``.pt`` file, a folder with the raw files of an OGB dataset; a NetworkX, PyG
        or DGL graph, a scipy sparse adjacency, a `Graph`. Pickles are never opened.
    nodes
        A table with one node per row, as above. With a matrix, whose nodes have no ids, its rows are in the same order.
    source, target
        Columns of the edge table. Default: source and target, src and dst, from and to, u and v, head and tail, in
        any case; else the first two.
    weight
        Column of the edge table with weights, finite and not negative. Default: one named weight, if there is one;
        the log names columns that are not used.
    id
        Column of the node table. Default: one named id, node, node_id or name; else the first.
    columns, ignore
        Make features of these columns only, or of all but these.
    label
        Column of the node table that becomes ``graph.labels`` and never a feature. Default: one named y, label or
        labels, unless ``columns`` holds it; others of these names become features only if ``columns`` holds them.
    features
        ``"table"`` for the columns of the node table (or the feature matrix of a whole graph) and aggregated edge
        columns; ``"degree"``, ``"clustering"``, ``"return"``, ``"laplacian"`` for features of the structure, or
        ``"structural"`` for all four. Default: ``"table"``.
    edge_columns
        Columns of the edge table to aggregate over the edges of a node, with ``mean``, ``sum``, ``max`` or ``min``:
        ``{"distance": "mean"}`` makes the feature ``mean(distance)``. A list may hold pairs, to aggregate a column in
        several ways, and names, for their means.
    direction
        ``both`` makes the graph symmetric, ``in`` and ``out`` keep it directed; see `Graph.of`.
    delimiter, header
        Of text, for both tables. Default: found, see `ssge.io.text.TextTable`.
    missing
        ``error`` names the first missing value; ``impute`` puts the mean of the column, or no level of a category, and
        adds a column that says where. Default: ``error``.
    scale
        ``standard`` gives columns of numbers mean 0 and deviation 1. Default: ``none``.
    unknown
        What to do with an end of an edge that is not in the node table: ``error``, ``add`` the node (its columns are
        missing then, which needs ``missing="impute"`` if it has any) or ``drop`` the edge.
    like
        A `FeatureSchema`, or anything with one in ``schema`` or ``schema_`` such as a graph or a model: features are
        made in the same way, with the levels, means and deviations kept there. Columns not in it are left out. Ids
        are of the same kind, weights are in the same column, or in none, and the direction is the same.
    limit
        Bytes that a file may unpack to, 16 GiB by default.
    name
        A name for logs and records. Default: that of the file.

    Returns
    -------
    Graph
        Nodes are those of the node table in its order, isolated ones too, then others in ascending order of their id.

    Notes
    -----
    Ids are integers if all of them are, in every column and file, and text otherwise; ``007`` is text.

    A column of a table is given by its name or by its position from 0; digits as text are a position where no column
    has that name.

    Text columns of the node table are categories, one feature per level, if they have 50 levels and half as many levels
    as rows at most; named in ``columns``, up to 10,000 levels. Digits behind a zero, as in 08001, are text. Other
    text, dates and times are refused. Lists of numbers, as long in each row, become as many features. An empty field
    is a missing value; in columns of numbers NA, NaN and null are too.

    A node without edges has 0 in an aggregated edge column.

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
    options = recipe(like, features, missing, scale, edge_columns, columns, ignore)
    if unknown not in ("error", "add", "drop"):
        raise InputError(f"unknown must be 'error', 'add' or 'drop'; received {unknown!r}.")
    if direction not in (None, "both", "in", "out"):
        raise InputError(f"direction must be 'both', 'in' or 'out'; received {direction!r}.")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0:
        raise InputError(f"limit must be a number of bytes; received {limit!r}.")
    text: dict[str, Any] = {"delimiter": delimiter, "header": header, "limit": limit}
    texts = (source, target, weight, *(column for column, _ in options.edge_columns))
    found = _opened(edges, weight, [c.casefold() for c in texts if isinstance(c, str)], text)
    where = str(edges) if isinstance(edges, str | Path) else "edges"
    name = name or (Path(edges).name.split(".")[0] if isinstance(edges, str | Path) else None) or "graph"

    node_table: Table | None = None
    if nodes is not None:
        asked = [c.casefold() for c in (id, label, *(columns or ()), *ignore) if isinstance(c, str)]
        node_table = open_table(nodes, "nodes", known=node_tables.KNOWN, asked=asked, doubt=True, **text)
    undirected = False
    if isinstance(found, Tables):
        if node_table is not None:
            raise InputError("nodes goes with an edge table or a matrix; this graph holds its nodes itself.")
        node_table, undirected = found.nodes, found.undirected
        if any(option is not None for option in (source, target, id)):
            raise InputError("source, target and id name columns of tables; this graph knows its ends itself.")
        source, target, id = "source", "target", "id"
    if node_table is None and (ignore or any(option is not None for option in (id, columns, label))):
        raise InputError("id, columns, ignore and label name columns of a node table: give nodes=...")
    rows = None
    if node_table is not None:
        rows = read_nodes(
            node_table,
            id=id,
            columns=columns,
            ignore=ignore,
            label=label,
            wanted=options.table,
            like=options.like,
        )
    elif options.like is not None and not isinstance(found, Parts) and (lacking := options.like.table_columns):
        needed = ", ".join(column.name for column in lacking)
        raise InputError(f"{where} has no node features: like needs the columns {needed}; give nodes=...")
    raws: list[Raw] = rows.raws if rows else []
    kept = options.like.direction if options.like and not isinstance(edges, Graph) else None
    if kept and direction not in (None, kept):
        raise InputError(f"direction is {kept!r} in like; received {direction!r}.")
    direction = direction or kept
    sides = direction if isinstance(edges, Graph) else direction or "both"  # a graph does not say how it was read
    if undirected or (isinstance(found, Parts) and found.undirected):
        sides = "both"

    if isinstance(found, Parts):
        unused = weight is not None and not is_graph(edges)
        if source is not None or target is not None or unused or options.edge_columns:
            raise InputError(f"source, target, weight, edge_columns name columns of an edge table; {where} is none.")
        parts, raws = _of_parts(found, rows, where, options)
        direction = direction or ("in" if isinstance(edges, Graph) else None)
    else:
        table = found.edges if isinstance(found, Tables) else found
        if table is None:
            raise InputError(f"{where} has no edges.")
        read = read_edges(
            table,
            rows.ids if rows else None,
            source=source,
            target=target,
            weight=weight,
            columns=[column for column, _ in options.edge_columns],
            unknown=unknown,
            missing=options.missing == "impute",
            like=options.like,
        )
        options = options._replace(weight=read.weight, weighted=read.weight is not None)
        parts = Parts(None, read.ends, read.weights, None, read.ids, read.ids.size, undirected)
        raws = _completed(raws, rows, read, options, "both" if undirected else direction or "both")
        if rows is not None and rows.labels is not None:
            parts = parts._replace(labels=rows.labels)
    return _built(parts, raws, rows, options, direction, sides, name, where)


def _opened(edges: Any, weight: Any, asked: Sequence[str], text: dict[str, Any]) -> Table | Tables | Parts:
    """Return what ``edges`` holds: a table of edges, two tables, or the parts of a graph."""
    limit = text["limit"]
    if isinstance(edges, str | Path):
        path = Path(edges)
        kind = kind_of(path)
        if kind == "folder":
            raw = next((folder for folder in (path, path / "raw") if (folder / "edge.csv.gz").is_file()), None)
            return ParquetTable(path, limit) if raw is None else read_ogb(raw, limit)
        readers: dict[str, Any] = {
            "npz": read_npz,
            "torch": read_torch,
            "matrix market": read_matrix_market,
            "graphml": read_graphml,
            "gml": read_gml,
        }
        if kind in readers:
            opened: Tables | Parts = readers[kind](path, limit)
            return opened
        return open_table(path, "edges", known=ENDS, asked=asked, **text)
    if isinstance(edges, Graph):
        return Parts(edges.features, edges.edges, edges.weights, edges.labels, edges.node_ids, edges.num_nodes)
    if sp.issparse(edges):
        return from_adjacency(edges)
    if hasattr(edges, "is_multigraph"):
        return from_networkx(edges, "edges")
    if not is_frame(edges) and is_graph(edges):
        return take_apart(edges, (), weight if isinstance(weight, str) else None)
    return open_table(edges, "edges", known=ENDS, asked=asked, **text)


def _of_parts(parts: Parts, rows: Nodes | None, where: str, options: Recipe) -> tuple[Parts, list[Raw]]:
    """Return the parts of a whole graph, and its features as columns; a node table takes the place of its own."""
    n = parts.num_nodes
    if rows is not None:
        found = len(rows.ids.values)
        if n is None:
            n = found
        if found != n:
            raise InputError(f"{rows.ids.table.where} must have {n:,} rows, one a node of {where}; received {found:,}.")
        ids = encode_ids([rows.ids], options.like.ids if options.like else None)
        if ids.ids.size < n:
            row = int(np.argmax(ids.codes[0] != np.arange(n)))
            raise InputError(f"{rows.ids.at(row)}: the id {shown(ids.ids[ids.codes[0][row]])} occurs more than once.")
        labels = parts.labels if rows.labels is None else rows.labels
        return parts._replace(node_ids=ids.ids, labels=labels, num_nodes=n), rows.raws
    if n is None:  # a PyG graph without features says nothing of its size
        ends = array_of(parts.edges, "edges")
        n = int(ends.max(initial=-1)) + 1
        refuse_size(Path(where), n, LIMIT)
    parts = parts._replace(num_nodes=n)
    if parts.features is None or not options.table:
        return parts, []
    matrix = array_of(parts.features, "features")
    if matrix.ndim != 2 or not (np.issubdtype(matrix.dtype, np.number) or matrix.dtype == bool):
        raise InputError(f"{where}: features must be a matrix of numbers; received {matrix.dtype}, {matrix.shape}.")
    if np.iscomplexobj(matrix) or matrix.shape[0] != n or not matrix.shape[1]:
        raise InputError(f"{where}: features must be real, one row per node ({n:,}); received shape {matrix.shape}.")
    if sp.issparse(matrix) and not np.isfinite(matrix.data).all():
        raise InputError(f"{where}: features must be finite.")
    return parts, [Raw("x", "matrix", matrix, place=lambda row: f"{where}, row {row + 1}")]


def _completed(raws: list[Raw], rows: Nodes | None, read: Edges, options: Recipe, direction: Direction) -> list[Raw]:
    """Return the columns of the nodes with those of added nodes and of edges."""
    n = read.ids.size
    if raws and n > len(raws[0].values) and options.missing == "error":
        raise InputError("unknown='add' leaves columns of the added nodes without values: give missing='impute'.")
    if rows is not None and rows.given and n > len(rows.ids.values):
        raise InputError("unknown='add' leaves added nodes without a label: leave label out, or give unknown='drop'.")
    raws = [raw.padded(n) for raw in raws]
    for column, how in options.edge_columns:
        raws.append(Raw(f"{how}({column})", "number", aggregate(read, column, how, direction)[:, None]))
    names = [raw.name for raw in raws]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"Columns that become features must differ in their names; {twice!r} occurs more than once.")
    return raws


def _built(
    parts: Parts,
    raws: list[Raw],
    rows: Nodes | None,
    options: Recipe,
    direction: Direction | None,
    sides: Direction | None,
    name: str,
    where: str,
) -> Graph:
    """Build the graph first, since structural features are those of its arranged edges, then its features."""
    kinds = options.features or ("table",)
    if "table" in kinds and not raws:
        raise InputError(f"{where} has no node features: features='structural' makes some of its edges alone.")
    n = parts.num_nodes
    if not n:
        raise InputError(f"{where} has no nodes.")
    given = parts.labels if rows is not None and rows.given else None
    if parts.labels is not None and len(parts.labels) < n:
        parts = parts._replace(labels=None)  # found unasked, and not there for nodes that were added
    placeholder = np.zeros((n, 1), dtype=np.float32)
    try:
        graph = Graph.of(parts._replace(features=placeholder), labels=given, direction=direction, name=name)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    blocks, names = [], []
    fitted = options.like.columns if options.like else None
    for kind in kinds:
        if kind == "table":
            fitted = fitted or tuple(fit(raw, options.missing, options.scale) for raw in raws)
            if [column.name for column in fitted] != [raw.name for raw in raws]:
                expected = shown([column.name for column in fitted])
                raise InputError(
                    f"{where}: like expects the columns {expected}; received {shown([r.name for r in raws])}."
                )
            if options.scale == "none" and not options.like:
                warn_of_spreads(raws, name)
            for raw, column in zip(raws, fitted, strict=True):
                blocks.append(encode(raw, column))
                names += column.names
        else:
            if kind == "laplacian" and options.like is not None:
                log.warning("%s: its Laplacian coordinates are not comparable with those of another graph.", where)
            block, labels = structural_features(graph.edges, graph.weights, graph.num_nodes, [kind], sides)
            blocks.append(block)
            names += labels
    columns = fitted if "table" in kinds and fitted else ()
    schema = FeatureSchema(
        features=kinds,
        columns=columns,
        edge_columns=options.edge_columns,
        missing=options.missing,
        scale=options.scale,
        names=tuple(names),
        ids=_kind_of_ids(parts.node_ids),
        weighted=options.weighted,
        weight=options.weight,
        direction=sides,
    )
    if options.like is not None and schema.names != options.like.names:
        raise InputError(f"{where} has {len(names)} features, and {len(options.like.names)} in like: {shown(names)}.")
    graph = replace(graph, features=joined(blocks), schema=schema)
    log.info("%s: %s.", where, graph)
    return graph


def _kind_of_ids(ids: Any) -> Literal["integer", "text"] | None:
    if ids is None:
        return None
    if np.issubdtype(ids.dtype, np.integer):
        return "integer"
    return "text" if all(isinstance(node, str) for node in ids) else None
