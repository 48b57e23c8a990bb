"""Graphs that need neither network nor files, and the options of datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ssge import datasets
from ssge.errors import InputError, UnknownNameError
from ssge.graph import Graph


def homophily(graph: Graph) -> float:
    assert graph.labels is not None
    return float((graph.labels[graph.edges[0]] == graph.labels[graph.edges[1]]).mean())


def test_karate() -> None:
    graph = datasets.load("Karate")
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (34, 156, 34)
    assert sp.issparse(graph.features)
    assert np.array_equal(graph.features.toarray(), np.eye(34))
    assert graph.class_names == ("Mr. Hi", "Officer")
    assert graph.labels is not None
    assert (graph.labels[0], graph.labels[33], graph.labels.sum()) == (0, 1, 17)
    assert graph.weights is None


def test_digits() -> None:
    graph = datasets.load("digits")
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (1797, 64, 10)
    assert (graph.features.min(), graph.features.max()) == (0, 1)
    assert np.bincount(graph.edges[0]).min() >= 10
    assert homophily(graph) > 0.9
    assert datasets.load("digits", neighbors=3).num_edges < graph.num_edges


def test_digits_are_joined_to_the_nearest() -> None:
    graph = datasets.load("digits", neighbors=1)
    x = np.asarray(graph.features, dtype=np.float64)
    distance = ((x[:200, None] - x) ** 2).sum(axis=2)
    distance[np.arange(200), np.arange(200)] = np.inf
    joined = set(zip(*graph.edges.tolist(), strict=True))
    assert all((i, int(j)) in joined for i, j in enumerate(distance.argmin(axis=1)))


def test_sbm_has_the_properties_asked_for() -> None:
    graph = datasets.load("sbm", nodes=3001, classes=7, degree=8.0, features=12, homophily=0.7, seed=5)
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (3001, 12, 7)
    assert graph.num_edges == 2 * round(3001 * 8 / 2)
    assert homophily(graph) == pytest.approx(0.7, abs=1e-4)
    assert graph.labels is not None
    assert np.ptp(np.bincount(graph.labels)) <= 1
    assert (np.diff(graph.labels) != 0).mean() > 0.5  # the order of nodes says nothing of the class


def test_sbm_joins_every_pair_alike() -> None:
    counts = np.zeros((12, 12))
    for seed in range(400):
        graph = datasets.load("sbm", nodes=12, classes=3, degree=2.0, homophily=0.5, features=1, seed=seed)
        assert graph.labels is not None
        order = np.argsort(graph.labels, kind="stable")
        place = np.empty(12, dtype=np.int64)
        place[order] = np.arange(12)
        counts[place[graph.edges[0]], place[graph.edges[1]]] += 1
    same = np.arange(12)[:, None] // 4 == np.arange(12) // 4
    # 6 of the 12 edges lie within blocks, on 18 pairs; 6 between, on 48 pairs.
    for pairs, expected in ((same & ~np.eye(12, dtype=bool), 400 * 6 / 18), (~same, 400 * 6 / 48)):
        spread = 5 * np.sqrt(expected)
        assert np.abs(counts[pairs] - expected).max() < spread


def test_sbm_features_follow_the_signal() -> None:
    def distance(signal: float) -> float:
        graph = datasets.load("sbm", nodes=4000, classes=2, degree=2.0, features=64, feature_signal=signal)
        assert graph.labels is not None
        x = np.asarray(graph.features, dtype=np.float64)
        return float(np.linalg.norm(x[graph.labels == 0].mean(axis=0) - x[graph.labels == 1].mean(axis=0)))

    assert distance(0.0) < 0.5
    assert distance(5.0) == pytest.approx(5 * np.sqrt(2), rel=0.3)


def test_sbm_is_repeatable() -> None:
    one, same, other = (datasets.load("sbm", nodes=300, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.features, same.features)
    assert np.array_equal(one.edges, same.edges)
    assert not np.array_equal(one.features, other.features)


@pytest.mark.parametrize("homophily", [0.0, 1.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_sbm_at_the_ends(homophily: float, classes: int) -> None:
    graph = datasets.load("sbm", nodes=200, classes=classes, degree=4.0, homophily=homophily)
    assert graph.labels is not None
    assert set(graph.labels[graph.edges[0]] == graph.labels[graph.edges[1]]) == {bool(homophily)}


def test_sbm_with_one_class_has_no_edges_between() -> None:
    assert datasets.load("sbm", nodes=50, classes=1, degree=3.0, homophily=1.0).num_edges == 150
    with pytest.raises(InputError, match="between blocks"):
        datasets.load("sbm", nodes=50, classes=1, degree=3.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"homophily": 1.5}, "homophily must be between 0 and 1; received 1.5"),
        ({"nodes": 0}, "nodes must be between"),
        ({"nodes": 10.5}, "nodes must be a whole number; received 10.5"),
        ({"nodes": float("inf")}, "nodes must be a whole number"),
        ({"degree": float("nan")}, "degree must be a number"),
        ({"nodes": True}, "nodes must be a whole number"),
        ({"nodes": "many"}, "nodes must be a whole number; received 'many'"),
        ({"nodes": 100, "classes": 20}, "degree must be lower"),
        (
            {"node": 10},
            "Unknown option of Stochastic block model: 'node'. Did you mean 'nodes'.*Valid: classes, degree",
        ),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        datasets.load("sbm", **options)


def test_a_dataset_without_options() -> None:
    with pytest.raises(InputError, match="Karate club has no options; received 'nodes'"):
        datasets.load("karate", nodes=3)


def test_options_in_the_name() -> None:
    graph = datasets.load("SBM:nodes=1e3, classes=5,degree=4,homophily=0.5")
    assert (graph.num_nodes, graph.num_classes, graph.num_edges) == (1000, 5, 4000)
    assert datasets.load("sbm:nodes=1000", nodes=500).num_nodes == 500


@pytest.mark.parametrize("name", ["sbm:nodes", "sbm:nodes=", "sbm:nodes=many", "sbm:=3,nodes"])
def test_options_that_cannot_be_read(name: str) -> None:
    with pytest.raises(InputError, match=r"name:key=number|has no option"):
        datasets.load(name)


def test_unknown_name() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'karate'"):
        datasets.load("karat")
