"""Time from the start of training to the accuracy of the paper's recipe: our fast recipes against the best reference.

For each graph one process trains, one after another: the quickest form of the reference (results/speed.json names it)
with the paper's settings and all its epochs, then our fast recipe, or the paper's where there is none, in float32 and
in bf16, each twice; the least time counts. All times are from the loaded graph to the trained weights, ours with
the preparation of the graph. Accuracies are of the converged probe on the paper's splits.

Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pages import Record

GRAPHS = ("cora", "citeseer", "pubmed", "computer", "coauthor_cs")
REPEATS = 2


def measure(name: str, form: Any) -> dict[str, Any]:
    """Train the reference and ours on one graph."""
    import torch

    from reference import Reference
    from ssge.datasets import load
    from ssge.ops.random import Key
    from ssge.runs.plan import plan
    from ssge.runs.recipes import load_recipe, recipes
    from ssge.training.allocator import kept_memory
    from ssge.training.trainer import train

    graph = load(name).without_labels()
    paper = load_recipe(f"ssge/{name}").config
    torch.manual_seed(0)
    began = time.perf_counter()
    reference = Reference(graph, paper, form)
    for _ in range(paper["epochs"]):
        reference.step()
    found: dict[str, Any] = {"form": form, "reference_seconds": time.perf_counter() - began}
    found["reference_accuracy"] = accuracy(name, reference.embed().numpy())
    recipe = f"ssge/{name}-fast" if f"ssge/{name}-fast" in recipes() else f"ssge/{name}"
    found["recipe"] = recipe
    for precision in ("float32", "bf16"):
        seconds = []
        for seed in range(REPEATS):
            began = time.perf_counter()
            with kept_memory():
                method = plan(graph.info, recipe=recipe, seed=seed, precision=precision).build(graph)
                trained = train(method, method.prepare(graph), Key(seed))
            seconds.append(time.perf_counter() - began)
        assert trained.embedding is not None
        found[precision] = {"seconds": min(seconds), "accuracy": accuracy(name, np.asarray(trained.embedding))}
    return found


def accuracy(name: str, embedding: Any) -> float:
    """Return the mean test accuracy of the converged probe, in percent."""
    from ssge.datasets import facts_of, load, splits_of
    from ssge.evaluation import LbfgsProbe, linear_probes

    graph = load(name)
    assert graph.labels is not None
    splits, _ = splits_of(graph, "paper", 1, facts_of(name))
    scores = linear_probes(embedding, graph.labels, splits, LbfgsProbe(), list(range(len(splits))))
    return 100 * statistics.fmean(score.accuracy for score in scores)


def block(record: Record) -> str:
    """Return the table and the geometric means."""
    from pages import table, where

    lines, ratios = [], {"float32": list[float](), "bf16": list[float]()}
    for name, found in record.figures.items():
        cells = [name, found["form"], f"{found['reference_seconds']:.1f}", f"{found['reference_accuracy']:.1f}"]
        cells.append(found["recipe"].split("/")[1])
        for precision, kept in ratios.items():
            kept.append(found["reference_seconds"] / found[precision]["seconds"])
            cells += [f"{found[precision]['seconds']:.1f}", f"{found[precision]['accuracy']:.1f}", f"{kept[-1]:.1f}"]
        lines.append(cells)
    headings = (
        "graph", "best reference", "seconds", "accuracy %", "our recipe", "float32: seconds", "accuracy %",
        "times faster", "bf16: seconds", "accuracy %", "times faster",
    )  # fmt: skip
    means = ", ".join(f"{statistics.geometric_mean(kept):.1f} in {precision}" for precision, kept in ratios.items())
    return table(headings, lines, left=(0, 1, 4)) + f"\nGeometric mean: {means} times faster; {where(record)}.\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=GRAPHS, help="a partial run; writes no record")
    parser.add_argument("--graph", help=argparse.SUPPRESS)
    parser.add_argument("--form", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.graph:
        print(json.dumps(measure(options.graph, options.form)))
        return
    from pages import RESULTS, write

    speed = json.loads((RESULTS / "speed.json").read_text())["figures"]
    found = {}
    for name in options.only or GRAPHS:
        form = speed[name].get("best_reference", "released") if name != "coauthor_cs" else "gather"
        words = [sys.executable, __file__, "--graph", name, "--form", form]
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        found[name] = json.loads(done.stdout.splitlines()[-1])
        print(name, json.dumps(found[name]), flush=True)
    if not options.only:
        write("training_time", found, [line["recipe"] for line in found.values()])


if __name__ == "__main__":
    main()
