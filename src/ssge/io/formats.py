"""Files and objects that hold a whole graph: GraphML, GML and NetworkX as two tables, PyG data and OGB as parts."""

from __future__ import annotations

import io
import logging
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ssge.errors import InputError, one_line
from ssge.foreign import Parts, take_apart
from ssge.io.matrices import refuse_size
from ssge.io.options import ReadOptions
from ssge.io.sources import LIMIT, errors_of, explained, refuse_unpacking, unpacked
from ssge.io.tables import ArrowTable, TableColumn, numbers
from ssge.io.text import TextTable

log = logging.getLogger(__name__)


def read_graphml(path: Path, limit: int) -> tuple[ArrowTable, ArrowTable]:
    """Read GraphML; document types are refused, since entities can make a small file huge in memory."""
    import networkx as nx

    data = b"".join(unpacked(path, limit))
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise InputError(f"{path} declares a document type or entities, which GraphML has no use for.")
    with explained(f"{path} is damaged or no GraphML"):
        graph = nx.read_graphml(_InOnePiece(data), node_type=_named)
    return from_networkx(graph, str(path))


def _named(node: str | None) -> str:
    """Return the id of a node; by default NetworkX makes a node None of a missing one."""
    if node is None:
        raise ValueError("a node without id, or an edge without source or target")
    return node


class _InOnePiece(io.BytesIO):
    """Bytes that are read in one piece: old versions of expat restart a long attribute with each piece."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(1 << 30)


def read_gml(path: Path, limit: int) -> tuple[ArrowTable, ArrowTable]:
    """Read GML; ids are the labels of the nodes if they have labels."""
    import networkx as nx

    with explained(f"{path} is not UTF-8 text"):
        text = b"".join(unpacked(path, limit)).decode("utf-8").splitlines()
    with explained(f"{path} is damaged or no GML"):
        try:
            graph = nx.parse_gml(text, label="label")
        except nx.NetworkXError as error:
            if "has no 'label' attribute" not in str(error):
                raise
            graph = nx.parse_gml(text, label="id")
    return from_networkx(graph, str(path))


def from_networkx(graph: Any, where: str) -> tuple[ArrowTable, ArrowTable]:
    """Return a NetworkX graph as tables of edges (``source``, ``target``) and nodes (``id``), attributes as columns."""
    undirected = not graph.is_directed()

    def table(keys: dict[str, list[Any]], data: list[dict[Any, Any]], what: str) -> ArrowTable:
        for name, values in keys.items():
            if any(name in attrs and _plain(attrs[name]) != value for attrs, value in zip(data, values, strict=True)):
                log.warning("%s: %s %r is left out: the graph itself defines it.", where, what, name)
        attributes = list(dict.fromkeys(key for attrs in data for key in attrs if str(key) not in keys))
        columns = keys | {str(name): [_plain(attrs.get(name)) for attrs in data] for name in attributes}
        arrays = []
        for name, values in columns.items():
            with explained(f"{where}: {what} {name!r} is not of one kind"):
                arrays.append(pa.array(values))
        return ArrowTable(pa.table(arrays, names=list(columns)), f"{where}, {what}s", undirected)

    if not len(graph):
        raise InputError(f"{where} has no nodes.")
    ids, attributes = [_plain(node) for node in graph], [data for _, data in graph.nodes(data=True)]
    if not (all(type(i) is int for i in ids) or all(isinstance(i, str) for i in ids)):
        raise InputError(f"{where}: ids must be all integers or all text; Graph.of takes any other.")
    ends = list(graph.edges(data=True))
    if not ends:
        raise InputError(f"{where} has no edges.")
    nodes = table({"id": ids}, attributes, "node attribute")
    pair = {"source": [_plain(u) for u, _, _ in ends], "target": [_plain(v) for _, v, _ in ends]}
    return table(pair, [data for _, _, data in ends], "edge attribute"), nodes


def _plain(value: Any) -> Any:
    """Return an attribute for Arrow: arrays and tensors as lists."""
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
    with explained(f"{path} holds no graph"), errors_of(path):  # objects of the right class with the wrong inside
        held = _refuse_views(path, found, limit)
        parts = take_apart(found)
        edges = np.asarray(parts.edges)
        nodes = edges.max(initial=-1) + 1 if parts.num_nodes is None else parts.num_nodes
        refuse_size(path, int(nodes), limit, held)
        return parts._replace(num_nodes=int(nodes))


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
        name: _numbers(paths[f"node-{name}.csv.gz"], limit)
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
    parts = Parts(edges=read_integers(paths["edge.csv.gz"], 2, limit).T, num_nodes=n)
    refuse_size(paths["edge.csv.gz"], n, limit, parts.edges.size + sum(len(array) for array in found.values()))
    if (features := found.get("feat")) is not None:
        if len(features) != n:
            raise InputError(f"{paths['node-feat.csv.gz']} must have {n:,} rows; received {len(features):,}.")
        parts = parts._replace(features=features.astype(np.float32))
    labels = found.get("label", np.empty(0))
    whole = labels.shape == (n, 1) and not (labels % 1).any()
    return parts._replace(labels=labels[:, 0].astype(np.int64)) if whole else parts


def read_integers(path: Path, columns: int, limit: int = LIMIT) -> NDArray[np.int64]:
    """Read a CSV file of whole numbers without a header."""
    values = _numbers(path, limit)
    if values.shape[1] != columns or (values % 1).any() or (values < 0).any() or (values > 2**53).any():
        raise InputError(f"{path} must hold {columns} whole number(s) per row.")
    return values.astype(np.int64)


def _numbers(path: Path, limit: int) -> NDArray[np.float64]:
    text = TextTable(path, ReadOptions(delimiter=",", header=False, limit=limit))
    data = text.read(range(len(text.names)))
    matrix = np.column_stack([numbers(TableColumn(text, str(i), column)) for i, column in enumerate(data.columns)])
    if np.isnan(matrix).any():
        row = int(np.argmax(np.isnan(matrix).any(axis=1)))
        raise InputError(f"{text.place(row)}: a number is missing.")
    return matrix
