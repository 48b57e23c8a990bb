"""Which score of an embedding finds planted outliers: prints a table.

Three kinds are planted, each into a copy of its own with 5 % of the nodes changed:

- attribute: the features of the chosen nodes are dealt out among them anew, so that none appears twice;
- clique: groups of twelve nodes drawn at random are joined, each with each;
- rewired: every edge leads to a node drawn at random.

The area under the ROC curve tells how often an outlier scores above a node left as it was; 50 is chance. The scores
are also given the untrained encoder and the raw features (reduced to 64 components), which cannot know of edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import LedoitWolf
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from pages import Record, asked, spread, write
from pages import table as markdown
from ssge.datasets import load
from ssge.experiments import references
from ssge.graph import Graph
from ssge.methods import METHODS
from ssge.runs.fit import fit
from ssge.runs.plan import Plan, resolve_config
from ssge.tasks.outliers import outlier_scores

DATASETS = ("sbm:nodes=2000,classes=5", "cora", "imports")
SHARE = 0.05
CLIQUE = 12
SEEDS = range(3)
SETTINGS = {"epochs": 50, "widths": (128, 128)}

Vectors = NDArray[np.floating[Any]]
Planted = tuple[Graph, NDArray[np.int64]]


def attribute(graph: Graph, rng: np.random.Generator) -> Planted:
    chosen = rng.choice(graph.num_nodes, round(SHARE * graph.num_nodes), replace=False)
    source = np.arange(graph.num_nodes)
    source[chosen] = np.roll(chosen, 1)
    return replace(graph, features=graph.features[source]), chosen


def clique(graph: Graph, rng: np.random.Generator) -> Planted:
    groups = max(1, round(SHARE * graph.num_nodes / CLIQUE))
    chosen = rng.choice(graph.num_nodes, (groups, CLIQUE), replace=False)
    first, second = np.triu_indices(CLIQUE, 1)
    added = np.stack([chosen[:, first].ravel(), chosen[:, second].ravel()])
    return with_edges(graph, np.concatenate([graph.edges, added], axis=1)), chosen.ravel()


def rewired(graph: Graph, rng: np.random.Generator) -> Planted:
    connected = np.unique(graph.edges)
    chosen = rng.choice(connected, round(SHARE * graph.num_nodes), replace=False)
    source, target = graph.edges[:, graph.edges[0] < graph.edges[1]]
    moved = np.isin(source, chosen) | np.isin(target, chosen)
    anchor = np.where(np.isin(source, chosen), source, target)
    drawn = rng.integers(graph.num_nodes, size=source.size)
    edges = np.stack([np.where(moved, anchor, source), np.where(moved, drawn, target)])
    return with_edges(graph, edges), chosen


def with_edges(graph: Graph, edges: NDArray[np.int64]) -> Graph:
    return Graph.of(edges=edges, features=graph.features, name=graph.name)


def mahalanobis(vectors: Vectors) -> Vectors:
    """Return the squared Mahalanobis distance from the mean, by a covariance shrunk as Ledoit and Wolf do."""
    return np.asarray(LedoitWolf().fit(vectors).mahalanobis(vectors))


def lof(vectors: Vectors) -> Vectors:
    factor = LocalOutlierFactor(n_neighbors=20).fit(vectors)
    return -np.asarray(factor.negative_outlier_factor_)


def norm(vectors: Vectors) -> Vectors:
    return np.asarray(np.linalg.norm(vectors - vectors.mean(axis=0), axis=1))


PLANT: dict[str, Callable[[Graph, np.random.Generator], Planted]] = {
    "attribute": attribute,
    "clique": clique,
    "rewired": rewired,
}
SCORES: dict[str, Callable[[Vectors], Vectors]] = {
    "neighbor distance": outlier_scores,
    "neighbor distance, 5": lambda vectors: outlier_scores(vectors, 5),
    "neighbor distance, 50": lambda vectors: outlier_scores(vectors, 50),
    "mahalanobis": mahalanobis,
    "local outlier factor": lof,
    "norm": norm,
}


def embeddings(graph: Graph, seed: int) -> dict[str, Vectors]:
    planned = Plan(METHODS["ssge"], resolve_config("ssge", SETTINGS), seed)
    return {
        "ssge": fit(graph, planned).embedding.vectors,
        "untrained encoder": references.untrained_encoder(graph, planned),
        "raw features": TruncatedSVD(64, random_state=0).fit_transform(graph.features),
    }


def measure(dataset: str) -> dict[str, dict[str, list[float]]]:
    """Return the AUC of each kind under each "score on embedding", a value for each seed."""
    clean = load(dataset).without_labels()
    found: dict[str, dict[str, list[float]]] = {}
    for kind, plant in PLANT.items():
        for seed in SEEDS:
            graph, chosen = plant(clean, np.random.default_rng(seed))
            outlier = np.isin(np.arange(graph.num_nodes), chosen)
            for where, vectors in embeddings(graph, seed).items():
                for name, score in SCORES.items():
                    value = float(roc_auc_score(outlier, score(vectors)))
                    found.setdefault(f"{name} on {where}", {}).setdefault(kind, []).append(value)
    return found


def block(record: Record) -> str:
    """Return the table."""
    found = record.figures
    columns = [(dataset, kind) for dataset in found for kind in PLANT]
    rows = []
    for name in next(iter(found.values())):
        scores = [[100 * value for value in found[dataset][name][kind]] for dataset, kind in columns]
        rows.append((name, *map(spread, scores), f"{np.mean([np.mean(one) for one in scores]):.1f}"))
    return markdown(("AUC %", *(f"{d.split(':')[0]} {kind}" for d, kind in columns), "mean"), rows)


if __name__ == "__main__":
    only = asked(__doc__, DATASETS)
    measured = {dataset: measure(dataset) for dataset in only or DATASETS}
    print(block(Record(figures=measured)))
    if not only:
        write("outliers", measured)
