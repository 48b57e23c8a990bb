"""Estimates: parameters exactly, memory as a process of its own measures it, and the refusal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from graphs import random_graph
from ssge.errors import InputError
from ssge.experiments import estimate as estimating
from ssge.experiments.estimate import available_memory, check_memory, describe, estimate, training_memory
from ssge.experiments.run import resolve_config
from ssge.graph import Graph, GraphInfo
from ssge.methods import METHODS
from ssge.training import trainer
from ssge.training.checkpoint import build
from ssge.training.trainer import Trained

GRAPH = random_graph(n=300, p=12, m=900)

MEASURE = """
import gc, sys
from pathlib import Path
from ssge.datasets import load
from ssge.experiments.estimate import training_memory
from ssge.experiments.run import resolve_config
from ssge.training.checkpoint import build
from ssge.training.trainer import train

def resident(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))

def learn(graph, **settings):
    train(build("ssge", {"epochs": 2} | settings, graph.info), graph)

encoder, batch, *widths = sys.argv[1:]
settings = {"encoder": encoder, "widths": tuple(map(int, widths)), "batch_nodes": int(batch) or None}
graph = load("sbm", nodes=20_000, degree=10, features=64).without_labels()
learn(load("karate").without_labels(), widths=(4, 4))
gc.collect()
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
learn(graph, **settings)
print(resident("VmHWM") - before, training_memory(graph, "ssge", resolve_config("ssge", settings)))
"""


@pytest.mark.parametrize(
    "words",
    [
        ("gcn", "0", "256", "256"),
        ("mlp", "0", "256", "128"),
        ("gcn", "300", "256", "256"),
        ("mlp", "2000", "256", "128"),
    ],
)
def test_memory_is_what_a_process_takes(words: tuple[str, ...]) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("measured on Linux only")
    done = subprocess.run([sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=True)
    measured, estimated = (int(word) for word in done.stdout.split())
    assert estimated == pytest.approx(measured, rel=0.3)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"encoder": "mlp"},
        {"widths": (8,)},
        {"widths": (8, 6, 4), "output_bias": True},
        {"batch_nodes": 100},
    ],
)
def test_parameters_are_counted_exactly(settings: dict[str, object]) -> None:
    config = resolve_config("ssge", {"widths": (16, 8), "epochs": 1} | settings)
    found = estimate(GRAPH, "ssge", config)
    built = build("ssge", config.model_dump(), GRAPH.info)
    assert found.parameters == sum(parameter.numel() for parameter in built.parameters())
    assert found.seconds is not None
    assert found.seconds > 0
    assert f"{found.parameters:,} parameters" in describe(found, 1)


def test_time_of_a_graph_too_large_to_try_is_continued_from_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    n, tried = 60_000, []

    def trial(graph: Graph, *_: object) -> estimating._Trial:
        """Answer as a machine would that takes 10 ms a step and 2 us more a node."""
        tried.append(graph.num_nodes)
        return estimating._Trial(0.01 + 2e-6 * graph.num_nodes, 0.0)

    monkeypatch.setattr(estimating, "_TRIAL_COST", 1e9)
    monkeypatch.setattr(estimating, "_trial", trial)
    edges = np.stack([np.arange(n), np.roll(np.arange(n), 1)])
    features = sp.random_array((n, 64), density=0.05, rng=np.random.default_rng(0), format="csr", dtype=np.float32)
    graph = Graph.of(edges=edges, features=features)
    for epochs in (1, 100):
        found = estimate(graph, "ssge", resolve_config("ssge", {"widths": (64, 64), "epochs": epochs}))
        assert found.seconds == pytest.approx(epochs * (0.01 + 2e-6 * n))
    small, large = tried[:2]
    assert small == large // 2
    assert large < n // 2


def test_memory_grows_with_every_size() -> None:
    def needed(graph: Graph = GRAPH, **settings: object) -> int:
        return training_memory(graph, "ssge", resolve_config("ssge", {"widths": (64, 64)} | settings))

    assert needed(widths=(128, 128)) > needed() > needed(widths=(64,))
    assert needed(random_graph(n=600, m=900)) > needed()
    assert needed(random_graph(n=300, m=90_000)) > needed()
    assert needed(encoder="mlp") > needed(encoder="mlp", batch_nodes=100) > needed(encoder="mlp", batch_nodes=80)
    assert training_memory(GRAPH, "ssge", resolve_config("ssge"), "float64") > training_memory(
        GRAPH, "ssge", resolve_config("ssge")
    )


def test_refusal_names_the_estimate_the_memory_and_what_to_do() -> None:
    config = resolve_config("ssge", {"widths": (64, 32)})
    with pytest.raises(InputError, match=r"needs about \d+ MiB .* 1 MiB of memory are free: .*widths \(now 64 32\)"):
        check_memory(GRAPH, "ssge", config, available=1 << 20)
    with pytest.raises(InputError, match=r"choose batches of nodes \(batch_nodes\) or smaller widths"):
        check_memory(GRAPH, "ssge", config, available=1 << 20)
    with pytest.raises(InputError, match=r"choose smaller batches \(batch_nodes; now 50\)"):
        check_memory(GRAPH, "ssge", config.model_copy(update={"batch_nodes": 50}), available=1 << 20)
    with pytest.raises(InputError, match=r"choose smaller widths"):
        check_memory(GRAPH, "cca_ssg", resolve_config("cca_ssg"), available=1 << 20)
    check_memory(GRAPH, "ssge", config, available=1 << 40)
    check_memory(GRAPH, "ssge", config)
    free = available_memory()
    assert free is None or free > 0


def test_time_of_batches_is_that_of_steps_on_the_graph_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 5.0, *np.arange(7.0, 1000.0, 2.0)])  # the first step takes 5 s, each of the others 2 s
    monkeypatch.setattr(estimating.time, "perf_counter", lambda: next(clock))
    config = resolve_config("ssge", {"widths": (16, 8), "epochs": 10, "batch_nodes": 100})
    assert estimate(GRAPH, "ssge", config).seconds == 10 * 3 * 2.0 + 3.0
    monkeypatch.setattr(estimating, "available_memory", lambda: 1 << 10)
    found = estimate(GRAPH, "ssge", config)
    assert found.seconds is None
    assert "too much to find out how long" in describe(found, 10)


N = 60_000


class Timed(NamedTuple):
    """The sizes that were tried, the estimate, and what an epoch of the whole graph takes."""

    sizes: list[int]
    seconds: float
    epoch: float


def sizes_of(nodes: int) -> GraphInfo:
    return GraphInfo(nodes, 2 * nodes, 8)


def timed(patch: pytest.MonkeyPatch, method: str, config: dict[str, object], start: float = 0.0) -> Timed:
    """Estimate with trials that take a second a million multiply-adds, and ``start`` a node before the first epoch."""
    settings, sizes = resolve_config(method, config), []

    def epoch(info: GraphInfo) -> float:
        return 1e-6 * info.num_nodes * METHODS[method].step_cost(settings, info)

    def trial(graph: Graph, *_: object) -> estimating._Trial:
        sizes.append(graph.num_nodes)
        return estimating._Trial(epoch(graph.info), start * graph.num_nodes)

    patch.setattr(estimating, "_trial", trial)
    edges = np.stack([np.arange(N), np.roll(np.arange(N), 1)])
    graph = Graph.of(edges=edges, features=np.ones((N, 8), dtype=np.float32))
    found = estimate(graph, method, settings).seconds
    assert found is not None
    return Timed(sizes, found, epoch(graph.info))


@pytest.mark.parametrize(
    ("method", "config"),
    [
        ("ssge", {"widths": (128, 128)}),
        ("gae", {}),
        ("gae", {"dense": True}),
        ("vgae", {"dense": True}),
        ("afgrl", {"widths": (128,)}),
        ("deepwalk", {}),
        ("deepwalk", {"softmax": "negative"}),
        ("node2vec", {}),
    ],
)
def test_time_grows_as_the_work_that_a_method_declares(
    monkeypatch: pytest.MonkeyPatch, method: str, config: dict[str, object]
) -> None:
    found = timed(monkeypatch, method, config | {"epochs": 7})
    assert found.seconds == pytest.approx(7 * found.epoch, rel=0.01)
    assert max(found.sizes) < N
    settings = resolve_config(method, config)
    tried = max(size * METHODS[method].step_cost(settings, sizes_of(size)) for size in found.sizes)
    assert tried == pytest.approx(estimating._TRIAL_COST, rel=0.05)


def test_walks_are_tried_on_fewer_nodes_than_encoders(monkeypatch: pytest.MonkeyPatch) -> None:
    walked = timed(monkeypatch, "deepwalk", {}).sizes
    encoded = timed(monkeypatch, "ssge", {"widths": (128, 128)}).sizes
    assert 4 * max(walked) < max(encoded)


@pytest.mark.parametrize("method", ["afgrl", "gae", "vgae", "ssge", "deepwalk"])
def test_only_a_comparison_of_all_nodes_makes_time_grow_with_the_square(method: str) -> None:
    def ratio(**config: object) -> float:
        settings = resolve_config(method, config)
        one, two = (METHODS[method].step_cost(settings, sizes_of(n)) for n in (10**7, 2 * 10**7))
        return two / one

    if method in ("gae", "vgae"):
        assert ratio(dense=True) == pytest.approx(2, rel=0.02)
        assert ratio() == pytest.approx(1)
    elif method == "deepwalk":  # Adam on the tables in each step of a bounded batch
        assert 1 < ratio(batch=10**6) < 1.2
    else:
        assert ratio() == pytest.approx(2 if method == "afgrl" else 1, rel=0.02)


def test_what_the_first_epoch_takes_longer_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, more = (timed(monkeypatch, "rgrl", {"epochs": 5}, start) for start in (0.0, 0.01))
    assert more.seconds - plain.seconds == pytest.approx(0.01 * N)
    assert timed(monkeypatch, "rgrl", {"epochs": 0}, 0.01).seconds == 0


def test_a_trial_tells_the_first_epoch_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter([5.0, 6.0, 8.0, 9.0])
    lines: list[dict[str, float]] = []

    def train(*_: object, observers: list, **__: object) -> Trained:
        for epoch, end in enumerate(ends, 1):
            lines.append({"epoch": epoch, "seconds": end})
            if observers[0](lines[-1]):
                break
        return Trained(lines, False, 0.0, {})

    monkeypatch.setattr(trainer, "train", train)
    config = resolve_config("ssge", {"widths": (4,)})
    assert estimating._trial(GRAPH, "ssge", config, "float32") == (1.0, 4.0)
    assert len(lines) == 2  # an epoch is long: no more are needed
    monkeypatch.setattr(estimating, "_TRIAL_SECONDS", 100)
    ends, lines = iter([5.0, 6.0, 8.0, 9.0]), []
    assert estimating._trial(GRAPH, "ssge", config, "float32") == (1.0, 4.0)
    assert len(lines) == 4


@pytest.mark.parametrize("method", ["deepwalk", "node2vec"])
def test_the_refusal_of_walks_names_what_they_have(method: str) -> None:
    config = resolve_config(method, {"batch": 77, "width": 33})
    with pytest.raises(InputError, match=r"choose a smaller batch \(now 77\) or width \(now 33\)\.$"):
        check_memory(GRAPH, method, config, available=1 << 20)
