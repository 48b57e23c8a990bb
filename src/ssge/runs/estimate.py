"""What a training takes, before it starts: parameters, memory, disk and time, measured on small graphs of its kind."""

from __future__ import annotations

import logging
import math
import os
import statistics
import tempfile
import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.graph_folder import StoredGraph
from ssge.io.graph_writer import write_graph
from ssge.io.sizes import in_words
from ssge.methods import Method
from ssge.nn.blocks import ALL, LEARNED
from ssge.nn.encoders import GCN
from ssge.ops.collective import alone
from ssge.ops.random import Key
from ssge.ops.streaming import StreamedAdjacency
from ssge.runs.plan import Plan
from ssge.training.batches import batches
from ssge.training.streaming import can_stream, streamed_view
from ssge.training.trainer import step

log = logging.getLogger(__name__)

LIBRARIES = 10 << 20
"""Bytes that the libraries take during a training, whatever its size."""
SPARE = 1.45
"""Resident bytes over bytes of live tensors, measured: gaps between blocks, and buffers of dense products."""
SPARE_BATCHES = 3.0
"""The same for batches of nodes: their sizes differ from step to step, which leaves larger gaps."""
GENEROUS = 32
"""Numbers per node and unit of width that no method exceeds; a training that fits with these is not measured."""
_CHUNKS = 1 << 30
"""Bytes of all intermediate results that methods compute in chunks of bounded size."""
_NODES = 1 << 16
"""Nodes of the random graph whose streamed training is measured."""
_SIZES = ("batch_nodes", "batch", "widths", "width", "components")
"""Settings that decide the memory of a training, as far as a method has them."""
_PLENTY = 1 << 40
_EPOCHS = 4
_TRIAL_SECONDS = 0.3
"""Trials grow until an epoch takes so long."""
_SUPERLINEAR = 1.6
"""Growth of the slope from one doubling to the next from which on a figure counts as quadratic, where it would be 2."""


class Estimate(NamedTuple):
    """What a training takes.

    Attributes
    ----------
    parameters
        Number of trained parameters.
    memory
        Peak of the training in bytes, beside the graph and the loaded libraries; what a streamed one stays below.
    seconds
        Of all epochs.
    disk, panel, passes
        Of a streamed training: bytes of unnamed files beside the graph, columns of all nodes that are in memory at a
        time, and how often an epoch reads all edges.
    """

    parameters: int
    memory: int
    seconds: float
    disk: int | None = None
    panel: int | None = None
    passes: int | None = None

    def describe(self, epochs: int) -> str:
        """Return the estimate in words."""
        if self.disk is None:
            memory = f"about {in_words(self.memory)} of memory beside the graph ({in_words(available_memory())} free)"
        else:
            memory = (
                f"streamed below {self.memory / 1e9:g} GB of memory: {self.panel:,} columns of all nodes at a time, "
                f"{self.passes} passes over the edges an epoch, up to {in_words(self.disk)} of disk"
            )
        return (
            f"{self.parameters:,} parameters; {memory}; about {self.seconds:,.1f} s for {epochs} epochs on "
            f"{torch.get_num_threads()} of {os.cpu_count()} threads."
        )


class _Trial(NamedTuple):
    """Peak bytes, seconds of an epoch, and the additional seconds of the first."""

    nodes: int
    memory: float
    epoch: float
    start: float


def estimate(graph: Graph | StoredGraph, plan: Plan) -> Estimate:
    """Estimate a training, of a graph on disk a streamed one; takes some seconds.

    Trials train random graphs with the same settings, the same mean degree and features of the same density. Their
    size doubles until an epoch takes a third of a second. Memory and time then continue to the size of the graph
    along a line, or a parabola where the slope doubles with the size. A small graph, and one that is trained in
    batches of nodes, is measured itself.
    """
    if isinstance(graph, StoredGraph):
        return _streamed_estimate(graph, plan)
    with alone():
        trials = _trials(graph, plan)
    n, epochs = graph.num_nodes, plan.config.epochs if plan.method.trained else 1
    spare = SPARE if getattr(plan.config, "batch_nodes", None) is None else SPARE_BATCHES
    memory = spare * _continued(trials, [t.memory for t in trials], n) + LIBRARIES
    seconds = epochs * _continued(trials, [t.epoch for t in trials], n)
    start = trials[-1].start * max(1, n / trials[-1].nodes) if epochs else 0.0
    return Estimate(plan.build(graph).num_parameters, round(memory), seconds + start)


