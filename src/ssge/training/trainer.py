"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from ssge.errors import TrainingError
from ssge.methods import Method
from ssge.objectives import Losses
from ssge.ops.collective import agree, average_gradients
from ssge.ops.random import Key
from ssge.training.batches import batches, share, warn_if_small
from ssge.training.best import Best
from ssge.training.checkpoint import Checkpoint
from ssge.training.distributed import check_divisible, check_same_start, is_main
from ssge.training.streaming import is_streamed, streamed_embedding

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
    embedding
        Of the training graph, n x d; None if the training was stopped before its last epoch. Mapped from an unnamed
        file where the graph was streamed.
    seconds
        Duration, without that of the embedding.
    kept
        The line of the epoch whose weights a finished training leaves: the last, or the best where `Best` looked.
    """

    history: list[Epoch]
    embedding: Tensor | np.memmap[Any, Any] | None
    seconds: float
    kept: Epoch


def train(
    method: Method,
    prepared: Any,
    key: Key,
    *,
    best: Best | None = None,
    observers: Sequence[Observer] = (),
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Train a method in place on a prepared graph, then embed that graph.

    Parameters
    ----------
    method
        Freshly built; its configuration holds epochs, learning rate and weight decay. One that has nothing to train is
        calibrated alone.
    prepared
        What ``method.prepare(graph)`` returned, for a graph without labels unless the method is supervised.
    key
        Decides every random draw.
    best
        Chooses the epoch to keep on validation nodes; None keeps the last epoch.
    observers
        Called with each epoch's line of history.
    checkpoint
        Where to save the state on the way, and from where to resume. At the same number of threads a resumed training
        equals an uninterrupted one bit for bit.

    Where several processes share the run (`ssge.training.distributed`), each of them calls this and returns the same;
    the first one alone writes the checkpoint.

    Raises
    ------
    TrainingError
        When a loss is not finite; the message names the epoch and the terms.
    """
    check_divisible(method)
    warn_if_small(method, prepared)
    epochs = method.config.epochs
    if not method.trained:
        return Trained([], method.calibrate(prepared), 0.0, {})
    optimizer = method.optimizer()
    base_lrs = [group["lr"] for group in optimizer.param_groups]
    history: list[Epoch] = [] if checkpoint is None else checkpoint.resume(method, optimizer, best)
    check_same_start(history)
    own = share(method, prepared)
    before = history[-1]["seconds"] if history else 0.0
    began = time.perf_counter()

    stopped = False
    while len(history) < epochs and not stopped:
        epoch = len(history) + 1
        method.train()
        for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
            group["lr"] = lr * method.lr_schedule(len(history) / epochs)
        losses = []
        for batch, step_key in batches(method, own, key.fold_in("train", epoch)):
            losses.append(step(method, batch, optimizer, step_key))
            method.after_step(epoch / epochs)
        line = _mean(losses, epoch)
        if best is not None:
            best.update(method, prepared, line)
        line["seconds"] = before + time.perf_counter() - began
        history.append(line)
        answers = [observer(line) for observer in observers]  # all of them are called
        stopped = bool(agree(any(answers)))
        if checkpoint is not None and is_main() and (stopped or checkpoint.due(epoch)):
            checkpoint.save(method, optimizer, history, best)

    kept = history[-1] if history else {}
    if best is not None and best.line:
        kept = best.line
    seconds = before + time.perf_counter() - began
    if len(history) < epochs:
        return Trained(history, None, seconds, kept)
    if best is not None:
        best.restore(method)
    streamed = is_streamed(prepared)
    embedding = streamed_embedding(method, prepared, calibrate=True) if streamed else method.calibrate(prepared)
    return Trained(history, embedding, seconds, kept)


def step(method: Method, batch: Any, optimizer: torch.optim.Optimizer, key: Key) -> Losses:
    """Take one step of the optimizer, and return the losses before it."""
    optimizer.zero_grad()
    with method.products():
        losses: Losses = method(batch, key)
    losses.total.backward()  # type: ignore[no-untyped-call]
    average_gradients(method.parameters())
    optimizer.step()
    return Losses(losses.total.detach(), losses.terms)


def _mean(losses: Sequence[Losses], epoch: int) -> Epoch:
    """Return the mean of each term over the steps of an epoch."""
    names = ["total", *losses[0].terms]
    # One transfer for all terms: each would be a synchronization on a GPU.
    values = torch.stack([torch.stack([one.total, *one.terms.values()]) for one in losses]).mean(0).tolist()
    line = dict(zip(names, values, strict=True))
    if not all(math.isfinite(value) for value in values):
        terms = ", ".join(f"{name} {value:g}" for name, value in line.items())
        raise TrainingError(f"The loss is not finite in epoch {epoch}: {terms}. A smaller lr may help.")
    return {"epoch": epoch} | line
