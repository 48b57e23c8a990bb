"""What a training will take: parameters, memory and time, before it starts."""

from __future__ import annotations

import math
import os
import statistics
import time
from bisect import bisect
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ssge.errors import InputError
from ssge.graph import Graph
from ssge.methods import METHODS, MethodConfig
from ssge.methods._base import CHUNK

Precision: TypeAlias = Literal["float32", "float64"]

LIBRARIES = 10 << 20
"""Bytes that the libraries take during a training, whatever its size."""
SPARE = 1.45
"""Measured over counted bytes: what lies idle between blocks of different sizes, and what dense products pack."""
_TRIAL_COST = 1e10
"""Multiply-adds of an epoch of a trial."""
_TRIAL_EPOCHS = 4
_TRIAL_SECONDS = 0.4
"""After so many a trial ends with its second epoch: the longer an epoch, the less a few disturbances count."""


class Estimate(NamedTuple):
    """What a training takes.

    Attributes
    ----------
    parameters
        Numbers that are trained.
    memory
        Bytes at the highest point of the training, beside the graph and the libraries as they are loaded.
    seconds
        Of all epochs; None where the memory would not suffice to find out.
    """

    parameters: int
    memory: int
    seconds: float | None = None


def estimate(graph: Graph, method: str, config: MethodConfig, dtype: Precision = "float32") -> Estimate:
    """Estimate a training of a graph; takes some seconds, because it trains small graphs of the same kind.

    Memory is counted (`training_memory`). Time is measured on random graphs with the same widths, the same number of
    edges a node and the same density of features, at two sizes, and continued in a straight line over the work of an
    epoch as the method counts it (`Method.step_cost`): in proportion to the size of the graph, or to its square where
    all pairs of nodes are compared. What the first epoch takes longer, to get memory and for what a method finds out
    only once, is counted once; in proportion to the size, but for steps on walks, which are of one size. Where steps
    are on batches of nodes, some of them are timed on the graph itself: which nodes they hear from is a matter of it.
    """
    from ssge.training.checkpoint import build

    built = build(method, config.model_dump(), METHODS[method].sizes(graph))
    parameters = sum(p.numel() for p in built.parameters() if p.requires_grad)
    memory, free = training_memory(graph, method, config, dtype), available_memory()
    if getattr(config, "batch_nodes", None) is None:
        return Estimate(parameters, memory, _seconds(graph, method, config, dtype))
    fits = free is None or memory <= free
    return Estimate(parameters, memory, _seconds_of_steps(graph, method, config, dtype) if fits else None)


def check_memory(
    graph: Graph, method: str, config: MethodConfig, dtype: Precision = "float32", available: int | None = None
) -> None:
    """Refuse a training for which the memory of this machine would not suffice.

    ``available`` are the bytes that are free; default: what the system says, and nothing is refused where it does not.
    """
    free = available_memory() if available is None else available
    needed = training_memory(graph, method, config, dtype)
    if free is not None and needed > free:
        raise InputError(
            f"Training needs about {_gigabytes(needed)} beside the graph, and {_gigabytes(free)} of memory are free: "
            f"choose {_smaller(config)}" + (", or dtype float32." if dtype == "float64" else ".")
        )


def _smaller(config: Any) -> str:
    """Name the settings on which the memory of a training hangs."""
    if widths := getattr(config, "widths", ()):
        smaller = f"smaller widths (now {' '.join(map(str, widths))})"
        if not hasattr(config, "batch_nodes"):
            return smaller
        now = "" if config.batch_nodes is None else f"; now {config.batch_nodes:,}"
        batch = "batches of nodes" if config.batch_nodes is None else "smaller batches"
        return f"{batch} (batch_nodes{now}) or {smaller}"
    if hasattr(config, "batch"):
        return f"a smaller batch (now {config.batch}) or width (now {config.width})"
    return "a smaller graph"


def available_memory() -> int | None:
    """Return the bytes that this process may still take, by the system's and the container's account."""
    system = Path("/proc/meminfo")
    lines = system.read_text().splitlines() if system.exists() else []
    found = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    limit, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    if limit.exists() and used.exists() and limit.read_text().strip().isdecimal():
        found.append(int(limit.read_text()) - int(used.read_text()))
    return min(found) if found else None


