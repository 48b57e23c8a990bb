"""Outliers: the formula, and nodes planted into a graph with a right answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ssge.datasets import load
from ssge.experiments.references import untrained_encoder
from ssge.graph import Graph
from ssge.runs.fit import fit
from ssge.runs.plan import plan
from ssge.tasks.outliers import outlier_scores


def test_the_formula() -> None:
    z = np.random.default_rng(0).normal(size=(30, 4))
    rows = z - z.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = np.sort(rows @ rows.T, axis=1)[:, ::-1][:, 1:4]  # the largest is the row itself
    np.testing.assert_allclose(outlier_scores(z, 3), 1 - cosine.mean(axis=1))


def test_a_lone_direction_scores_highest() -> None:
    rng = np.random.default_rng(1)
    z = np.concatenate([np.eye(3)[rng.integers(0, 2, 60)] + 0.05 * rng.normal(size=(60, 3)), [[0, 0, -2]]])
    assert outlier_scores(z).argmax() == 60


def test_tiny() -> None:
    np.testing.assert_array_equal(outlier_scores(np.ones((1, 3))), [0])
    assert np.isfinite(outlier_scores(np.eye(3))).all()


@pytest.fixture(scope="module")
def planted() -> tuple[Graph, np.ndarray, Any]:
    """Return a block model in which a node in twenty has its edges led anywhere."""
    clean = load("sbm:nodes=600,classes=4,features=32")
    rng = np.random.default_rng(0)
    outlier = np.zeros(600, dtype=bool)
    outlier[rng.choice(600, 30, replace=False)] = True
    source, target = clean.edges[:, clean.edges[0] < clean.edges[1]]
    source, target = np.where(outlier[target], target, source), np.where(outlier[target], source, target)
    target = np.where(outlier[source], rng.integers(600, size=source.size), target)
    graph = Graph.of(edges=np.stack([source, target]), features=clean.features)
    return graph, outlier, plan(graph.info, settings={"epochs": 30, "widths": (32, 32), "uniformity_weight": 0.1})


def test_planted_outliers_are_found_and_training_helps(planted: tuple[Graph, np.ndarray, Any]) -> None:
    graph, outlier, planned = planted
    found = [
        roc_auc_score(outlier, outlier_scores(vectors))
        for vectors in (
            fit(graph, planned).embedding.vectors,
            untrained_encoder(graph, planned),
            graph.features,
        )
    ]
    trained, untrained, raw = found
    assert trained > 0.8 and trained > untrained + 0.02 and trained > raw + 0.2, found