def _streamed_estimate(graph: StoredGraph, plan: Plan) -> Estimate:
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
    beside = graph.scratch.absolute()  # need not exist yet
    existing = next(folder for folder in (beside, *beside.parents) if folder.is_dir())
    with tempfile.TemporaryDirectory(dir=existing) as folder:
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
    return Estimate(method.num_parameters, graph.memory, seconds, disk, panel, passes)


def learned_alone(plan: Plan) -> Plan:
    """Return the plan for a graph on disk, without blocks beside the learned columns: these are computed in memory."""
    blocks = getattr(plan.config, "blocks", LEARNED)
    if blocks == LEARNED:
        return plan
    if blocks != ALL or getattr(plan.config, "block_weights", None):  # no default
        raise InputError(f"blocks must be learned for a graph on disk; received {', '.join(blocks)}.")
    log.info("A graph on disk is embedded by its learned columns alone, without blocks beside them.")
    return replace(plan, config=plan.config.model_copy(update={"blocks": LEARNED, "block_weights": None}))


def check_memory(graph: Graph, plan: Plan, available: int | None = None) -> None:
    """Refuse a training for which the memory of this machine does not suffice.

    A training that surely fits is not measured. ``available`` is the number of free bytes; default: `available_memory`.
    """
    free = available_memory() if available is None else available
    least, most = _bounds(graph, plan)
    if most <= free:
        return
    needed = least if least > free else estimate(graph, plan).memory
    if needed > free:
        raise InputError(
            f"Training needs about {in_words(needed)} beside the graph, and {in_words(free)} of memory are free: "
            f"choose {_smaller(plan.config)}{_streamed(graph, plan, free)}"
            + (", or precision float32." if plan.precision == "float64" else ".")
        )


def available_memory() -> int:
    """Return the bytes that this process may still take, by the account of the system and of its control group."""
    found = [psutil.virtual_memory().available]
    limit, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    if limit.exists() and used.exists() and limit.read_text().strip().isdecimal():
        found.append(int(limit.read_text()) - int(used.read_text()))
    return int(min(found))


def _bounds(graph: Graph, plan: Plan) -> tuple[int, int]:
    """Return bytes that a training takes at least, and bytes that it surely does not exceed, from its settings alone.

    The least are declared arrays, and the encoder's weights with their gradients and the state of Adam.
    """
    itemsize = 8 if plan.precision == "float64" else 4
    n, m, p, _ = graph.info
    config: Any = plan.config
    widths, width = getattr(config, "widths", ()), int(getattr(config, "width", 0))
    weights = 4 * itemsize * (sum(a * b for a, b in pairwise((p, *widths))) + 2 * n * width)
    least = plan.method.dense_memory(config, graph.info, itemsize) + weights
    widths = widths or (width or getattr(config, "components", 64),)
    dense = 0 if hasattr(graph.features, "nnz") else 4 * p
    heads = getattr(config, "heads", 1)
    walks = getattr(config, "batch", 0) * getattr(config, "walk_length", 0) * 40
    hidden = getattr(config, "anchors", 0) + getattr(config, "predictor_width", 0)
    rows = n * (GENEROUS * (sum(widths) * heads + max(widths) + hidden) + dense)
    numbers: int = rows + 64 * (m + n) * heads + 4 * sum(widths) * p + walks * max(widths)
    return least, least + itemsize * numbers + _CHUNKS


def _smaller(config: Any) -> str:
    """Name the settings that decide the memory of a training, with their values."""
    now = {name: getattr(config, name) or "all" for name in _SIZES if hasattr(config, name)}  # batch_nodes may be None
    words = (f"{name} (now {' '.join(map(str, np.atleast_1d(value)))})" for name, value in now.items())
    return f"smaller values of {' or '.join(words)}" if now else "a smaller graph"


def _streamed(graph: Graph, plan: Plan, free: int) -> str:
    """Name the commands that stream a graph from disk, for a method that can."""
    if not hasattr(plan.config, "batch_nodes"):
        return ""
    # Whether it can does not depend on the widths, and a model with those of the plan may not fit.
    small = {"blocks": ("learned",), "widths": (2,) * len(getattr(plan.config, "widths", ()))}
    small = {name: value for name, value in small.items() if hasattr(plan.config, name)}
    if not can_stream(replace(plan, config=plan.config.model_copy(update=small), start=None).build(graph)):
        return ""
    memory = streaming_memory(free)
    return f", or stream it from disk: ssge convert ... --out graph, then ssge fit graph --memory {memory}"


