"""Can a setting be chosen without labels? results/selection.json and docs/selection.md.

Eighteen settings of SSGE on each graph: half, once and twice the epochs and a third, once and three times the weight of
uniformity that the default has, each with what was learned alone and with propagated features beside it. Each embedding
gets seven label-free figures, its validation accuracy (random 1:1:8 splits) and its NMI. For each figure the page shows
the rank correlation with both within a graph, and what is lost by taking the setting with the largest figure, beside
the default and a random pick. Test nodes play no part. Graphs of a record that is not stale are kept; ``--again``
starts anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

import pages
from pages import table as markdown
from quality import graph_of
from ssge.datasets.splits import random_splits
from ssge.evaluation import LbfgsProbe, cluster, geometry, linear_probes
from ssge.evaluation.clustering import kmeans
from ssge.graph import Graph
from ssge.methods.ssge import SSGE
from ssge.ops.held_out import Kernel, held_out_scores
from ssge.ops.propagation import power
from ssge.ops.random import Key
from ssge.runs.plan import plan
from ssge.training.trainer import train
from ssge.views import View

GRAPHS = (
    "cora", "citeseer", "acm", "cora_ml", "digits", "chameleon_filtered", "actor",
    "sbm 0.3 informative", "sbm 0.5 informative", "sbm 0.9 informative", "sbm 0.7 noisy", "sbm 0.25 dense",
    "sbm 0.4 dense",
)  # fmt: skip
EPOCHS, WEIGHTS = (0.5, 1, 2), (1 / 3, 1, 3)
VIEWS, CLUSTERS, SPLITS = 4, 10, 5
CRITERIA = {
    "effective rank": "RankMe: exponential of the entropy of the spectrum",
    "signal of views": "LiDAR: effective rank of what differs between nodes over what differs between views of one",
    "edges within clusters": "share of the edges that ten k-means clusters do not cut",
    "stability": "alignment of the embeddings of two halves of the edges",
    "agreement with A^2 X": "alignment with propagated features",
    "held-out score": "alignment with held-out features and neighbors, by which the default chooses its filter",
    "training loss": "minus the last loss",
}


def lidar(method: SSGE, view: View) -> float:
    """Return the effective rank of the covariance of nodes, relative to that of augmented views of a node."""
    rows = torch.stack([method.encode(method.augment(view, Key(0).fold_in("lidar", i))) for i in range(VIEWS)]).double()
    centers = rows.mean(0)
    within = (rows - centers).flatten(0, 1)
    within = within.T @ within / len(within)
    values, vectors = torch.linalg.eigh(within + 1e-3 * within.trace() / len(within) * torch.eye(len(within)))
    whitened = (centers - centers.mean(0)) @ vectors * values.rsqrt()
    spectrum = torch.linalg.svdvals(whitened).square()
    share = spectrum / spectrum.sum()
    return float(torch.exp(-(share * share.clamp_min(1e-30).log()).sum()))


def halves(view: View) -> Iterator[View]:
    """Yield the view with each half of its edges."""
    ids = view.adjacency.pattern.edge_ids
    low, high = torch.minimum(ids >> 32, ids & 0xFFFFFFFF), torch.maximum(ids >> 32, ids & 0xFFFFFFFF)
    kept = Key(0).fold_in("halves").keep(low << 32 | high, 0.5)
    for gone in (kept, ~kept):
        yield view._replace(adjacency=view.adjacency.drop_edges(Key(0), gone.float()))


@torch.no_grad()
def figures_of(method: SSGE, view: View, graph: Graph, loss: float) -> dict[str, float]:
    """Return the label-free figures of a fitted method, all the better the larger."""
    embedding = method.encode(view)
    source, target = graph.edges
    assigned = kmeans(embedding.numpy(), CLUSTERS).cluster
    first, second = (Kernel(method.encode(half)) for half in halves(view))
    propagated = power(view.adjacency, view.features @ torch.eye(graph.num_features), 2)

    def make(features: Any, adjacency: Any, _: Tensor) -> Iterator[Tensor]:
        yield method.encode(view._replace(features=features, adjacency=adjacency))

    found = (
        geometry(embedding.numpy())["effective_rank"],
        lidar(method, view),
        float((assigned[source] == assigned[target]).mean()),
        first.alignment(second),
        Kernel(embedding).alignment(Kernel(propagated)),
        float(held_out_scores(view.features, view.adjacency, make)[0]),
        -loss,
    )
    return dict(zip(CRITERIA, found, strict=True))


def measure(name: str) -> list[dict[str, Any]]:
    """Return the label-free figures, validation accuracy and NMI of each setting."""
    graph = graph_of(name)
    assert graph.labels is not None
    splits, found = random_splits(graph.num_nodes, SPLITS), []
    usual = plan(graph.info).config.model_dump()
    for epochs in EPOCHS:
        for weight in WEIGHTS:
            settings = {
                "epochs": round(epochs * usual["epochs"]),
                "uniformity_weight": weight * usual["uniformity_weight"],
            }
            method = plan(graph.info, settings=settings).build(graph)
            assert isinstance(method, SSGE)
            view = method.prepare(graph.without_labels())
            trained = train(method, view, Key(0))
            loss, beside = trained.history[-1]["total"], method.blocks
            for blocks in (beside, None):
                method.blocks = blocks
                embedding = method.encode(view).numpy()
                probes = linear_probes(embedding, graph.labels, splits, LbfgsProbe(), [0] * SPLITS)
                found.append(
                    {
                        "settings": settings | {"epochs of default": epochs, "weight of default": weight},
                        "blocks": blocks is not None,
                        "default": epochs == weight == 1 and blocks is not None,
                        "figures": figures_of(method, view, graph, loss),
                        "accuracy": float(np.mean([probe.valid_accuracy for probe in probes])),
                        "nmi": float(np.mean(cluster(embedding, graph.labels, seeds=range(2)).nmi_per_seed)),
                    }
                )
    return found


def judged(runs: list[dict[str, Any]], criterion: str, what: str) -> tuple[float, float]:
    """Return the rank correlation of a criterion with a score, and the points lost by its pick."""
    values, scores = ([run["figures"][criterion] for run in runs], [run[what] for run in runs])
    correlation = spearmanr(values, scores).statistic if np.ptp(values) > 0 and np.ptp(scores) > 0 else 0.0
    return float(correlation), 100 * (max(scores) - scores[int(np.argmax(values))])


def block(record: Any) -> str:
    """Return the tables and the verdict."""
    graphs = [name for name in GRAPHS if name in record.figures]
    parts = []
    for what, title in (("accuracy", "validation accuracy"), ("nmi", "NMI")):
        lines = []
        for criterion, meaning in CRITERIA.items():
            pairs = [judged(record.figures[name], criterion, what) for name in graphs]
            correlation, lost = np.mean(pairs, axis=0)
            worst = max(pair[1] for pair in pairs)
            lines.append([criterion, meaning, f"{correlation:+.2f}", f"{lost:.2f}", f"{worst:.1f}"])
        losses: dict[str, list[float]] = {"the default": [], "a random pick": []}
        for name in graphs:
            scores = [100 * run[what] for run in record.figures[name]]
            usual = next(score for run, score in zip(record.figures[name], scores, strict=True) if run["default"])
            losses["the default"].append(max(scores) - usual)
            losses["a random pick"].append(max(scores) - float(np.mean(scores)))
        for name, lost in losses.items():
            lines.append([f"*{name}*", "", "", f"{np.mean(lost):.2f}", f"{max(lost):.1f}"])
        headings = ("criterion", "definition", f"rank correlation with {title}", "points lost, mean", "worst graph")
        parts.append(f"### {title[0].upper()}{title[1:]}\n\n{markdown(headings, lines)}")
    lines, gains = [], []
    for name in graphs:
        beside = [run for run in record.figures[name] if run["blocks"]]
        usual = next(run for run in beside if run["default"])
        pick = max(beside, key=lambda run: run["figures"]["held-out score"])
        gains.append([100 * (pick[what] - usual[what]) for what in ("accuracy", "nmi")])
        chosen = [f"{pick['settings'][f'{what} of default']:.2g} x" for what in ("epochs", "weight")]
        scored = [f"{100 * run[what]:.1f}" for what in ("accuracy", "nmi") for run in (usual, pick)]
        lines.append([name, *chosen, *scored[:2], f"{gains[-1][0]:+.1f}", *scored[2:], f"{gains[-1][1]:+.1f}"])
    means = [f"{mean:+.2f}" for mean in np.mean(gains, axis=0)]
    lines.append(["*mean*", "", "", "", "", means[0], "", "", means[1]])
    heads = (
        "graph",
        "epochs",
        "weight",
        "accuracy %, default",
        "selected",
        "difference",
        "NMI %, default",
        "selected",
        "difference",
    )
    parts.append(f"### What `--select` picks\n\n{markdown(heads, lines)}")
    count = len(next(iter(record.figures.values())))
    closing = f"{len(graphs)} graphs, {count} settings each, one encoder seed. {pages.where(record)}.\n"
    return "\n\n".join([*parts, closing])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS, choices=GRAPHS)
    parser.add_argument("--again", action="store_true", help="run all graphs again")
    options = parser.parse_args()
    figures: dict[str, Any] = {} if options.again else pages.figures_of("selection")
    for chosen in options.graphs:
        if chosen not in figures:
            figures[chosen] = measure(chosen)
            pages.write("selection", figures)
            lost = {name: judged(figures[chosen], name, "accuracy") for name in CRITERIA}
            print(chosen, {name: f"{r:+.2f}, {points:.1f}" for name, (r, points) in lost.items()}, flush=True)
