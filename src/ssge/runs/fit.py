"""Fit: carry out a plan on a graph, and keep the run in a folder if there is one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssge.datasets import Facts, facts_of
from ssge.datasets.splits import SplitKind, split_of
from ssge.errors import InputError, InterruptedRun, LostProcessError, TrainingError
from ssge.evaluation import geometry
from ssge.graph import Graph
from ssge.io.embeddings import Embedding, forget
from ssge.io.graph_folder import StoredGraph
from ssge.methods import Method
from ssge.ops.collective import world
from ssge.ops.random import Key
from ssge.records import RunRecord, peak_memory_mb
from ssge.runs.digests import digests
from ssge.runs.estimate import check_memory, learned_alone
from ssge.runs.folder import RunFolder
from ssge.runs.plan import Plan
from ssge.runs.verdict import diagnose
from ssge.schema import FeatureSchema
from ssge.training.best import Best
from ssge.training.checkpoint import Checkpoint, describe_run
from ssge.training.distributed import check_divisible, is_main
from ssge.training.observers import progress, stop_on_signals
from ssge.training.streaming import streamed_view
from ssge.training.trainer import Epoch, Observer, Trained, train

_RESUMABLE = "The last checkpoint is kept: continue with --resume, with any number of processes."
_NOTHING_KEPT = "There was no checkpoint yet."
_SAMPLE = 1 << 13
"""Rows of the embedding of a streamed graph from which its label-free figures are taken."""


class Run(NamedTuple):
    """A finished run in memory; `RunFolder.write` keeps it."""

    record: RunRecord
    history: list[Epoch]
    embedding: Embedding
    method: Method
    schema: FeatureSchema | None


def fit(
    graph: Graph | StoredGraph,
    plan: Plan,
    folder: RunFolder | None = None,
    *,
    dataset: str | None = None,
    reading: dict[str, Any] | None = None,
    splits: SplitKind = "paper",
    checkpoint_every: int = 10,
    resume: bool = False,
    force: bool = False,
    quiet: bool = True,
    observers: Iterable[Observer] = (),
) -> Run:
    """Train and embed a graph as planned.

    Parameters
    ----------
    graph
        Its labels reach the training of supervised methods alone. A graph on disk is streamed.
    plan
        Method, settings, seed, device.
    folder
        Where to keep the run: settings and history from the start, checkpoints on the way, everything else at the end.
    dataset, reading
        What `ssge.experiments.sources.open_graph` takes to give this graph again, for the record.
    splits
        Kind of splits on whose training nodes a supervised method learns.
    checkpoint_every, resume, force
        Of the folder: epochs between checkpoints, continue an unfinished run, replace a run.
    quiet
        Show no progress.
    observers
        Called after each epoch.
    """
    if graph.num_nodes < 2:
        raise InputError(f"{graph.name} must have at least 2 nodes to learn from; received {graph.num_nodes}.")
    if not isinstance(graph, Graph):
        plan = learned_alone(plan)
    elif plan.device.type == "cpu":
        check_memory(graph, plan)
    settings = json.loads(plan.config.model_dump_json())
    seen, best = _visible(graph, plan, splits, facts_of(dataset) if dataset else None)
    method = plan.build(graph)
    check_divisible(method)
    with ExitStack() as stack:
        watching: list[Observer] = [*observers, stack.enter_context(stop_on_signals())]
        checkpoint = None
        if folder is not None:
            if is_main():
                stack.enter_context(folder.claim(force, resume))
                folder.begin(settings)
                watching.insert(0, stack.enter_context(folder.history()))
            if isinstance(seen, StoredGraph):
                seen = seen.streamed(seen.memory, folder.work)
            described = describe_run(method, seen, plan.seed, best)
            checkpoint = Checkpoint(folder.checkpoint, described, checkpoint_every, resume)
        if not quiet and is_main():
            title = f"{method.title} on {graph.name}, seed {plan.seed}"
            watching.append(stack.enter_context(progress(plan.config.epochs, title)))
        prepared = method.prepare(seen) if isinstance(seen, Graph) else streamed_view(method, seen)
        try:
            trained = train(method, prepared, Key(plan.seed), best=best, observers=watching, checkpoint=checkpoint)
        except LostProcessError as error:
            resumable = checkpoint is not None and checkpoint.path.exists()
            raise LostProcessError(f"{error} {_RESUMABLE if resumable else _NOTHING_KEPT}") from error
        if trained.embedding is None:
            kept = "" if folder is None else f" The state is kept in {folder.path}: continue with --resume."
            raise InterruptedRun(f"Stopped after epoch {len(trained.history)} of {plan.config.epochs}.{kept}")
        run = _finished(
            graph, plan, method, trained, config=settings, dataset=dataset or graph.name, reading=reading or {},
            splits=splits if method.supervised else None,
        )  # fmt: skip
        if isinstance(seen, Graph) and is_main() and not method.supervised:
            untrained = plan.build(seen) if method.trained and plan.start is None else None
            run.record.diagnostics |= diagnose(method, untrained, seen, prepared)
        if folder is not None and is_main():
            folder.write(run)
    return run


def _finished(graph: Graph | StoredGraph, plan: Plan, method: Method, trained: Trained, **facts: Any) -> Run:
    """Return a finished training as a run; ``facts`` go into its record."""
    assert trained.embedding is not None
    found = trained.embedding
    embedding = Embedding(graph.node_ids, found.cpu().numpy() if isinstance(found, Tensor) else found)
    sample = embedding.vectors
    if isinstance(sample, np.memmap):  # checked when it was made; figures of all rows would need them in memory
        sample = np.array(sample[:: math.ceil(len(sample) / _SAMPLE)])
        forget(embedding.vectors)
    check_vectors(sample)
    record = RunRecord.now(
        method.name,
        **facts,
        name=graph.name,
        seed=plan.seed,
        recipe=plan.recipe,
        warm_start=plan.start.name if plan.start else None,
        graph=graph.info._asdict(),
        digests=digests(graph),
        columns=embedding.vectors.shape[1],
        statistics=_statistics(graph),
        feature_names=list(graph.schema.names) if graph.schema else [],
        node_columns=graph.schema.table() if graph.schema else [],
        parameters=method.num_parameters,
        scale=float(method.scale),
        seconds=trained.seconds,
        peak_memory_mb=peak_memory_mb(),
        final=trained.kept,
        diagnostics=geometry(sample),
        device=str(plan.device),
        precision=plan.precision,
        threads=torch.get_num_threads(),
        processes=world(),
    )
    return Run(record, trained.history, embedding, method, graph.schema)


def check_vectors(vectors: NDArray[np.floating[Any]]) -> None:
    """Refuse vectors that no use could be made of: not finite, or all zero."""
    if not np.isfinite(vectors).all():
        raise TrainingError("The embedding is not finite. A smaller lr may help.")
    if not vectors.any():
        raise TrainingError("The embedding is zero everywhere. The features or the weights of the model vanish.")


def _visible(
    graph: Graph | StoredGraph, plan: Plan, splits: SplitKind, facts: Facts | None
) -> tuple[Graph | StoredGraph, Best | None]:
    """Return the graph with the labels that training may use, and what chooses the best epoch, if the method does."""
    if not plan.method.supervised:
        return graph.without_labels(), None
    if isinstance(graph, StoredGraph):
        raise InputError(f"{plan.method.title} learns from labels and cannot be streamed; leave memory out.")
    split = split_of(graph, splits, plan.seed, facts)
    keep: Any = getattr(plan.config, "keep", "last")
    if keep == "last":
        return graph.with_labels_of(split.train), None
    if not split.valid.size:
        raise InputError(f"{plan.method.title} keeps its best epoch, so there must be at least 1 validation node.")
    labels = graph.with_labels_of(split.valid).labels
    assert labels is not None
    return graph.with_labels_of(split.train), Best(labels, keep)


def _statistics(graph: Graph | StoredGraph) -> dict[str, float]:
    """Return the degrees of a graph and whether it has weights; a graph on disk knows them."""
    if isinstance(graph, StoredGraph):
        largest, isolated, weighted = graph.max_degree, graph.isolated, graph.weighted
    else:
        degree = np.bincount(graph.edges[1], minlength=graph.num_nodes)
        largest, isolated, weighted = int(degree.max()), int((degree == 0).sum()), graph.weights is not None
    return {
        "mean_degree": graph.num_edges / graph.num_nodes,
        "max_degree": float(largest),
        "isolated_nodes": float(isolated),
        "weighted": float(weighted),
    }
