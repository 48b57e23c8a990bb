"""What the bias in the released encoder's last layer does to clustering: the first table of docs/clustering.md.

The recipes are trained as the released code trains them (``output_bias``, eigenvalues clamped at 1e-8). An embedding is
clustered as it is and with the bias subtracted: the two differ by one constant vector, to which the objective is blind.
The second is clustered once more without scaling rows to unit norm: what a long shift comes to in the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from pages import Record, asked, spread, write
from pages import table as markdown
from ssge.datasets import load
from ssge.evaluation import cluster, mean_std
from ssge.graph import Graph
from ssge.runs.fit import fit
from ssge.runs.plan import plan

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
    found: dict[str, list[Any]] = {}
    for seed in SEEDS:
        run = fit(graph, plan(graph.info, recipe=f"ssge/{dataset}", settings=RELEASED, seed=seed))
        vectors = run.embedding.vectors
        bias = run.method.encoder.affine[-1].bias.detach().numpy() * run.record.scale  # type: ignore[index, union-attr]
        size = np.sqrt(np.square(vectors - vectors.mean(axis=0)).sum(axis=1).mean())
        for name, value in {
            "with its bias": scores(vectors, graph),
            "bias subtracted": scores(vectors - bias, graph),
            "bias subtracted, rows of any norm": scores_of_any_norm(vectors - bias, graph),
            "size of the bias": float(np.linalg.norm(bias) / size),
        }.items():
            found.setdefault(name, []).append(value)
            print(dataset, seed, name, value, flush=True)
    return found


def block(record: Record) -> str:
    """Return the table; the size of the bias is relative to the spread of the embedding."""

    def cell(name: str, values: list[Any]) -> str:
        if name == "size of the bias":
            return f"{mean_std(values).mean:.2f}"
        return " / ".join(spread([100 * value[i] for value in values]) for i in (0, 1))

    found = record.figures
    rows = [(name, *(cell(name, one[name]) for one in found.values())) for name in next(iter(found.values()))]
    return markdown(("", *(f"{dataset} NMI % / ARI %" for dataset in found)), rows)


if __name__ == "__main__":
    only = asked(__doc__, DATASETS)
    measured = {dataset: measure(dataset) for dataset in only or DATASETS}
    if not only:
        write("bias", measured, [f"ssge/{dataset}" for dataset in DATASETS])
