"""What the processes of `test_distributed` do; the tests do the same in one process and compare."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.distributed as dist

from graphs import random_graph
from ssge.errors import InputError
from ssge.ops import collective
from ssge.ops.random import Key
from ssge.training import trainer
from ssge.training.batches import batches, share
from ssge.training.checkpoint import build
from ssge.training.distributed import check_same_start
from ssge.training.trainer import Epoch, Observer

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "ssge": ("ssge", {"widths": (8, 6)}),
    "ssge folded": ("ssge", {"widths": (6, 8)}),
    "ssge one layer": ("ssge", {"widths": (7,)}),
    "ssge mlp": ("ssge", {"widths": (6, 8), "encoder": "mlp"}),
    "ssge bias": ("ssge", {"widths": (6, 6), "output_bias": True}),
    "ssge batches": ("ssge", {"widths": (6, 8), "batch_nodes": 30}),
    "ssge sampled": ("ssge", {"widths": (6, 8), "batch_nodes": 30, "fanouts": (3, 2)}),
    "cca_ssg": ("cca_ssg", {"widths": (8, 6)}),
    "cca_ssg folded": ("cca_ssg", {"widths": (6, 8)}),
    "cca_ssg batches": ("cca_ssg", {"widths": (8, 6), "batch_nodes": 30}),
    "g_bt": ("g_bt", {"widths": (8, 6)}),
    "g_bt folded": ("g_bt", {"widths": (6, 8)}),
}
Arrays = dict[str, np.ndarray]


def gradients(case: str, sparse: bool = False) -> Arrays:
    """Return the gradient of each parameter, and the loss, at the first step."""
    name, settings = CASES[case]
    graph = random_graph(n=61, p=12, weighted=True, directed=True, sparse=sparse)
    method = build(name, settings | {"epochs": 1}, graph.info, 0, torch.float64).train()
    own = share(method, method.prepare(graph))
    found: Arrays = {}
    for batch, key in batches(method, own, Key(0).fold_in("train", 1)):
        method.zero_grad()
        loss = method(batch, key).total
        loss.backward()  # type: ignore[no-untyped-call]
        collective.average_gradients(method.parameters())
        step = f"step {key.step}"
        found |= {f"{step} {p}": value.grad.numpy().copy() for p, value in method.named_parameters()}  # type: ignore[union-attr]
        found[f"{step} loss"] = loss.detach().numpy()
    return found


def views_encoded(case: str) -> int:
    """Return how many views this process encodes in a step."""
    name, settings = CASES[case]
    graph = random_graph(n=61, p=12)
    method = build(name, settings | {"epochs": 1}, graph.info, 0, torch.float64).train()
    with patch.object(method.encoder, "factors", wraps=method.encoder.factors) as encode:
        method(share(method, method.prepare(graph)), Key(0))
    return encode.call_count


def training(case: str, dtype: torch.dtype) -> Arrays:
    """Return the losses of some epochs, the embedding, and the state that is left."""
    name, settings = CASES[case]
    graph = random_graph(n=61, p=12, dtype=np.float64 if dtype == torch.float64 else np.float32)
    method = build(name, settings | {"epochs": 8}, graph.info, 0, dtype)
    trained = trainer.train(method, method.prepare(graph), Key(0))
    assert trained.embedding is not None
    state = {f"state {name}": value.numpy() for name, value in method.state_dict().items()}
    losses = np.array([line["total"] for line in trained.history])
    return state | {"losses": losses, "embedding": trained.embedding.numpy()}


def message(call: Callable[[], Any]) -> str:
    """Return what an error says."""
    try:
        call()
    except InputError as error:
        return str(error)
    return ""


def identity_backward() -> Arrays:
    """Return gradients where the backward pass of a sum is the identity: the usual mistake."""
    honest = collective._Total.backward
    collective._Total.backward = staticmethod(lambda _, *gradients: (None, *gradients))  # type: ignore[assignment]
    try:
        return gradients("ssge folded")
    finally:
        collective._Total.backward = honest  # type: ignore[method-assign]


def sum_of_gradients() -> Arrays:
    """Return gradients that are summed over processes instead of averaged."""
    right = gradients("ssge folded")
    return {name: value * (1 if "loss" in name else collective.world()) for name, value in right.items()}


def everything() -> dict[str, Any]:
    """Return all figures that must not depend on the number of processes."""
    found: dict[str, Any] = {f"gradients {case}": gradients(case) for case in CASES}
    found["gradients sparse"] = gradients("ssge folded", sparse=True)
    for case in ("ssge folded", "ssge batches", "ssge sampled", "cca_ssg", "g_bt"):
        found |= {f"training {case} {d}": training(case, d) for d in (torch.float64, torch.float32)}
    return found


def process(rank: int, worlds: list[int], folder: Path) -> None:
    """Be one of several processes, in groups of several sizes one after the other."""
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - warnings about widths, three times
    torch.set_num_threads(1)
    for world in worlds:
        if rank >= world:
            continue
        address = f"file://{folder / f'group{world}'}"
        dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world, timeout=timedelta(seconds=60))
        found = everything() | {
            "views encoded": {case: views_encoded(case) for case in ("ssge folded", "cca_ssg", "g_bt")},
            "identity backward": identity_backward(),
            "sum of gradients": sum_of_gradients(),
            "refused": message(lambda: trainer.train(build("grace", {}, random_graph().info), None, Key(0))),
            "refused norm": message(
                lambda: trainer.train(build("g_bt", {"batch_nodes": 9}, random_graph().info), None, Key(0))
            ),
            "different starts": message(lambda: check_same_start([{}] * dist.get_rank())),
        }
        torch.save(found, folder / f"{world}-{rank}.pt")
        dist.destroy_process_group()


def main() -> None:
    """Run the command line in a process that kills itself after some epoch if it is the one that is told to."""
    from ssge.cli import main
    from ssge.runs import fit

    honest = fit.stop_on_signals

    @contextmanager
    def killed() -> Iterator[Observer]:
        with honest() as observer:

            def watch(line: Epoch) -> bool | None:
                if os.environ["RANK"] == os.environ["KILLED"] and line["epoch"] == 5:
                    os.kill(os.getpid(), signal.SIGKILL)
                return observer(line)

            yield watch

    fit.stop_on_signals = killed
    main()


if __name__ == "__main__":
    main()
