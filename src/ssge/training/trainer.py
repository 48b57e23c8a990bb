"""The one training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import torch

from ssge.errors import TrainingError
from ssge.graph import Graph
from ssge.methods import Method
from ssge.objectives import Losses
from ssge.training.checkpoint import Checkpoint, describe_run
from ssge.training.memory import kept_memory

Epoch: TypeAlias = dict[str, float]
"""One line of history: epoch, total, the named terms, and the seconds since training began."""

Observer: TypeAlias = Callable[[Epoch], bool | None]
"""Called after each epoch; a true answer stops the training after a checkpoint."""


class Trained(NamedTuple):
    """What a training leaves beside the trained method."""

    history: list[Epoch]
    finished: bool
    seconds: float


def train(
    method: Method,
    graph: Graph,
    *,
    seed: int = 0,
    observers: Sequence[Observer] = (),
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
) -> Trained:
    """Train a method in place on a graph, whose labels it never sees.

    Parameters
    ----------
    method
        Freshly built; its configuration holds epochs, learning rate and weight decay.
    graph
        Any graph with the features the method was built for.
    seed
        Decides every random choice of the views.
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
    graph = graph.without_labels()
    config = method.config
    view = method.prepare(graph)
    optimiser = torch.optim.Adam(
        method.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
    )
    generator = torch.Generator(method.weight.device).manual_seed(seed)
    history: list[Epoch] = []
    run = {} if checkpoint is None else describe_run(method, graph, seed)
    if resume and checkpoint is not None and checkpoint.path.exists():
        history = checkpoint.load(method, optimiser, generator, run)
    before = history[-1]["seconds"] if history else 0.0
    began = time.perf_counter()

    stopped = False
    with kept_memory():
        while len(history) < config.epochs and not stopped:
            method.train()
            optimiser.zero_grad()
            losses = method(view, generator)
            line = _measured(losses, len(history) + 1)
            losses.total.backward()
            optimiser.step()
            method.after_step((len(history) + 1) / config.epochs)
            line["seconds"] = before + time.perf_counter() - began
            history.append(line)
            answers = [observer(line) for observer in observers]  # all of them are asked
            stopped = any(answers)
            due = checkpoint is not None and checkpoint.every > 0 and len(history) % checkpoint.every == 0
            if checkpoint is not None and (stopped or due):
                checkpoint.save(method, optimiser, generator, run, history)

    finished = len(history) >= config.epochs
    if finished:
        del view  # so that calibration does not hold a second copy of the graph
        method.calibrate(graph)
    return Trained(history, finished, before + time.perf_counter() - began)


def _measured(losses: Losses, epoch: int) -> Epoch:
    names = ["total", *losses.terms]
    # One transfer for all terms: each would be a synchronisation on a GPU.
    values = torch.stack([losses.total.detach(), *losses.terms.values()]).tolist()
    line = dict(zip(names, values, strict=True))
    if not all(math.isfinite(value) for value in values):
        terms = ", ".join(f"{name} {value:g}" for name, value in line.items())
        raise TrainingError(
            f"The loss is not finite in epoch {epoch}: {terms}. A smaller learning_rate or uniformity_weight may help."
        )
    return {"epoch": epoch} | line
