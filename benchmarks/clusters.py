"""How the settings of SSGE move its clusters and its accuracy: the tables of settings in docs/clustering.md.

Every setting is the paper's recipe of a graph with some entries changed. What a setting is chosen by are the columns of
validation nodes: accuracy of the paper's probe, NMI and ARI of clusters of all nodes, counted on validation nodes. The
NMI and ARI of all nodes stand beside them. Rows of a record that is not stale are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from pages import Record, asked, figures_of, spread, write
from pages import table as markdown
from ssge.datasets import facts_of, load
from ssge.evaluation import kmeans
from ssge.experiments.protocols import PROTOCOLS, evaluate
from ssge.runs.fit import fit
from ssge.runs.plan import plan

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


def row(dataset: str, changes: dict[str, Any]) -> list[list[float]]:
    """Return the columns of a setting, in per cent, for each seed."""
    graph = load(dataset)
    labels = graph.labels
    assert labels is not None
    protocol = PROTOCOLS["paper"].model_copy(update={"repeats": 3, "cluster_seeds": 1})
    columns = []
    for seed in SEEDS:
        run = fit(graph, plan(graph.info, recipe=f"ssge/{dataset}", settings=changes, seed=seed))
        vectors = run.embedding.vectors
        scores = evaluate(vectors, graph, protocol, run.record.scale, facts=facts_of(dataset))
        clusters = [kmeans(vectors, graph.num_classes, start).cluster for start in range(3)]
        agreements = [
            np.mean([score(labels[nodes], found[nodes]) for found in clusters])
            for nodes in (graph.splits[0].valid, slice(None))
            for score in (normalized_mutual_info_score, adjusted_rand_score)
        ]
        columns.append([100 * float(value) for value in (np.mean(scores.valid_accuracies), *agreements)])
    return columns


def block(record: Record) -> str:
    """Return the tables of all graphs."""
    headings = ("change", *(f"{name} %" for name in COLUMNS))
    tables = {
        dataset: [(name, *map(spread, zip(*seeds, strict=True))) for name, seeds in rows.items()]
        for dataset, rows in record.figures.items()
    }
    return "\n".join(f"**{dataset}**\n\n{markdown(headings, rows)}" for dataset, rows in tables.items())


if __name__ == "__main__":
    only = asked(__doc__, SETTINGS)
    record = {} if only else figures_of("clusters")
    for dataset in only or SETTINGS:
        rows = record.setdefault(dataset, {})
        for changes in SETTINGS[dataset]:
            if title(changes) not in rows:
                rows[title(changes)] = row(dataset, changes)
                print(dataset, title(changes), np.round(np.mean(rows[title(changes)], axis=0), 1), flush=True)
                if not only:
                    write("clusters", record, [f"ssge/{name}" for name in record])
