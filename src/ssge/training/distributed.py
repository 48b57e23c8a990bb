"""Several processes, one run: ``torchrun --nproc-per-node 2 -m ssge fit ...`` and what is special about it.

Every process draws the same batches and views, because draws are functions of a key, takes some rows of them, and adds
its sums to those of the others (`ssge.ops.collective`). So all of them have the same loss, the same gradient and the
same weights, and the first one speaks and writes for all.
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
"""How long a process waits for one that is alive and does not answer; one that has died is noticed at once."""
_stores: list[Any] = []


def is_main() -> bool:
    """Say whether this process is the one that speaks and writes."""
    return rank() == 0


@contextmanager
def joined() -> Iterator[None]:
    """Join the processes that ``torchrun`` started, if it did, and leave them at the end."""
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
    dist.destroy_process_group()  # not after an error, which is told before the others notice that this process is gone


def first_to_speak() -> bool:
    """Say whether no process of the run has told the user yet how it ended.

    A mistake that all make is told once, and so is the end of one process, which all others notice.
    """
    if not _stores:
        return int(os.environ.get("RANK", "0")) == 0
    try:
        return bool(_stores[-1].add("ssge/spoke", 1) == 1)
    except RuntimeError:  # the store went with the process that held it
        return True


def check_divisible(method: Method) -> None:
    """Refuse to divide the steps of a method that would then not be those of one process."""
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
    """Refuse to go on from checkpoints of different epochs."""
    last = len(history)
    if agree(last) != -agree(-last):
        raise InputError(
            "The processes found different checkpoints: to resume, the folder of the run must be on a file system that "
            "all machines see."
        )
