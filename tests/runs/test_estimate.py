"""Estimates: parameters exactly, memory as a process of its own measures it, time, and the refusal."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs import random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.methods import METHODS
from ssge.runs import estimate as estimating
from ssge.runs.estimate import available_memory, check_memory, estimate
from ssge.runs.plan import Plan, plan

GRAPH = random_graph(n=300, p=12, m=900)

MEASURE = """
import gc, sys
from pathlib import Path
from ssge.datasets import load
from ssge.runs.estimate import estimate
from ssge.runs.fit import fit
from ssge.runs.plan import plan

def resident(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))

method, batch, *widths = sys.argv[1:]
settings = {"widths": tuple(map(int, widths)), "batch_nodes": int(batch) or None, "epochs": 2}
graph = load("sbm", nodes=20_000, degree=10, features=64).without_labels()
small = load("karate").without_labels()
fit(small, plan(small.info, method, settings={"widths": (4, 4), "epochs": 1}))
gc.collect()
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
fit(graph, plan(graph.info, method, settings=settings))
print(resident("VmHWM") - before, estimate(graph, plan(graph.info, method, settings=settings)).memory)
"""


@pytest.mark.parametrize(
    "words",
    [("ssge", "0", "256", "256"), ("bgrl", "0", "256", "128"), ("ssge", "300", "256", "256")],
)
def test_memory_is_what_a_process_takes(words: tuple[str, ...]) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("measured on Linux only")
    done = subprocess.run([sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=True)
    measured, estimated = (int(word) for word in done.stdout.split())
    assert estimated == pytest.approx(measured, rel=0.4)


def planned(graph: Graph = GRAPH, method: str = "ssge", **settings: Any) -> Plan:
    return plan(graph.info, method, settings={"widths": (16, 8), "epochs": 1} | settings)


@pytest.mark.parametrize(
    "settings",
    [{}, {"encoder": "mlp"}, {"widths": (8,)}, {"widths": (8, 6, 4), "output_bias": True}, {"batch_nodes": 100}],
    ids=str,
)
def test_parameters_are_counted_exactly(settings: dict[str, Any]) -> None:
    found = estimate(GRAPH, planned(**settings))
    assert found.parameters == sum(p.numel() for p in planned(**settings).build(GRAPH).parameters())
    assert found.seconds > 0 and found.memory > estimating.LIBRARIES
    assert f"{found.parameters:,} parameters" in found.describe(1)


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method_can_be_estimated(method: str) -> None:
    found = estimate(GRAPH, plan(GRAPH.info, method, settings={"epochs": 3} if METHODS[method].trained else {}))
    assert (found.parameters > 0) == METHODS[method].trained
    assert found.memory > 0 and found.seconds > 0


def test_memory_grows_with_every_size() -> None:
    def needed(graph: Graph = GRAPH, **settings: Any) -> int:
        return estimate(graph, planned(graph, **({"widths": (64, 64)} | settings))).memory

    assert needed(widths=(128, 128)) > needed() > needed(widths=(64,))
    assert needed(random_graph(n=600, p=12, m=900)) > needed()
    assert needed(random_graph(n=300, p=12, m=90_000)) > needed()
    double = plan(GRAPH.info, settings={"widths": (64, 64), "epochs": 1}, precision="float64")
    assert estimate(GRAPH, double).memory > needed()


def trials(values: dict[int, float]) -> list[estimating._Trial]:
    return [estimating._Trial(n, value, value, 0.0) for n, value in values.items()]


def test_a_line_is_continued_as_a_line_and_a_parabola_as_a_parabola() -> None:
    sizes = (1000, 2000, 4000)

    def continued(curve: Any, n: int) -> float:
        found = trials({size: curve(size) for size in sizes})
        return estimating._continued(found, [trial.memory for trial in found], n)

    assert continued(lambda n: 5 + 2e-3 * n, 10**6) == pytest.approx(5 + 2e3)
    assert continued(lambda n: 1 + 1e-6 * n * n, 10**6) == pytest.approx(1 + 1e6, rel=1e-6)
    assert continued(lambda n: 7.0, 10**5) > 7  # noise never makes a line fall
    assert continued(lambda n: 2e-3 * n * (1.03 if n == 4000 else 1), 10**6) < 2.2e3  # nor a parabola of a line


def test_trials_double_until_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def trial(graph: Graph, _: Plan) -> estimating._Trial:
        tried.append(graph.num_nodes)
        return estimating._Trial(graph.num_nodes, 10.0 * graph.num_nodes, 1e-4 * graph.num_nodes, 0.5)

    monkeypatch.setattr(estimating, "_trial", trial)
    n = 60_000
    edges = np.stack([np.arange(n), np.roll(np.arange(n), 1)])
    graph = Graph.of(edges=edges, features=np.ones((n, 8), dtype=np.float32))
    found = estimate(graph, planned(graph, epochs=10))
    assert tried == [512 * 2**i for i in range(len(tried))] and 1e-4 * tried[-2] <= estimating._TRIAL_SECONDS
    assert found.seconds == pytest.approx(10 * 1e-4 * n + 0.5 * n / tried[-1])
    assert found.memory == pytest.approx(estimating.SPARE * 10 * n + estimating.LIBRARIES, abs=1)
    assert estimate(graph, planned(graph, epochs=0)).seconds == 0


def test_time_of_walks_grows_in_proportion_to_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(*_: Any, **__: Any) -> list[float]:
        began = time.perf_counter()
        return [began + 1, began + 2, began + 3]

    monkeypatch.setattr(estimating, "_steps", steps)
    graph = random_graph(n=7000, p=4, m=9000)
    found = estimating._trials(graph, plan(graph.info, "node2vec", settings={"batch": 300}))
    assert [trial.nodes for trial in found] == [600, 1200, 2400]
    assert [trial.epoch for trial in found] == pytest.approx([2, 4, 8])
    small = random_graph(n=750, p=4, m=900)
    trial = estimating._trial(small, plan(small.info, "node2vec", settings={"batch": 300}))
    assert trial.epoch == pytest.approx(2.5)


def test_refusal_names_the_estimate_the_memory_and_what_to_do() -> None:
    free = 1 << 20
    with pytest.raises(InputError, match=r"needs about \d+ MiB .* 1 MiB of memory are free: .*widths \(now 64 32\)"):
        check_memory(GRAPH, planned(widths=(64, 32)), free)
    with pytest.raises(InputError, match=r"choose smaller values of batch_nodes \(now all\) or widths"):
        check_memory(GRAPH, planned(), free)
    with pytest.raises(InputError, match=r"choose smaller values of batch_nodes \(now 50\)"):
        check_memory(GRAPH, planned(batch_nodes=50), free)
    with pytest.raises(InputError, match=r"choose smaller values of widths \(now 16 8\)\.$"):
        check_memory(GRAPH, planned(method="gae"), free)
    with pytest.raises(InputError, match=r"choose smaller values of batch \(now 77\) or width \(now 33\)\.$"):
        check_memory(GRAPH, plan(GRAPH.info, "node2vec", settings={"batch": 77, "width": 33}), free)
    check_memory(GRAPH, planned(), 1 << 40)
    check_memory(GRAPH, planned())
    assert available_memory() > 0


def test_what_surely_fits_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "estimate", None)
    check_memory(GRAPH, planned(), 2 << 30)
    for name in METHODS:
        check_memory(GRAPH, plan(GRAPH.info, name), 16 << 30)


@pytest.mark.parametrize("method", list(METHODS))
def test_the_generous_bound_is_above_the_measured_memory(method: str) -> None:
    graph = random_graph(n=2000, p=64, m=8000)
    chosen = plan(graph.info, method)
    least, most = estimating._bounds(graph, chosen)
    assert most - least > estimate(graph, chosen).memory - estimating.LIBRARIES


def test_arrays_of_n_by_n_are_refused_without_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimating, "estimate", None)
    monkeypatch.setattr(METHODS["gae"], "dense_memory", classmethod(lambda *_: 1 << 45))
    with pytest.raises(InputError, match=r"needs about 32768.0 GiB"):
        check_memory(GRAPH, planned(method="gae"), 1 << 40)
