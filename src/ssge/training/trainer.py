"""The one training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from ssge.errors import InputError, TrainingError
from ssge.graph import Graph
from ssge.methods import Method
from ssge.objectives import Losses
from ssge.training.best import Best
from ssge.training.checkpoint import Checkpoint, describe_run
from ssge.training.memory import kept_memory

Epoch: TypeAlias = dict[str, float]
"""One line of history: epoch, total, the named terms, figures of `Best` if any, and seconds since training began."""

Observer: TypeAlias = Callable[[Epoch], bool | None]
"""Called after each epoch; a true answer stops the training after a checkpoint."""


class Trained(NamedTuple):
    """What a training leaves beside the trained method.

    Attributes
    ----------
    history
        One line per epoch.
    finished
        Whether it ran to its last epoch.
    seconds
        That it took.
    kept
        The line of the epoch whose weights a finished training leaves: the last, or the best where `Best` looked.
    """

    history: list[Epoch]
    finished: bool
    seconds: float
    kept: Epoch


def train(
    method: Method,
    graph: Graph,
    *,
    seed: int = 0,
    labeled: NDArray[np.int64] | None = None,
    validation: NDArray[np.int64] | None = None,
    observers: Sequence[Observer] = (),
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
) -> Trained:
    """Train a method in place on a graph, whose labels it never sees unless it is a supervised one.

    Parameters
    ----------
    method
        Freshly built; its configuration holds epochs, learning rate and weight decay.
    graph
        Any graph with the features the method was built for.
    seed
        Decides every random choice of the views.
    labeled
        The training nodes of a supervised method: the only ones whose labels it sees.
    validation
        The nodes whose labels say which epoch is best, for a method that is to keep that one; others pass over them.
    observers
        Called with each epoch's line of history.
    checkpoint
        Where to save the state on the way; None saves nothing.
    resume
        Go on from the checkpoint if there is one. At the same thread count the result is bit-equal to an uninterrupted
        training.

    Raises
    ------
    TrainingError
        When a loss is not finite; the message names the epoch and the terms.
    """
    if method.supervised and labeled is None:
        raise InputError(f"labeled must name the training nodes, because {method.title} learns from their labels.")
    best = Best.of(method, graph, validation)
    graph = graph.with_labels_of(labeled) if method.supervised and labeled is not None else graph.without_labels()
    epochs = method.config.epochs
    view = method.prepare(graph)
    optimizer = method.optimizer()
    rates = [group["lr"] for group in optimizer.param_groups]
    generator = torch.Generator(method.weight.device).manual_seed(seed)
    history: list[Epoch] = []
    run = {} if checkpoint is None else describe_run(method, graph, seed, None if best is None else best.labels)
    if resume and checkpoint is not None and checkpoint.path.exists():
        history = checkpoint.load(method, optimizer, generator, run, best)
    before = history[-1]["seconds"] if history else 0.0
    began = time.perf_counter()

    stopped = False
    with kept_memory():
        while len(history) < epochs and not stopped:
            method.train()
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * method.pace(len(history) / epochs)
            steps = []
            for batch in method.batches(view, generator):
                steps.append(step(method, batch, optimizer, generator))
                method.after_step((len(history) + 1) / epochs)
            line = _measured(steps, len(history) + 1)
            if best is not None:
                best.look(view, line)
            line["seconds"] = before + time.perf_counter() - began
            history.append(line)
            answers = [observer(line) for observer in observers]  # all of them are asked
            stopped = any(answers)
            due = checkpoint is not None and checkpoint.every > 0 and len(history) % checkpoint.every == 0
            if checkpoint is not None and (stopped or due):
                checkpoint.save(method, optimizer, generator, run, history, best)

    finished = len(history) >= epochs
    if finished:
        if best is not None:
            best.restore()
        del view  # so that calibration does not hold a second copy of the graph
        method.calibrate(graph)
    kept = best.line if best is not None else history[-1] if history else {}
    return Trained(history, finished, before + time.perf_counter() - began, kept)


def step(method: Method, batch: Any, optimizer: torch.optim.Optimizer, generator: torch.Generator) -> Losses:
    """Take one step of the optimizer, and return the losses before it."""
    optimizer.zero_grad()
    losses: Losses = method(batch, generator)
    losses.total.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return Losses(losses.total.detach(), losses.terms)


def _measured(steps: Sequence[Losses], epoch: int) -> Epoch:
    """Return the mean of each term over the steps of an epoch."""
    names = ["total", *steps[0].terms]
    # One transfer for all terms: each would be a synchronization on a GPU.
    values = torch.stack([torch.stack([s.total, *s.terms.values()]) for s in steps]).mean(0).tolist()
    line = dict(zip(names, values, strict=True))
    if not all(math.isfinite(value) for value in values):
        terms = ", ".join(f"{name} {value:g}" for name, value in line.items())
        raise TrainingError(f"The loss is not finite in epoch {epoch}: {terms}. A smaller lr may help.")
    return {"epoch": epoch} | line
