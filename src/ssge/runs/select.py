"""Settings of SSGE chosen for a graph without labels: nine trainings, judged by data that they did not see.

docs/selection.md compares this with the default on many graphs, by accuracy and by clusters.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import count, product

from torch import Tensor

from ssge.errors import InputError
from ssge.graph import Graph
from ssge.io.graph_folder import StoredGraph
from ssge.methods.ssge import SSGEConfig
from ssge.ops.adjacency import Adjacency
from ssge.ops.collective import world
from ssge.ops.features import Features
from ssge.ops.held_out import held_out_scores
from ssge.ops.random import Key
from ssge.runs.estimate import check_memory
from ssge.runs.plan import Plan
from ssge.training.observers import progress
from ssge.training.trainer import Observer, train

log = logging.getLogger(__name__)

EPOCHS, WEIGHTS = (0.5, 1, 2), (1 / 3, 1, 3)
"""What the planned epochs and the planned weight of uniformity are multiplied by."""


def select(graph: Graph | StoredGraph, plan: Plan, quiet: bool = True) -> Plan:
    """Return the plan with the epochs and the weight of uniformity whose embedding agrees most with held-out data.

    Labels play no part. The score is that of `ssge.ops.held_out`, of the whole embedding.

    Parameters
    ----------
    graph
        In memory.
    plan
        Of SSGE; what is tried is relative to its settings.
    quiet
        Show no progress.
    """
    usual = plan.config
    if not isinstance(usual, SSGEConfig):
        raise InputError(f"select chooses settings of ssge; received the method {plan.method.name}.")
    if not isinstance(graph, Graph) or world() > 1:
        raise InputError("select needs a graph in memory and a single process: it trains several times.")
    if graph.num_nodes < 2:
        return plan  # `fit` refuses it
    if plan.device.type == "cpu":
        check_memory(graph, plan)
    tried = [
        usual.model_copy(
            update={
                "epochs": max(1, round(share * usual.epochs)),
                "uniformity_weight": weight * usual.uniformity_weight,
            }
        )
        for share, weight in product(EPOCHS, WEIGHTS)
    ]
    total, title = sum(config.epochs for config in tried), f"Select on {graph.name}"
    epochs = count(1)  # of all trainings
    with nullcontext() if quiet else progress(total, title) as show:
        observers: list[Observer] = [lambda line: show({**line, "epoch": next(epochs)})] if show else []
        found = [_score(graph, replace(plan, config=config), observers) for config in tried]
    best = max(range(len(tried)), key=found.__getitem__)
    log.info(
        "Selected epochs %d and uniformity_weight %.3g, held-out score %.3f; the settings as planned have %.3f.",
        tried[best].epochs, tried[best].uniformity_weight, found[best], found[len(tried) // 2],
    )  # fmt: skip
    return replace(plan, config=tried[best])


def _score(graph: Graph, plan: Plan, observers: list[Observer]) -> float:
    """Train as planned and return the held-out score of the embedding."""
    method = plan.build(graph)
    view = method.prepare(graph.without_labels())
    train(method, view, Key(plan.seed), observers=observers)

    def embedded(features: Features, adjacency: Adjacency, _: Tensor) -> Iterator[Tensor]:
        yield method.encode(view._replace(features=features, adjacency=adjacency))

    return float(held_out_scores(view.features, view.adjacency, embedded)[0])
