"""What the bias in the released encoder's last layer does to clustering: prints a table, writes results/bias.json.

The recipes are trained as the released code trains them (``output_bias``, eigenvalues clamped at 1e-8). An embedding is
clustered as it is and with the bias subtracted: the two differ by one constant vector, to which the objective is blind.
The second is clustered once more without scaling rows to unit norm: what a long shift comes to in the end.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ssge.datasets import load
from ssge.evaluation import cluster, mean_std
from ssge.experiments.recipes import load_recipe
from ssge.experiments.run import fit, resolve_config
from ssge.graph import Graph

RECORD = Path(__file__).resolve().parent.parent / "results" / "bias.json"
DATASETS = ("cora", "citeseer", "pubmed")
RELEASED = {"output_bias": True, "eigenvalue_floor": 1e-8, "floor_mode": "clamp"}
SEEDS = range(3)
CLUSTERINGS = range(3)


def scores(vectors: NDArray[np.floating[Any]], graph: Graph) -> tuple[float, float]:
    """Return NMI and ARI of k-means on rows of unit norm."""
    assert graph.labels is not None
    score = cluster(vectors, graph.labels, seeds=CLUSTERINGS)
    return score.nmi, score.ari


def scores_of_any_norm(vectors: NDArray[np.floating[Any]], graph: Graph) -> tuple[float, float]:
    """Return NMI and ARI of k-means on the rows as they are."""
    assert graph.labels is not None
    labels, classes = graph.labels, graph.labels.max() + 1
    found = [KMeans(classes, n_init=10, random_state=seed).fit_predict(vectors) for seed in CLUSTERINGS]
    nmi = np.mean([normalized_mutual_info_score(labels, clusters) for clusters in found])
    return float(nmi), float(np.mean([adjusted_rand_score(labels, clusters) for clusters in found]))


def measure(dataset: str) -> dict[str, list[Any]]:
    graph = load(dataset)
    recipe = load_recipe(f"ssge/{dataset}")
    config = resolve_config(recipe.method, recipe.config, RELEASED)
    found: dict[str, list[Any]] = {
        "with its bias": [],
        "bias subtracted": [],
        "bias subtracted, rows of any norm": [],
        "size of the bias": [],
    }
    for seed in SEEDS:
        run = fit(graph, recipe.method, config, seed=seed, quiet=True)
        vectors = run.embedding.vectors
        bias = run.method.encoder.affine[-1].bias.detach().numpy() * run.record.scale  # type: ignore[union-attr]
        spread = np.sqrt(np.square(vectors - vectors.mean(axis=0)).sum(axis=1).mean())
        found["with its bias"].append(scores(vectors, graph))
        found["bias subtracted"].append(scores(vectors - bias, graph))
        found["bias subtracted, rows of any norm"].append(scores_of_any_norm(vectors - bias, graph))
        found["size of the bias"].append(float(np.linalg.norm(bias) / spread))
        print(dataset, seed, *(f"{name}: {values[-1]}" for name, values in found.items()), flush=True)
    return found


def table(found: dict[str, dict[str, list[Any]]]) -> str:
    """Return the figures in Markdown; the size of the bias is relative to the spread of the embedding."""
    lines = ["| | " + " | ".join(f"{d} NMI % / ARI %" for d in found) + " |", "| --- |" + " ---: |" * len(found)]
    for name in found[DATASETS[0]]:
        cells = []
        for values in found.values():
            if name == "size of the bias":
                cells.append(f"{mean_std(values[name]).mean:.2f}")
            else:
                nmi, ari = (mean_std([100 * v[i] for v in values[name]]) for i in (0, 1))
                cells.append(f"{nmi.mean:.1f} ± {nmi.std:.1f} / {ari.mean:.1f} ± {ari.std:.1f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    measured = {dataset: measure(dataset) for dataset in DATASETS}
    RECORD.write_text(json.dumps(measured, indent=1) + "\n")
    print(table(measured))
