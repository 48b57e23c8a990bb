"""How the settings of SSGE move its clusters and its accuracy: writes results/clusters.json and the tables of the page.

Every setting is the paper's recipe of a graph with some entries changed. What a setting is chosen by are the columns of
validation nodes: accuracy of the paper's probe, NMI and ARI of clusters of all nodes, counted on validation nodes. The
NMI and ARI of all nodes stand beside them. With ``--tables`` nothing is run. CSR that the record has are kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ssge.datasets import facts_of, load
from ssge.evaluation import kmeans_labels, mean_std
from ssge.experiments.protocols import PROTOCOLS, evaluate
from ssge.experiments.recipes import load_recipe
from ssge.experiments.run import fit, resolve_config
from ssge.graph import Graph

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "results" / "clusters.json"
PAGE = ROOT / "docs" / "clustering.md"
BEGIN, END = "<!-- clusters: begin -->\n", "<!-- clusters: end -->\n"
SEEDS = range(3)
COLUMNS = ("accuracy, validation", "NMI, validation", "ARI, validation", "NMI, all", "ARI, all")

_SLOW = {"normalization": "in", "lr": 2.5e-4, "epochs": 120}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "citeseer": [
        {},
        {"uniformity_weight": 0.025},
        {"epochs": 40},
        {"offset": 1.0},
        {"offset": 2.0},
        {"offset": 3.0},
        {"normalization": "in"},
        {"normalization": "in", "offset": 2.0},
        {"normalization": "in", "uniformity_weight": 0.02, "epochs": 40},
        {**_SLOW, "uniformity_weight": 0.03, "weight_decay": 0.15},
        {**_SLOW, "uniformity_weight": 0.035, "weight_decay": 0.15},
        {**_SLOW, "uniformity_weight": 0.035, "weight_decay": 0.15, "offset": 1.0},
        {**_SLOW, "uniformity_weight": 0.035, "weight_decay": 0.15, "offset": 2.0},
        {**_SLOW, "uniformity_weight": 0.04, "weight_decay": 0.05},
        {**_SLOW, "uniformity_weight": 0.04, "weight_decay": 0.05, "offset": 1.0},
        {**_SLOW, "uniformity_weight": 0.04, "weight_decay": 0.05, "offset": 2.0},
        {**_SLOW, "uniformity_weight": 0.05, "weight_decay": 0.1, "offset": 2.0},
        {**_SLOW, "epochs": 80, "offset": 2.0},
    ],
    "pubmed": [
        {"epochs": 0},
        {"epochs": 10},
        {"epochs": 20},
        {"epochs": 40},
        {},
        {"epochs": 10, "normalization": "in"},
        {"epochs": 40, "normalization": "in"},
        {"offset": 2.0},
    ],
    "cora": [{}, {"offset": 1.0}, {"offset": 2.0}],
}


def title(changes: dict[str, Any]) -> str:
    """Name a setting by what it changes."""
    return ", ".join(f"{name} {value}" for name, value in changes.items()) or "as in the paper"


def row(graph: Graph, changes: dict[str, Any]) -> list[list[float]]:
    """Return the columns of a setting, in per cent, for each seed."""
    assert graph.labels is not None
    recipe = load_recipe(f"ssge/{graph.name.lower()}")
    config = resolve_config(recipe.method, recipe.config, changes)
    protocol = PROTOCOLS["paper"].model_copy(update={"repeats": 3, "cluster_seeds": 1})
    columns = []
    for seed in SEEDS:
        run = fit(graph, recipe.method, config, seed=seed, quiet=True)
        vectors = run.embedding.vectors
        scores = evaluate(vectors, graph, protocol, run.record.scale, facts=facts_of(recipe.dataset))
        clusters = [kmeans_labels(vectors, graph.num_classes, start) for start in range(3)]
        agreements = [
            np.mean([score(graph.labels[nodes], found[nodes]) for found in clusters])
            for nodes in (graph.splits[0].valid, slice(None))
            for score in (normalized_mutual_info_score, adjusted_rand_score)
        ]
        columns.append([100 * float(value) for value in (np.mean(scores.valid_accuracies), *agreements)])
    return columns


def table(rows: dict[str, list[list[float]]]) -> str:
    """Return the settings of one graph in Markdown."""
    lines = ["| change | " + " | ".join(f"{name} %" for name in COLUMNS) + " |", "| --- |" + " ---: |" * len(COLUMNS)]
    for name, seeds in rows.items():
        figures = [mean_std(list(column)) for column in zip(*seeds, strict=True)]
        lines.append(f"| {name} | " + " | ".join(f"{f.mean:.1f} ± {f.std:.1f}" for f in figures) + " |")
    return "\n".join(lines) + "\n"


def tables(found: dict[str, dict[str, list[list[float]]]]) -> str:
    """Return the tables of all graphs."""
    return "\n".join(f"**{dataset}**\n\n{table(rows)}" for dataset, rows in found.items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--tables", action="store_true", help="make the tables from the committed record, run nothing")
    options = parser.parse_args()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for dataset in () if options.tables else options.datasets:
        graph, known = load(dataset), record.get(dataset, {})
        rows: dict[str, list[list[float]]] = {}
        for changes in SETTINGS[dataset]:
            name = title(changes)
            rows[name] = known.get(name) or row(graph, changes)
            print(dataset, name, np.round(np.mean(rows[name], axis=0), 1), flush=True)
            record[dataset] = {**known, **rows} if len(rows) < len(SETTINGS[dataset]) else rows
            RECORD.write_text(json.dumps(record, indent=1) + "\n")
    head, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(head + BEGIN + tables(record) + END + rest.split(END)[1])
