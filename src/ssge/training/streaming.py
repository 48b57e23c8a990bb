"""Out-of-core training: the view of a graph on disk, and its embedding, layer by layer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import psutil
import torch

from ssge.errors import InputError, TrainingError
from ssge.io.graph_folder import StoredGraph
from ssge.methods import Method
from ssge.nn.encoders import GCN
from ssge.ops.collective import world
from ssge.ops.disk import DiskArray, Scratch
from ssge.ops.streaming import DiskEdges, StreamedAdjacency, StreamedFeatures, Workspace
from ssge.views import View

RESERVE = 200 << 20
"""Reserve in bytes: library buffers, fragmentation, and a chunk while the next one is created."""


def is_streamed(prepared: object) -> bool:
    """Return whether a view is of a graph on disk."""
    return isinstance(prepared, View) and isinstance(prepared.adjacency, StreamedAdjacency)


def can_stream(method: Method) -> bool:
    """Return whether a method can be streamed: a moment-based loss, and a row-wise encoder up to products with A.

    The weights of other blocks than the learned one need all nodes at once.
    """
    plain = isinstance(method.encoder, GCN) and not len(method.encoder.norms)
    return method.of_moments and plain and getattr(method, "blocks", None) is None


def streamed_view(method: Method, graph: StoredGraph) -> View:
    """Return the clean view of a graph on disk."""
    if not can_stream(method):
        raise InputError(
            f"{method.title} with these settings cannot be streamed: streaming takes ssge (objective gaussian, "
            "blocks learned) and cca_ssg with a gcn encoder; leave memory out to train in memory."
        )
    if getattr(method.config, "batch_nodes", None) is not None:
        raise InputError("memory streams all nodes in every step; batch_nodes trains in memory: give one of them.")
    if method.bf16:
        raise InputError("precision must be float32 or float64 for streamed training; received bf16.")
    if world() > 1:
        raise InputError(f"Streamed training is of one process; received {world()} from torchrun.")
    if method.device.type != "cpu":
        raise InputError(f"device must be cpu for streamed training; received {method.device}.")
    if graph.num_features != method.info.num_features:
        expected = method.info.num_features
        raise InputError(f"{graph.name} has {graph.num_features} features, the model was built for {expected}.")
    used = psutil.Process().memory_info().rss
    left = graph.memory - used - RESERVE
    if left < 32 << 20:
        raise InputError(
            f"memory must be {(used + RESERVE + (32 << 20)) / 1e6:,.0f} MB or more, of which the libraries take "
            f"{used / 1e6:,.0f}; received {graph.memory / 1e6:,.0f} MB."
        )
    workspace = Workspace(graph.scratch, left)
    if graph.max_degree > workspace.memory // 256:
        raise InputError(f"memory must be larger: a node has {graph.max_degree:,} edges, which are worked on at once.")
    sides = [_edges(graph, side) for side in ("incoming", "incoming" if graph.symmetric else "outgoing")]
    return View(
        StreamedFeatures(DiskArray(graph.path / "features.npy"), method.dtype),
        StreamedAdjacency(sides[0], sides[1], graph.num_nodes, workspace, method.dtype, method.normalization),
    )


def _edges(graph: StoredGraph, side: str) -> DiskEdges:
    indptr, indices = (DiskArray(graph.path / f"{side}.{part}.npy") for part in ("indptr", "indices"))
    return DiskEdges(indptr, indices, DiskArray(graph.path / f"{side}.weights.npy") if graph.weighted else None)


@torch.no_grad()
def streamed_embedding(method: Method, view: View, calibrate: bool = False) -> np.memmap[Any, Any]:
    """Return the embedding of a view of a graph on disk as a memory map of an unnamed file; see `Method.calibrate`."""
    assert isinstance(view.adjacency, StreamedAdjacency)
    assert isinstance(method.encoder, GCN)
    method.eval()
    stream = method.encoder.stream(view)
    n, d = stream.shape
    output = Scratch(view.adjacency.workspace.folder, n, d, d, method.dtype)
    squares = 0.0
    for start, stop in stream.ranges:
        rows = stream.read(start, stop)
        squares += float(rows.double().square().sum())
        output.write(start, rows)
    if not math.isfinite(squares) or squares == 0:
        what = "zero everywhere" if squares == 0 else "not finite"
        raise TrainingError(f"The embedding is {what}. A smaller lr may help.")
    if calibrate:
        size = (squares / (n * d)) ** 0.5
        method.scale.fill_(1 / size)
    for start, stop in stream.ranges:
        output.write(start, output.read(start, stop) * method.scale + method.offset)
    return output.mapped()
