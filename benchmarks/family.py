"""What an epoch of the decorrelation methods costs beside one of SSGE, at equal widths and equal drop rates.

Prints a table and writes results/family.json. One process takes per epoch of each method in turn, many times over, so
that what disturbs the machine disturbs all alike; only ratios mean anything. Widths and drop rates are those of SSGE's
recipe.

Run it on a quiet machine; ``--only`` takes some of the graphs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from ssge.datasets import load
from ssge.experiments.recipes import load_recipe
from ssge.methods import METHODS
from ssge.records import machine
from ssge.training.checkpoint import build
from ssge.training.memory import kept_memory
from ssge.training.trainer import step

RECORD = Path(__file__).resolve().parent.parent / "results" / "family.json"
ROUNDS = {"cora": 100, "pubmed": 30, "computer": 30}
EQUAL = ("widths", "edge_drop", "feature_mask")
OTHERS = ("cca_ssg", "g_bt")


class Training:
    """A method in training, epoch by epoch."""

    def __init__(self, name: str, graph: Any, config: dict[str, Any]) -> None:
        self.method = build(name, config, graph.info, 0, torch.float32)
        self.view, self.optimizer = self.method.prepare(graph), self.method.optimizer()
        self.generator = torch.Generator().manual_seed(0)

    def epoch(self) -> float:
        """Train for one epoch and return its seconds."""
        began = time.perf_counter()
        for batch in self.method.batches(self.view, self.generator):
            step(self.method, batch, self.optimizer, self.generator)
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
        "threads": torch.get_num_threads(),
        "widths": shared["widths"],
        "seconds": {method: statistics.median(r[method] for r in rounds) for method in configs},
        "ratios": {method: statistics.median(r[method] / r["ssge"] for r in rounds) for method in OTHERS},
    }


def table(found: dict[str, Any]) -> str:
    """Return the figures in Markdown."""
    titles = [METHODS[method].title for method in OTHERS]
    lines = ["| graph | widths | SSGE, ms | " + " | ".join(f"{title} / SSGE" for title in titles) + " |"]
    lines.append("| --- | --- | ---: |" + " ---: |" * len(titles))
    for name, line in found.items():
        widths = "-".join(map(str, line["widths"]))
        ratios = " | ".join(f"{line['ratios'][method]:.2f}" for method in OTHERS)
        lines.append(f"| {name} | {widths} | {1000 * line['seconds']['ssge']:.0f} | {ratios} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="graphs, separated by commas; writes no record")
    options = parser.parse_args()
    found = {name: measure(name) for name in (options.only.split(",") if options.only else ROUNDS)}
    print(table(found))
    if not options.only:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps({"machine": machine(), "graphs": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
