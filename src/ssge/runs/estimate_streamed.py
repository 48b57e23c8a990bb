"""What a streamed training takes, before it starts: memory as given, disk and time."""

from __future__ import annotations

import logging
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.graph_folder import StoredGraph
from ssge.io.graph_writer import write_graph
from ssge.io.sizes import in_words
from ssge.nn.blocks import LEARNED
from ssge.nn.encoders import GCN
from ssge.ops.random import Key
from ssge.ops.streaming import StreamedAdjacency
from ssge.runs.plan import Plan
from ssge.training.streaming import streamed_view
from ssge.training.trainer import step

log = logging.getLogger(__name__)

_NODES = 1 << 16
_PLENTY = 1 << 40


class StreamedEstimate(NamedTuple):
    """What a streamed training takes.

    Attributes
    ----------
    parameters
        Number of trained parameters.
    memory
        Bytes that the process stays below.
    disk
        Bytes of unnamed files beside the graph.
    seconds
        Of all epochs.
    panel
        Columns of all nodes that are in memory at a time.
    passes
        How often an epoch reads all edges.
    """

    parameters: int
    memory: int
    disk: int
    seconds: float
    panel: int
    passes: int

    def describe(self, epochs: int) -> str:
        """Return the estimate in words."""
        return (
            f"{self.parameters:,} parameters; streamed below {self.memory / 1e9:g} GB of memory: {self.panel:,} "
            f"columns of all nodes at a time, {self.passes} passes over the edges an epoch, up to "
            f"{in_words(self.disk)} of disk; about {self.seconds:,.0f} s for {epochs} epochs on {threads()}."
        )


def estimate_streamed(graph: StoredGraph, plan: Plan) -> StreamedEstimate:
    """Estimate a streamed training; takes some seconds.

    A random graph with the same mean degree and features is trained for two epochs, and the time of the second
    continues in proportion to the nodes. A panel narrower than a layer costs further passes over the edges, whose draws
    the trial does not have.
    """
    plan = learned_alone(plan)
    method = plan.build(graph)
    view = streamed_view(method, graph)  # refuses what does not fit
    assert isinstance(view.adjacency, StreamedAdjacency)
    assert isinstance(method.encoder, GCN)
    n, item = graph.num_nodes, torch.empty((), dtype=method.dtype).element_size()
    with tempfile.TemporaryDirectory(dir=_existing(graph.scratch)) as folder:
        small = write_graph(random_graph(graph, min(n, _NODES)), Path(folder) / "graph").streamed(_PLENTY, Path(folder))
        trial = replace(plan, start=None).build(small)
        part = streamed_view(trial, small)
        with torch.no_grad():
            assert isinstance(trial.encoder, GCN)
            widths = trial.encoder.stream(part, trial.encoder.factored).widths
        optimizer, seconds = trial.optimizer(), 0.0
        for epoch in range(2):
            began = time.perf_counter()
            step(trial, part, optimizer, Key(epoch))
            seconds = time.perf_counter() - began
    panel = min(view.adjacency.workspace.panel(n, item), max(widths))
    back = widths[1:] if widths[0] == graph.num_features else widths  # no gradient of the features is wanted
    passes = 2 + 2 * sum(-(-width // panel) for width in [*widths, *back])
    disk = n * item * (2 * sum(widths) + 4 * max(widths))
    seconds *= plan.config.epochs * n / small.num_nodes
    return StreamedEstimate(method.num_parameters, graph.memory, disk, seconds, panel, passes)


def learned_alone(plan: Plan) -> Plan:
    """Return the plan for a graph on disk, without blocks beside the learned columns: these are computed in memory."""
    if getattr(plan.config, "blocks", LEARNED) == LEARNED:
        return plan
    log.info("A graph on disk is embedded by its learned columns alone, without blocks beside them.")
    return replace(plan, config=plan.config.model_copy(update={"blocks": LEARNED, "block_weights": None}))


def threads() -> str:
    """Return the number of threads in words."""
    count = torch.get_num_threads()
    return f"{count} thread{'' if count == 1 else 's'}"


def check_loading(graph: StoredGraph, available: int) -> None:
    """Refuse to load a graph whose edges alone do not fit into memory, and name the command that streams it."""
    n, m, _, _ = graph.info
    needed = 16 * m + 40 * (n + m)  # the edges themselves, and the least that any method makes of them
    if needed > available:
        raise InputError(
            f"{graph.path} has {m:,} edges, {in_words(needed)} in memory, and {in_words(available)} are free; "
            f"stream it: ssge fit {graph.path} --memory {streaming_memory(available)} ..."
        )


def streaming_memory(available: int) -> str:
    """Return the memory to suggest for streaming: three quarters of what is free, in round numbers."""
    return f"{max(1, int(0.75 * available / 1e9))}GB"


def random_graph(graph: Graph | StoredGraph, nodes: int) -> Graph:
    """Return a random graph of some size, with the mean degree and the density of features of a graph."""
    rng = np.random.default_rng(0)
    n, m, _, _ = graph.info
    edges = rng.integers(nodes, size=(2, round(m / n * nodes)))
    edges = edges[:, np.lexsort(edges)]
    features = graph.features[np.sort(rng.choice(n, nodes, replace=False))]
    weighted, labels = isinstance(graph, StoredGraph) and graph.weighted, None
    if isinstance(graph, Graph):
        weighted = graph.weights is not None
        labels = None if graph.labels is None else np.arange(nodes) % graph.num_classes
    weights = np.full(edges.shape[1], 0.5, dtype=np.float32) if weighted else None
    return Graph(features, edges, np.arange(nodes), weights, labels)


def _existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return folder if folder.is_dir() else _existing(folder.absolute().parent)
