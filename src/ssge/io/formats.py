"""Files and objects that hold a whole graph: GraphML, GML, PyG data; each as parts or as two tables."""

from __future__ import annotations

import io
import logging
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ssge.errors import InputError, one_line
from ssge.foreign import Parts, take_apart
from ssge.io.matrices import refuse_size
from ssge.io.sources import content, refuse_unpacking
from ssge.io.tables import ArrowTable, Table

log = logging.getLogger(__name__)


class Tables(NamedTuple):
    """A graph as its nodes and edges with all their attributes.

    Attributes
    ----------
    nodes
        The column ``id``, then one column per attribute.
    edges
        The columns ``source`` and ``target``, then one column per attribute; None if there are no edges.
    undirected
        Each edge has both directions.
    """

    nodes: Table
    edges: Table | None
    undirected: bool


def read_graphml(path: Path, limit: int) -> Tables:
    """Read GraphML; document types are refused, since entities can make a small file huge in memory."""
    import networkx as nx

    data = content(path, limit)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise InputError(f"{path} declares a document type or entities, which GraphML has no use for.")
    try:
        graph = nx.read_graphml(_InOnePiece(data), node_type=_named)
    except Exception as error:  # a damaged file raises many kinds of errors
        raise InputError(f"{path} is damaged or no GraphML: {one_line(error)}") from None
    return from_networkx(graph, str(path))


def _named(node: str | None) -> str:
    """Return the id of a node; without this, NetworkX would join edges without an end to a node called None."""
    if node is None:
        raise ValueError("a node without id, or an edge without source or target")
    return node


class _InOnePiece(io.BytesIO):
    """Bytes that are read in one piece: old versions of expat begin a long attribute again with each further piece."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(1 << 30)


def read_gml(path: Path, limit: int) -> Tables:
    """Read GML; nodes are called by their label if they have any, else by their id."""
    import networkx as nx

    try:
        text = content(path, limit).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {one_line(error)}") from None
    try:
        try:
            graph = nx.parse_gml(text, label="label")
        except nx.NetworkXError as error:
            if "has no 'label' attribute" not in str(error):
                raise
            graph = nx.parse_gml(text, label="id")
    except Exception as error:
        raise InputError(f"{path} is damaged or no GML: {one_line(error)}") from None
    return from_networkx(graph, str(path))


def from_networkx(graph: Any, where: str) -> Tables:
    """Turn a NetworkX graph into two tables, attributes as columns."""
    import pyarrow as pa

    def table(keys: dict[str, list[Any]], data: list[dict[Any, Any]], what: str) -> ArrowTable:
        for name, values in keys.items():
            if any(name in attrs and _plain(attrs[name]) != value for attrs, value in zip(data, values, strict=True)):
                log.warning("%s: %s %r is left out: the graph itself defines it.", where, what, name)
        attributes = list(dict.fromkeys(key for attrs in data for key in attrs if str(key) not in keys))
        columns = dict(keys)
        columns |= {str(name): [_plain(attrs.get(name)) for attrs in data] for name in attributes}
        arrays = []
        for name, values in columns.items():
            try:
                arrays.append(pa.array(values))
            except (pa.ArrowException, TypeError, OverflowError) as error:
                raise InputError(f"{where}: {what} {name!r} is not of one kind: {one_line(error)}") from None
        return ArrowTable(pa.table(arrays, names=list(columns)), f"{where}, {what}s")

    if not len(graph):
        raise InputError(f"{where} has no nodes.")
    ids, attributes = [_plain(node) for node in graph], [data for _, data in graph.nodes(data=True)]
    if not (all(type(i) is int for i in ids) or all(isinstance(i, str) for i in ids)):
        raise InputError(f"{where}: ids must be all integers or all text; Graph.of takes any other.")
    ends = list(graph.edges(data=True))
    nodes = table({"id": ids}, attributes, "node attribute")
    edges = None
    if ends:
        pair = {"source": [_plain(u) for u, _, _ in ends], "target": [_plain(v) for _, v, _ in ends]}
        edges = table(pair, [data for _, _, data in ends], "edge attribute")
    return Tables(nodes, edges, not graph.is_directed())


def _plain(value: Any) -> Any:
    """Return an attribute as Arrow takes it: arrays and tensors as lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def read_torch(path: Path, limit: int) -> Parts:
    """Read a saved PyG ``Data``, or a dict of tensors like it, without running any code of the file."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        refuse_unpacking(path, size, path.stat().st_size, limit)
        with torch.serialization.safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]):
            found = torch.load(path, map_location="cpu", weights_only=True)
    except InputError:
        raise
    except Exception as error:  # torch's message is long and proposes to run the file's code
        reason = one_line(error).split(". ")[0]
        raise InputError(f"{path} is damaged, or holds more than a PyG Data and tensors: {reason}.") from None
    if isinstance(found, tuple | list) and found:  # what PyG's datasets store: data, slices, ...
        found = found[0]
    if isinstance(found, dict):
        found = SimpleNamespace(**{str(key): value for key, value in found.items()})
    try:
        held = _refuse_views(path, found, limit)
        parts = take_apart(found)
        edges = np.asarray(parts.edges)
        nodes = edges.max(initial=-1) + 1 if parts.num_nodes is None else parts.num_nodes
        refuse_size(path, int(nodes), limit, held)
        return parts._replace(num_nodes=int(nodes))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # objects of the right class with the wrong inside
        raise InputError(f"{path} holds no graph: {one_line(error)}") from None


def _refuse_views(path: Path, found: Any, limit: int) -> int:
    """Refuse tensors that declare more than the file holds, as views with stride 0 do; return how many entries it has.

    A sparse tensor declares its rows besides its entries.
    """
    import torch

    names = found.keys() if hasattr(found, "keys") else vars(found)
    tensors = [value for name in list(names) if isinstance(value := getattr(found, name), torch.Tensor)]
    dense = [tensor for tensor in tensors if tensor.layout is torch.strided]
    entries = sum(tensor.numel() for tensor in dense)
    refuse_unpacking(path, sum(t.numel() * t.element_size() for t in dense), path.stat().st_size, limit)
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            entries += int(tensor.values().numel())
            refuse_size(path, max(tensor.shape, default=0), limit, entries)
    return entries