def training_memory(graph: Graph, method: str, config: Any, dtype: Precision = "float32") -> int:
    """Count the bytes that training takes at its highest point, beside the graph as it is loaded.

    That is what encoder and views take, if there are any, and what the method says it needs further.
    """
    further = METHODS[method].further_memory(config, graph.info, np.dtype(dtype).itemsize)
    if not hasattr(config, "widths"):
        return further + LIBRARIES
    widths = (*config.widths, graph.num_classes) if METHODS[method].supervised else config.widths
    return further + _encoding(graph, widths, config, dtype)


def _encoding(graph: Graph, widths: tuple[int, ...], config: Any, dtype: Precision) -> int:
    """Count the bytes of two views and their passes through an encoder.

    What counts: the adjacency with its transpose, and once more for each view; of each layer, what the backward pass
    needs, for two views; the gradients of both outputs; four numbers a parameter (itself, gradient, two of Adam),
    and a fifth where the best is kept. Of batches of nodes, the layers are those of the nodes that one of them hears
    from, and all nodes are encoded at the end.
    """
    number = np.dtype(dtype).itemsize
    n, m, p, _ = graph.info
    encoder, output_bias = getattr(config, "encoder", "gcn"), getattr(config, "output_bias", False)
    edge_drop, feature_mask = (getattr(config, rate, 0.0) for rate in ("edge_drop", "feature_mask"))
    gcn = encoder != "mlp"
    stored: int | None = getattr(graph.features, "nnz", None)  # entries of sparse features
    # The pattern holds columns and values twice and an order of 8 bytes; while it is built, about 60 bytes more.
    constant = (16 + 2 * number) * (m + n)
    building = constant + 60 * (m + n)
    if stored is not None:
        constant += 2 * (4 + number) * stored
        building += (2 * (4 + number) + 16) * stored
    elif graph.features.dtype != np.dtype(dtype):
        constant += number * n * p
    edges = 2 * 2 * (4 + number) * (round(m * (1 - edge_drop)) + n) if gcn else 0

    hidden, last = ([0, *widths])[-2:]
    factored = 0 < hidden <= last and not output_bias
    output = hidden if factored else last
    saved = round(p * (1 - feature_mask)) if stored is None and (gcn or feature_mask) else 0
    saved += sum(width * (2 if above >= width or not gcn else 1) for width, above in pairwise(widths))
    saved += 0 if factored else output
    parameters = sum(a * b for a, b in pairwise((p, *widths)))
    copies = 4 if getattr(config, "keep", "last") == "last" else 5
    heard = _heard(graph, config, len(widths) if gcn else 0)
    layers = heard * (2 * saved + max(2 * output, hidden))
    if heard < n:
        # Of each view the part is a copy: its pattern and its features.
        copied = (16 + 2 * number) * (m + n) + (2 * (4 + number) * stored if stored else number * p * n)
        edges += round(2 * copied * heard / n)
    numbers: int = layers + copies * parameters + p * widths[0]
    embedding = 2 * n * max(widths) if gcn else 2 * min(n, CHUNK) * max(widths) + n * last
    final = constant + number * (embedding + copies * parameters)
    return max(building, final, round(SPARE * (constant + edges + number * numbers))) + LIBRARIES


def _heard(graph: Graph, config: Any, hops: int) -> int:
    """Return the expected number of nodes of a step: those of a batch and all that they hear from in a view."""
    n, size = graph.num_nodes, getattr(config, "batch_nodes", None)
    if size is None or size >= n:
        return n
    told = 1 + (1 - config.edge_drop) * np.bincount(graph.edges[0], minlength=n)  # who hears a node, itself among them
    share = size / n
    for _ in range(hops):
        share = float(np.mean(1 - (1 - share) ** told))
    return int(np.ceil(share * n))


class _Trial(NamedTuple):
    """Seconds of an epoch, and what the first one takes longer."""

    step: float
    start: float


