"""Kill runs at random moments and resume them; start pairs of runs on one folder.

    python benchmarks/kills.py --kills 300 --pairs 100

A child process is forked, so a trial costs no import of torch. Two of three kills hit a file operation inside the run's
folder, found by Python's audit hook; the others come after a random time. What is resumed must equal an uninterrupted
run bit for bit. Of two runs that start together on one folder exactly one must win.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ssge.datasets import load
from ssge.errors import SSGEError
from ssge.experiments.compare import score
from ssge.experiments.protocols import PROTOCOLS
from ssge.graph import Graph
from ssge.io.embeddings import write_embedding
from ssge.runs.fit import fit
from ssge.runs.folder import RunFolder
from ssge.runs.plan import Plan, plan

METHODS: dict[str, dict[str, Any]] = {
    "ssge": {"epochs": 6, "widths": (8, 4)},
    "bgrl": {"epochs": 6, "widths": (8,), "predictor_width": 8},
    "node2vec": {"epochs": 4, "width": 8, "walk_length": 10},
}
EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}
QUICK = PROTOCOLS["quick"].model_copy(update={"cluster_seeds": 1})
Action = Callable[[Graph, Plan, Path], None]


def train(graph: Graph, planned: Plan, path: Path) -> None:
    fit(graph, planned, RunFolder(path), dataset="karate", checkpoint_every=1, resume=True)


def replace(graph: Graph, planned: Plan, path: Path) -> None:
    fit(graph, planned, RunFolder(path), dataset="karate", checkpoint_every=1, force=True)


def evaluate(graph: Graph, planned: Plan, path: Path) -> None:
    score(RunFolder(path), graph, QUICK, force=True)


def embed(graph: Graph, planned: Plan, path: Path) -> None:
    write_embedding(path.with_suffix(".npy"), *RunFolder(path).read_embedding())


def forked(action: Callable[[], None], hook: Callable[[str, tuple[Any, ...]], None] | None = None) -> int:
    """Run an action in a child, which exits with 1 and a traceback if it fails; return its process."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        if hook:
            sys.addaudithook(hook)
        action()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def killed(action: Callable[[], None], folder: Path, rng: random.Random) -> bool:
    """Run an action in a child that is killed on the way; say whether it was."""
    at_write, count, delay = rng.random() < 2 / 3, rng.randrange(1, 100), rng.uniform(0, 0.15)
    left = iter(range(count, -1, -1))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS and str(folder.parent) in str(arguments[0]) and next(left, 0) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    child = forked(action, hook if at_write else None)
    if not at_write:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"exit code {os.WEXITSTATUS(status)}"
    return os.WIFSIGNALED(status)


def trial(index: int, rng: random.Random, folder: Path, expected: dict[str, bytes]) -> bool:
    """Kill one command on a run, repeat it, and compare what is there with an uninterrupted run."""
    method = list(METHODS)[index % len(METHODS)]
    action: Action = (train, train, replace, evaluate, embed)[index % 5]
    graph = load("karate")
    planned = plan(graph.info, method, settings=METHODS[method])
    if action is not train:
        train(graph, planned, folder)
    hit = killed(lambda: action(graph, planned, folder), folder, rng)
    found = RunFolder(folder)
    if action is train:
        if not found.complete:
            train(graph, planned, folder)
    else:
        found.read_record()  # the old run or the new one, whole
        action(graph, planned, folder)
    for read in (found.read_record, found.read_history, found.read_model):
        read()
    assert found.embedding.read_bytes() == expected[method], f"{method}, {action.__name__}"
    left = [path.name for place in (folder, folder.parent) for path in place.iterdir() if path.name.startswith(".")]
    assert not left, f"{left} left behind"
    return hit


def kills(count: int, seed: int = 0) -> int:
    """Try until so many runs were killed, and return how many trials that took; each must end in equal bytes."""
    rng, trials, hits, expected = random.Random(seed), 0, 0, {}
    with tempfile.TemporaryDirectory() as name:
        root, graph = Path(name), load("karate")
        for method, settings in METHODS.items():
            train(graph, plan(graph.info, method, settings=settings), root / method)
            expected[method] = RunFolder(root / method).embedding.read_bytes()
        while hits < count:
            hits += trial(trials, rng, root / "trial" / "run", expected)
            trials += 1
            shutil.rmtree(root / "trial")
    return trials


def pairs(count: int) -> int:
    """Return in how many pairs of runs that start together on one folder exactly one wins."""
    graph, right = load("karate"), 0
    planned = plan(graph.info, settings=METHODS["ssge"])
    with tempfile.TemporaryDirectory() as name:
        for index in range(count):
            folder = Path(name) / f"run-{index}"
            start = time.time() + 0.05

            def write(folder: Path = folder, start: float = start) -> None:
                while time.time() < start:
                    pass
                try:
                    fit(graph, planned, RunFolder(folder))
                except SSGEError:
                    os._exit(2)

            children = [forked(write) for _ in range(2)]
            codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
            RunFolder(folder).read_record()
            right += codes == [0, 2]
    return right


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kills", type=int, default=300)
    arguments.add_argument("--pairs", type=int, default=100)
    given = arguments.parse_args()
    import torch

    torch.set_num_threads(1)  # a forked child has no other threads
    logging.disable()
    warnings.simplefilter("ignore")
    trials, right = kills(given.kills), pairs(given.pairs)
    print(f"{given.kills} killed and resumed bit-equal, in {trials} trials;", end=" ")
    print(f"exactly one of two won in {right} of {given.pairs} pairs")


if __name__ == "__main__":
    main()
