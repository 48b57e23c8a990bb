"""Estimates: parameters exactly, memory as a process of its own measures it, and the refusal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from graphs import random_graph
from ssge.errors import InputError
from ssge.experiments.estimate import available_memory, check_memory, describe, estimate, training_memory
from ssge.experiments.run import resolve_config
from ssge.graph import Graph
from ssge.training.checkpoint import build

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

encoder, *widths = sys.argv[1:]
settings = {"encoder": encoder, "widths": tuple(map(int, widths))}
graph = load("sbm", nodes=20_000, degree=10, features=64).without_labels()
learn(load("karate").without_labels(), widths=(4, 4))
gc.collect()
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
learn(graph, **settings)
print(resident("VmHWM") - before, training_memory(graph, "ssge", resolve_config("ssge", settings)))
"""


@pytest.mark.parametrize("words", [("gcn", "256", "256"), ("mlp", "256", "128")])
def test_memory_is_what_a_process_takes(words: tuple[str, ...]) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("measured on Linux only")
    done = subprocess.run([sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=True)
    measured, estimated = (int(word) for word in done.stdout.split())
    assert estimated == pytest.approx(measured, rel=0.3)


@pytest.mark.parametrize(
    "settings", [{}, {"encoder": "mlp"}, {"widths": (8,)}, {"widths": (8, 6, 4), "output_bias": True}]
)
def test_parameters_are_counted_exactly(settings: dict[str, object]) -> None:
    config = resolve_config("ssge", {"widths": (16, 8), "epochs": 1} | settings)
    found = estimate(GRAPH, "ssge", config)
    built = build("ssge", config.model_dump(), GRAPH.info)
    assert found.parameters == sum(parameter.numel() for parameter in built.parameters())
    assert found.seconds is not None
    assert found.seconds > 0
    assert f"{found.parameters:,} parameters" in describe(found, 1)


def test_time_of_a_graph_too_large_to_try_is_continued_from_smaller_ones() -> None:
    n = 60_000
    edges = np.stack([np.arange(n), np.roll(np.arange(n), 1)])
    features = sp.random_array((n, 64), density=0.05, rng=np.random.default_rng(0), format="csr", dtype=np.float32)
    graph = Graph.of(edges=edges, features=features)
    one, two = (
        estimate(graph, "ssge", resolve_config("ssge", {"widths": (64, 64), "epochs": k})).seconds for k in (1, 100)
    )
    assert one is not None
    assert two is not None
    assert two > 10 * one > 0


def test_memory_grows_with_every_size() -> None:
    def needed(graph: Graph = GRAPH, **settings: object) -> int:
        return training_memory(graph, "ssge", resolve_config("ssge", {"widths": (64, 64)} | settings))

    assert needed(widths=(128, 128)) > needed() > needed(widths=(64,))
    assert needed(random_graph(n=600, m=900)) > needed()
    assert needed(random_graph(n=300, m=90_000)) > needed()
    assert training_memory(GRAPH, "ssge", resolve_config("ssge"), "float64") > training_memory(
        GRAPH, "ssge", resolve_config("ssge")
    )


def test_refusal_names_the_estimate_the_memory_and_what_to_do() -> None:
    config = resolve_config("ssge", {"widths": (64, 32)})
    with pytest.raises(InputError, match=r"needs about \d+ MiB .* 1 MiB of memory are free: .*widths \(now 64 32\)"):
        check_memory(GRAPH, "ssge", config, available=1 << 20)
    check_memory(GRAPH, "ssge", config, available=1 << 40)
    check_memory(GRAPH, "ssge", config)
    free = available_memory()
    assert free is None or free > 0
