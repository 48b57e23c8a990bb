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
"""One line of history: epoch, total, the named terms, scores of `Best` if any, and seconds since the start."""

Observer: TypeAlias = Callable[[Epoch], bool | None]
"""Called after each epoch; a true return value stops training after a checkpoint."""


class Trained(NamedTuple):
    """The result of training, besides the trained method.

    Attributes
    ----------
    history
        One line per epoch.
    embedding
        Embedding of the training graph, n x d; None if training was stopped before its last epoch. Memory-mapped from
        an unnamed file if the graph was streamed.
    seconds
        Duration of training, without the embedding.
    kept
        The history of the epoch whose weights are kept: the last, or the best according to `Best`.
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
        Newly built; its configuration has epochs, learning rate and weight decay. A training-free method is only
        calibrated.
    prepared
        What ``method.prepare(graph)`` returned, for a graph without labels unless the method is supervised.
    key
        Determines every random draw.
    best
        Chooses the epoch to keep on validation nodes; None keeps the last epoch.
    observers
        Called with each epoch's line of history.
    checkpoint
        Where to save the state during training, and from where to resume. At the same number of threads, resumed and
        uninterrupted training are bit-equal.

    In distributed training (`ssge.training.distributed`), every process calls this function and returns the same
    result; only the first one writes the checkpoint.

    Raises
    ------
    TrainingError
        If a loss is not finite; the message names the epoch and the terms.
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
        answers = [observer(line) for observer in observers]  # call all of them
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
    """Take one optimizer step, and return the losses before it."""
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
    # One transfer for all terms, because each transfer synchronizes a GPU.
    values = torch.stack([torch.stack([one.total, *one.terms.values()]) for one in losses]).mean(0).tolist()
    line = dict(zip(names, values, strict=True))
    if not all(math.isfinite(value) for value in values):
        terms = ", ".join(f"{name} {value:g}" for name, value in line.items())
        raise TrainingError(f"The loss is not finite in epoch {epoch}: {terms}. A smaller lr may help.")
    return {"epoch": epoch} | line
