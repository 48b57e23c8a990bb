"""Where to cut off the root of an eigenvalue: validation accuracy, clustering and rank for several floors.

Prints a table and writes results/floor.json. Accuracies are those of the validation nodes; test nodes play no part.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ssge.datasets import load
from ssge.evaluation import LbfgsProbe, cluster, linear_probe, mean_std
from ssge.experiments.recipes import load_recipe
from ssge.experiments.run import fit, resolve_config

RECORD = Path(__file__).resolve().parent.parent / "results" / "floor.json"
DATASETS = ("cora", "citeseer")
FLOORS: tuple[tuple[float, str], ...] = (
    (1e-8, "clamp"),
    (1e-4, "tangent"),
    (1e-2, "tangent"),
    (0.1, "tangent"),
    (0.3, "tangent"),
)
SEEDS = range(5)

if __name__ == "__main__":
    found: list[dict[str, Any]] = []
    for dataset in DATASETS:
        graph = load(dataset)
        assert graph.labels is not None
        recipe = load_recipe(f"ssge/{dataset}")
        for floor, mode in FLOORS:
            config = resolve_config(recipe.method, recipe.config, {"eigenvalue_floor": floor, "floor_mode": mode})
            scores = []
            for seed in SEEDS:
                run = fit(graph, recipe.method, config, seed=seed, quiet=True)
                probe = linear_probe(run.embedding.vectors, graph.labels, graph.splits[0], LbfgsProbe())
                groups = cluster(run.embedding.vectors, graph.labels, seeds=range(3))
                rank = run.record.final["effective_rank"]
                scores.append((100 * probe.valid_accuracy, 100 * groups.nmi, 100 * groups.ari, rank))
            line = [mean_std(column) for column in np.array(scores).T.tolist()]
            found.append({"dataset": dataset, "floor": floor, "mode": mode, "scores": scores})
            cells = "  ".join(f"{mean:6.2f} ± {deviation:4.2f}" for mean, deviation in line)
            print(f"{dataset:9s} {floor:<6g} {mode:8s} valid, NMI, ARI, rank: {cells}", flush=True)
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(found, indent=1) + "\n")