def _trials(graph: Graph, plan: Plan) -> list[_Trial]:
    """Return trials at doubling sizes, or one on the graph itself."""
    if getattr(plan.config, "batch_nodes", None) is not None:
        return [_trial(graph, plan)]
    widths = getattr(plan.config, "widths", None) or (64,)
    # With fewer nodes than columns losses are degenerate; with fewer than walks per step, steps are too small.
    size, trials = max(512, 4 * widths[-1], 2 * getattr(plan.config, "batch", 0)), list[_Trial]()
    while 2 * size < graph.num_nodes:
        trials.append(_trial(random_graph(graph, size), plan))
        if trials[-1].epoch > _TRIAL_SECONDS and len(trials) > 2:
            return trials
        size *= 2
    return [_trial(graph, plan)]


def _trial(graph: Graph, plan: Plan) -> _Trial:
    """Take the first steps of a training, once for its memory and once for its time."""
    epochs = {"epochs": _EPOCHS} if plan.method.trained else {}
    short = replace(plan, config=plan.config.model_copy(update=epochs), start=None)
    seen = graph if plan.method.supervised else graph.without_labels()
    with _PeakMemory() as memory:
        method = short.build(graph)
        prepared = method.prepare(seen)
        _steps(method, prepared, limit=2)  # a batch is built while the one before is still there
        method.calibrate(prepared)
    method = short.build(graph)
    began = time.perf_counter()
    prepared = method.prepare(seen)
    if not method.trained:
        method.calibrate(prepared)
        return _Trial(graph.num_nodes, memory.peak, time.perf_counter() - began, 0.0)
    ends = [time.perf_counter(), *_steps(method, prepared)]
    steps = [after - before for before, after in pairwise(ends)]
    nodes, walks = (getattr(plan.config, name, None) for name in ("batch_nodes", "batch"))
    # Batches of nodes have equal sizes. The last one of walks has the rest: rounded up, small graphs look too slow.
    count = math.ceil(graph.num_nodes / nodes) if nodes else max(1, graph.num_nodes / walks) if walks else 1
    epoch = count * statistics.median(steps[1:] or steps)
    return _Trial(graph.num_nodes, memory.peak, epoch, ends[0] - began + max(steps[0] - epoch, 0.0))


def _steps(method: Method, prepared: Any, limit: int | None = None) -> list[float]:
    """Take some steps, and return when each ended."""
    if not method.trained:
        return []
    optimizer, ends = method.optimizer(), list[float]()
    method.train()
    began = time.perf_counter()
    for epoch in range(1, _EPOCHS + 1):
        steps = batches(method, prepared, Key(0).fold_in("train", epoch), ahead=False)  # its memory is counted
        for batch, key in islice(steps, limit):
            step(method, batch, optimizer, key)
            ends.append(time.perf_counter())
            if len(ends) == limit or (len(ends) >= _EPOCHS and ends[-1] - began > _TRIAL_SECONDS):
                return ends
    return ends


def _continued(trials: Sequence[_Trial], values: Sequence[float], n: int) -> float:
    """Continue a figure to n nodes from the last three trials: a line, or a parabola where the slope doubles."""
    if len(trials) < 3 or n <= trials[-1].nodes:
        return values[-1]
    sizes, last = [t.nodes for t in trials[-3:]], list(values[-3:])
    slopes = [(b - a) / (m - k) for (a, b), (k, m) in zip(pairwise(last), pairwise(sizes), strict=True)]
    slope = max(slopes[1], 0.1 * last[2] / sizes[2])  # noise must not make the line fall
    curvature = (slopes[1] - slopes[0]) / (sizes[2] - sizes[0]) if slopes[1] > _SUPERLINEAR * max(slopes[0], 0) else 0.0
    return float(last[2] + (slope + curvature * (n - sizes[1])) * (n - sizes[2]))


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


class _PeakMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors that are alive at once, of those made inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.layout is torch.strided:
                storage: Any = tensor.untyped_storage()
                if not hasattr(storage, "_counted"):
                    storage._counted = True
                    self._add(storage.nbytes())
                    weakref.finalize(storage, self._add, -storage.nbytes())
        return result

    def _add(self, size: int) -> None:
        self.now += size
        self.peak = max(self.peak, self.now)
