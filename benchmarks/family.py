"""What an epoch of the decorrelation methods costs beside one of SSGE, at equal widths and equal drop rates.

Prints a table and writes results/family.json. One process runs the methods in turn on each graph, several times over;
only ratios within it mean anything. Widths and drop rates are those of SSGE's recipe.

Run it on a quiet machine; ``--only`` takes some of the graphs.
"""

from __future__ import annotations

import argparse
import json
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from ssge.datasets import load
from ssge.experiments.recipes import load_recipe
from ssge.methods import METHODS
from ssge.records import machine
from ssge.training.checkpoint import build
from ssge.training.trainer import train

RECORD = Path(__file__).resolve().parent.parent / "results" / "family.json"
ROUNDS = {"cora": 10, "pubmed": 5, "computer": 3}
EQUAL = ("widths", "edge_drop", "feature_mask")
OTHERS = ("cca_ssg", "g_bt")
EPOCHS = 5


def seconds(name: str, graph: Any, config: dict[str, Any]) -> float:
    """Train for some epochs and return the median of the seconds of each but the first."""
    method = build(name, config | {"epochs": EPOCHS}, graph.info, 0, torch.float32)
    history = train(method, graph).history
    return statistics.median(after["seconds"] - before["seconds"] for before, after in pairwise(history))


def measure(name: str) -> dict[str, Any]:
    """Time all methods on a graph in turn, and return their seconds and the ratios to SSGE's."""
    graph, recipe = load(name).without_labels(), load_recipe(f"ssge/{name}").config
    shared = {key: recipe[key] for key in EQUAL}
    configs = {"ssge": recipe} | dict.fromkeys(OTHERS, shared)
    rounds = [{method: seconds(method, graph, configs[method]) for method in configs} for _ in range(ROUNDS[name])]
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
