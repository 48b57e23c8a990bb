"""Protocols: which splits, which probe, at which scale. A score without its protocol has no meaning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from ssge.datasets import Facts, SplitKind, split_of, splits_of
from ssge.errors import InputError
from ssge.evaluation import AdamProbe, LbfgsProbe, cluster, geometry, linear_probes
from ssge.graph import Graph
from ssge.records import Scores
from ssge.registry import Registry


class Protocol(BaseModel):
    """A named way to score an embedding.

    Attributes
    ----------
    splits
        As in `ssge.datasets.splits_of`. Some papers have ``random`` splits on the citation graphs too, with more
        labels than the public ones. ``released-code`` is what the released code does, not what the paper says.
    probe
        ``lbfgs`` or ``adam``.
    repeats
        How often a public split is probed, with different probe seeds.
    steps
        For ``adam``: the probe takes this many steps and the last one counts. Default: 3,000 steps, of which the best
        on validation nodes counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str
    splits: SplitKind
    probe: Literal["lbfgs", "adam"]
    repeats: int = 1
    steps: int | None = None
    cluster_seeds: int = 10


PROTOCOLS: Registry[Protocol] = Registry("protocol")
for _protocol in (
    Protocol(
        name="paper",
        description="splits of the paper; its probe as released: Adam, 3,000 steps, best validation step",
        splits="paper",
        probe="adam",
        repeats=10,
    ),
    Protocol(
        name="paper-lbfgs",
        description="splits of the paper; logistic regression to convergence, penalty chosen on validation nodes",
        splits="paper",
        probe="lbfgs",
    ),
    Protocol(
        name="last-step",
        description="splits of the paper; the probe of DGI, MVGRL and GGD: Adam, the last of 300 steps, 50 starts",
        splits="paper",
        probe="adam",
        repeats=50,
        steps=300,
    ),
    Protocol(
        name="quick",
        description="as paper-lbfgs, with three seeds of k-means instead of ten",
        splits="paper",
        probe="lbfgs",
        cluster_seeds=3,
    ),
    Protocol(
        name="random",
        description="as paper-lbfgs, on ten random splits even where there are public ones, as in the paper of RGRL",
        splits="random",
        probe="lbfgs",
    ),
    Protocol(
        name="released-code",
        description="the same probe on the splits that the released code really makes: validation 80 %, test 10 %",
        splits="released-code",
        probe="adam",
        repeats=10,
    ),
):
    PROTOCOLS.add(_protocol.name, _protocol)


def evaluate(
    embedding: NDArray[np.floating[Any]],
    graph: Graph,
    protocol: Protocol,
    scale: float = 1.0,
    probed: bool = True,
    known: Iterable[Scores] = (),
    facts: Facts | None = None,
) -> Scores:
    """Score an embedding against the labels of a graph.

    Parameters
    ----------
    embedding
        n x d, rows in the order of the graph's nodes.
    graph
        Holds the labels and the public splits.
    protocol
        How to score.
    scale
        The factor between the encoder's output and ``embedding``. Probes with a fixed step size were tuned on the raw
        output and get that; the other probe does not depend on scale.
    probed
        Whether classifiers are trained; if not, there are no accuracies, and the clusters alone are scored.
    known
        Scores of the same embedding under other protocols: clusters that they have are not computed again.
    facts
        Of the dataset: the released code tunes the weight decay of its probe per dataset, which the paper does not
        say, and picks the splits. None for any other graph: weight decay 1e-4, random splits, and the penalty is the
        best of the whole grid.
    """
    if graph.labels is None:
        raise InputError(f"{graph.name} has no labels, so nothing can be scored against them.")
    splits, named = splits_of(graph, protocol.splits, protocol.repeats, facts)
    seeds = range(len(splits))
    probe: LbfgsProbe | AdamProbe
    vectors = embedding
    if protocol.probe == "adam":
        probe = AdamProbe() if facts is None else AdamProbe(weight_decay=facts.probe_weight_decay)
        if protocol.steps:
            probe = probe.model_copy(update={"steps": protocol.steps, "every": protocol.steps})
        vectors = embedding / np.float32(scale)
    else:
        probe = LbfgsProbe()
        if facts is None:  # of any scale: where one column dominates, weak penalties alone see the others
            probe = probe.model_copy(update={"patience": len(probe.grid)})
    scores = linear_probes(vectors, graph.labels, splits, probe, list(seeds)) if probed else []
    clusters = [(list(s.nmi), list(s.ari)) for s in known if len(s.nmi) == protocol.cluster_seeds]
    if not clusters:
        groups = cluster(embedding, graph.labels, seeds=range(protocol.cluster_seeds))
        clusters = [(list(groups.nmi_per_seed), list(groups.ari_per_seed))]
    nmi, ari = clusters[0]
    return Scores(
        protocol=protocol.name,
        probe=probe.model_dump() if probed else {},
        splits=named,
        accuracies=[s.accuracy for s in scores],
        valid_accuracies=[s.valid_accuracy for s in scores],
        nmi=nmi,
        ari=ari,
        geometry=geometry(embedding),
    )


def evaluate_classifier(
    class_scores: NDArray[np.floating[Any]], graph: Graph, protocol: Protocol, seed: int, facts: Facts | None = None
) -> Scores:
    """Score a supervised method by its own class scores (n x k), on the split that it was trained on: `split_of`.

    Clusters are of the test nodes too, because it has seen the classes of others.
    """
    split = split_of(graph, protocol.splits, seed, facts)
    assert graph.labels is not None
    right = class_scores.argmax(1) == graph.labels
    groups = cluster(class_scores[split.test], graph.labels[split.test], seeds=range(protocol.cluster_seeds))
    return Scores(
        protocol=protocol.name,
        probe={},
        splits=splits_of(graph, protocol.splits, facts=facts)[1],
        accuracies=[float(right[split.test].mean())],
        valid_accuracies=[float(right[split.valid].mean())],
        nmi=list(groups.nmi_per_seed),
        ari=list(groups.ari_per_seed),
        geometry=geometry(class_scores),
    )
