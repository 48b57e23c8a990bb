"""What an epoch of the decorrelation methods costs beside one of SSGE, at equal widths and equal drop rates.

One process takes an epoch of each method in turn, many times over, so that what disturbs the machine disturbs all
alike; only ratios mean anything. Widths and drop rates are those of SSGE's recipe. Run it on a quiet machine.
"""

from __future__ import annotations

import statistics
import time
from itertools import count
from typing import Any

import torch

from pages import Record, asked, write
from pages import table as markdown
from ssge.datasets import load
from ssge.methods import METHODS
from ssge.ops.random import Key
from ssge.runs.recipes import load_recipe
from ssge.training.allocator import kept_memory
from ssge.training.batches import batches
from ssge.training.checkpoint import build
from ssge.training.trainer import step

ROUNDS = {"cora": 100, "pubmed": 30, "computer": 30}
EQUAL = ("widths", "edge_drop", "feature_mask")
OTHERS = ("cca_ssg", "g_bt")


class Training:
    """A method in training, epoch by epoch."""

    def __init__(self, name: str, graph: Any, config: dict[str, Any]) -> None:
        self.method = build(name, config, graph.info, 0, torch.float32)
        self.view, self.optimizer = self.method.prepare(graph), self.method.optimizer()
        self.keys = (Key(0).fold_in("train", epoch) for epoch in count(1))

    def epoch(self) -> float:
        """Train for one epoch and return its seconds."""
        began = time.perf_counter()
        for batch, key in batches(self.method, self.view, next(self.keys)):
            step(self.method, batch, self.optimizer, key)
        return time.perf_counter() - began


def measure(name: str) -> dict[str, Any]:
    """Time all methods on a graph in turn, and return their seconds and the ratios to SSGE's."""
    graph, recipe = load(name).without_labels(), load_recipe(f"ssge/{name}").config
    shared = {key: recipe[key] for key in EQUAL}
    configs = {"ssge": recipe} | dict.fromkeys(OTHERS, shared)
    trainings = {method: Training(method, graph, config) for method, config in configs.items()}
    with kept_memory():
        rounds = [{method: training.epoch() for method, training in trainings.items()} for _ in range(ROUNDS[name] + 2)]
    del rounds[:2]  # in which memory is found
    return {
        "widths": shared["widths"],
        "seconds": {method: statistics.median(r[method] for r in rounds) for method in configs},
        "ratios": {method: statistics.median(r[method] / r["ssge"] for r in rounds) for method in OTHERS},
    }


def block(record: Record) -> str:
    """Return the table."""
    headings = ("graph", "widths", "SSGE, ms", *(f"{METHODS[method].title} / SSGE" for method in OTHERS))
    rows = []
    for name, line in record.figures.items():
        ratios = [f"{line['ratios'][method]:.2f}" for method in OTHERS]
        rows.append((name, "-".join(map(str, line["widths"])), f"{1000 * line['seconds']['ssge']:.0f}", *ratios))
    return markdown(headings, rows, (0, 1))


if __name__ == "__main__":
    only = asked(__doc__, ROUNDS)
    found = {name: measure(name) for name in only or ROUNDS}
    print(block(Record(figures=found)))
    if not only:
        write("family", found, [f"ssge/{name}" for name in found])