def _seconds(graph: Graph, method: str, config: Any, dtype: Precision) -> float:
    cls, n = METHODS[method], graph.num_nodes

    def work(nodes: int) -> float:
        edges = round(graph.num_edges / n * nodes)
        return nodes * cls.step_cost(config, graph.info._replace(num_nodes=nodes, num_edges=edges))

    least = 4 * (64, *getattr(config, "widths", ()))[-1]  # with fewer nodes than columns losses are another problem
    large = max(bisect(range(1, n + 1), _TRIAL_COST, key=work), least)
    if n <= 1.5 * large:
        step, start = _trial(graph, method, config, dtype)
    else:
        half, whole = (_trial(_like(graph, size), method, config, dtype) for size in (large // 2, large))
        rate = max(whole.step - half.step, 0.1 * whole.step) / (work(large) - work(large // 2))
        rate = min(rate, whole.step / work(large))  # a steeper line would have no work take less than no time
        step = whole.step + rate * (work(n) - work(large))
        start = whole.start * (n / large if "full" in cls.modes else 1)
    return float(config.epochs * step + start) if config.epochs else 0.0


def _seconds_of_steps(graph: Graph, method: str, config: Any, dtype: Precision) -> float:
    import torch

    from ssge.training.checkpoint import build
    from ssge.training.memory import kept_memory
    from ssge.training.trainer import step

    trial = build(method, config.model_dump(), METHODS[method].sizes(graph), 0, getattr(torch, dtype))
    view, optimizer, generator = trial.prepare(graph), trial.optimizer(), torch.Generator().manual_seed(0)
    ends = [time.perf_counter()]
    with kept_memory():
        for batch in chain.from_iterable(trial.batches(view, generator) for _ in range(_TRIAL_EPOCHS)):
            step(trial, batch, optimizer, generator)
            ends.append(time.perf_counter())
            if len(ends) > _TRIAL_EPOCHS and ends[-1] - ends[0] > _TRIAL_SECONDS:
                break
    first, *others = (after - before for before, after in pairwise(ends))
    usual = statistics.median(others)
    steps = config.epochs * math.ceil(graph.num_nodes / config.batch_nodes)
    return float(usual * steps + max(first - usual, 0.0)) if steps else 0.0


def _trial(graph: Graph, method: str, config: Any, dtype: Precision) -> _Trial:
    import torch

    from ssge.training.checkpoint import build
    from ssge.training.trainer import train

    def enough(line: dict[str, float]) -> bool:
        return line["epoch"] > 1 and line["seconds"] > _TRIAL_SECONDS

    short = config.model_copy(update={"epochs": _TRIAL_EPOCHS})
    trial = build(method, short.model_dump(), METHODS[method].sizes(graph), 0, getattr(torch, dtype))
    nodes = np.arange(graph.num_nodes) if trial.supervised else None
    ended = train(trial, graph, labeled=nodes, validation=nodes, observers=[enough])
    ends = [line["seconds"] for line in ended.history]
    step = statistics.median(after - before for before, after in pairwise(ends))
    return _Trial(step, max(ends[0] - step, 0.0))


def _like(graph: Graph, nodes: int) -> Graph:
    """Return a random graph with so many nodes and as many edges a node and features of the same density."""
    rng = np.random.default_rng(0)
    edges = rng.integers(nodes, size=(2, round(graph.num_edges / graph.num_nodes * nodes)))
    edges = edges[:, np.lexsort(edges)]
    features = graph.features[np.sort(rng.choice(graph.num_nodes, nodes, replace=False))]
    weights = None if graph.weights is None else np.ones(edges.shape[1], dtype=graph.weights.dtype)
    labels = None if graph.labels is None else np.arange(nodes) % graph.num_classes
    return replace(
        graph.without_labels(),
        labels=labels,
        features=features,
        edges=edges,
        weights=weights,
        node_ids=np.arange(nodes),
        schema=None,
    )


def _gigabytes(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def describe(found: Estimate, epochs: int) -> str:
    """Return an estimate in words."""
    free = available_memory()
    length = "too much to find out how long it takes" if found.seconds is None else f"about {found.seconds:.1f} s"
    return (
        f"{found.parameters:,} parameters; about {_gigabytes(found.memory)} of memory beside the graph"
        + ("" if free is None else f" ({_gigabytes(free)} free)")
        + f"; {length} for {epochs} epochs on {_threads()}."
    )


def _threads() -> str:
    import torch

    count = torch.get_num_threads()
    return f"{count} thread{'' if count == 1 else 's'} of {os.cpu_count()}"
