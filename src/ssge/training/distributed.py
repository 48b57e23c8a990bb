"""Distributed training: ``torchrun --nproc-per-node 2 -m ssge fit ...``.

Every process draws the same batches and views, because draws are functions of a key, computes some of their rows, and
adds its sums to those of the others (`ssge.ops.collective`). So all processes have the same loss, gradient and weights.
The first one prints and writes for all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from ssge.errors import InputError
from ssge.methods import Method
from ssge.ops.collective import agree, rank, world

TIMEOUT = timedelta(seconds=120)
"""Timeout for a process that is alive but does not answer; a dead process is noticed at once."""
_stores: list[Any] = []


def is_main() -> bool:
    """Return whether this process prints and writes."""
    return rank() == 0


@contextmanager
def joined() -> Iterator[None]:
    """Join the process group under ``torchrun``, and leave it at the end."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        backend = "cpu:gloo,cuda:nccl"
    store, number, count = next(rendezvous("env://", timeout=TIMEOUT))
    _stores.append(store)
    dist.init_process_group(backend, store=store, rank=number, world_size=count, timeout=TIMEOUT)
    try:
        yield
    except SystemExit as end:
        if end.code:
            raise
    dist.destroy_process_group()  # not after an error: report it before the others notice that this process is gone


def first_to_speak() -> bool:
    """Return whether this process is the first to report the end of the run.

    An error in all processes is reported once, and so is the death of one process, which all others notice.
    """
    if not _stores:
        return int(os.environ.get("RANK", "0")) == 0
    try:
        return bool(_stores[-1].add("ssge/spoke", 1) == 1)
    except RuntimeError:  # the process that held the store is gone
        return True


def check_divisible(method: Method) -> None:
    """Raise an error for methods whose distributed training would not equal that of one process."""
    if world() == 1:
        return
    if not method.of_moments:
        why = "its loss is not made of sums over nodes"
    elif getattr(method.encoder, "norms", ()) and method.encoder.hops and getattr(method.config, "batch_nodes", None):
        why = "its batch normalization in batches of nodes counts nodes that several processes would have"
    else:
        return
    raise InputError(f"{method.title} with these settings must run in 1 process: {why}; received {world()} processes.")


def check_same_start(history: Sequence[Any]) -> None:
    """Raise an error if the processes have checkpoints of different epochs."""
    last = len(history)
    if agree(last) != -agree(-last):
        raise InputError(
            "The processes found different checkpoints: to resume, the folder of the run must be on a file system that "
            "all machines see."
        )
