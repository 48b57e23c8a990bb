"""How much a choice of the epoch on test nodes adds: MERIT on Cora, the table of docs/baselines.md.

The released code of MERIT scores every epoch by scikit-learn's logistic regression and reports the best test accuracy.
This script trains longer than the recipe, scores every epoch in the same way, and compares that choice with an epoch
fixed in advance and with the one that is best on validation nodes. Nothing here is a result: no recipe rests on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

import pages
from pages import Record, spread, where
from ssge.datasets import load
from ssge.ops.random import Key
from ssge.runs.recipes import load_recipe
from ssge.training.checkpoint import build
from ssge.training.trainer import train

RECIPE = "merit/cora-fast"
EPOCHS, SEEDS = 100, range(3)


def measure(seed: int) -> dict[str, list[float]]:
    """Train with one seed; return the accuracies % on validation and on test nodes after each epoch."""
    recipe = load_recipe(RECIPE)
    graph = load(recipe.dataset)
    assert graph.labels is not None
    labels, split = graph.labels, graph.splits[0]
    method = build(recipe.method, recipe.config | {"epochs": EPOCHS}, graph.info, seed, torch.float32)
    prepared = method.prepare(graph.without_labels())
    scores: dict[str, list[float]] = {"valid": [], "test": []}

    def score(line: dict[str, float]) -> None:
        method.eval()
        with torch.no_grad():
            vectors = method.encode(prepared).numpy()
        probe = LogisticRegression(max_iter=1000).fit(vectors[split.train], labels[split.train])
        for part, nodes in (("valid", split.valid), ("test", split.test)):
            scores[part].append(100 * float(probe.score(vectors[nodes], labels[nodes])))

    train(method, prepared, Key(seed), observers=[score])
    return scores


def block(record: Record) -> str:
    """Return the table: test accuracy of three ways to choose the epoch."""
    found: list[dict[str, Any]] = record.figures
    last = int(load_recipe(RECIPE).config["epochs"])
    chosen = {
        f"fixed: epoch {last}, as in `{RECIPE}`": [one["test"][last - 1] for one in found],
        f"fixed: epoch {len(found[0]['test'])}": [one["test"][-1] for one in found],
        "best on validation nodes": [one["test"][int(np.argmax(one["valid"]))] for one in found],
        "best on test nodes, as released": [max(one["test"]) for one in found],
    }
    lines = [(name, spread(values, 2)) for name, values in chosen.items()]
    table = pages.table(("choice of the epoch", "test accuracy %"), lines)
    return f"{table}\nMERIT on Cora, {len(found)} encoder seeds, {where(record)}.\n"


if __name__ == "__main__":
    torch.set_num_threads(1)
    pages.write("peeking", [measure(seed) for seed in SEEDS], [RECIPE])
