from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import ssge
from graphs import random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.tasks.links import Evidence, calibrate, hold_out, likely_links, propagated


def undirected(graph: Graph) -> set[tuple[int, int]]:
    return {(min(a, b), max(a, b)) for a, b in graph.edges.T.tolist()}


def groups(n: int = 120, seed: int = 0) -> Graph:
    """Return a graph of four groups whose features tell the group."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 4
    linked = rng.random((n, n)) < np.where(group[:, None] == group, 0.3, 0.01)
    features = np.eye(4)[group] + 0.3 * rng.normal(size=(n, 4))
    return Graph.of(edges=np.argwhere(np.triu(linked, 1)), features=features, dtype=np.float64)


def embedded(graph: Graph) -> NDArray[Any]:
    return np.asarray(propagated(graph, 1))


def test_held_out_edges_are_gone_in_both_directions() -> None:
    graph = groups()
    held = hold_out(graph, 0.1, seed=3)
    before, after = undirected(graph), undirected(held.graph)
    samples = [held.calibration, held.test]
    edges = [set(map(tuple, s.pairs[:, s.linked].T.tolist())) for s in samples]
    others = [set(map(tuple, s.pairs[:, ~s.linked].T.tolist())) for s in samples]
    count = round(0.1 * len(before))
    assert [len(part) for part in (*edges, *others)] == [count] * 4
    assert edges[0] | edges[1] == before - after and not edges[0] & edges[1]
    assert not (others[0] | others[1]) & before and not others[0] & others[1]
    assert all(a < b for part in others for a, b in part)
    again = hold_out(graph, 0.1, seed=3)
    np.testing.assert_array_equal(again.test.pairs, held.test.pairs)
    assert not np.array_equal(hold_out(graph, 0.1, seed=4).test.pairs, held.test.pairs)


def test_features_from_edges_do_not_know_the_held_out_ones() -> None:
    import pyarrow as pa

    ends = groups().edges
    table = pa.table({"source": ends[0], "target": ends[1]})
    nodes = pa.table({"id": np.arange(120), "size": np.arange(120.0) % 7})
    graph = ssge.read_graph(table, nodes, features=["degree", "table", "clustering"])
    left = hold_out(graph).graph
    degree = np.bincount(left.edges[1], minlength=120)
    dense = left.features.toarray() if sp.issparse(left.features) else left.features
    np.testing.assert_allclose(dense[:, 0], np.log1p(degree), rtol=1e-6)
    np.testing.assert_array_equal(dense[:, 1], np.arange(120) % 7)
    expected = nx.clustering(nx.Graph(left.edges.T.tolist()))
    np.testing.assert_allclose(dense[:, 2], [expected.get(i, 0) for i in range(120)], atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_parts_are_what_they_say(sparse: bool) -> None:
    graph = random_graph(sparse=sparse, weighted=True)
    vectors = np.random.default_rng(1).normal(size=(60, 5))
    evidence = Evidence(graph, vectors)
    i, j = np.triu_indices(60, 1)
    pairs = np.stack([i, j])
    parts = evidence.parts(pairs)
    plain = nx.Graph(graph.edges.T.tolist())
    plain.add_nodes_from(range(60))
    adamic = [score for *_, score in nx.adamic_adar_index(plain, pairs.T.tolist())]
    np.testing.assert_allclose(parts["adamic_adar"], np.log1p(adamic), atol=1e-12)
    common = [len(list(nx.common_neighbors(plain, a, b))) for a, b in pairs.T.tolist()]
    np.testing.assert_array_equal(evidence.common_neighbors(pairs), common)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(parts["embedding"], (unit @ unit.T)[i, j], atol=1e-12)
    spread = propagated(graph)
    rows = spread.toarray() if sp.issparse(spread) else spread
    rows = rows - rows.mean(axis=0)
    expected = (rows @ rows.T)[i, j] / (np.linalg.norm(rows, axis=1)[i] * np.linalg.norm(rows, axis=1)[j])
    np.testing.assert_allclose(parts["features"], expected, atol=1e-9)
    degree = np.array([plain.degree(node) for node in range(60)])
    np.testing.assert_allclose(parts["low_degree"], np.log1p(np.minimum(degree[i], degree[j])))
    np.testing.assert_allclose(parts["high_degree"], np.log1p(np.maximum(degree[i], degree[j])))


def test_the_score_is_calibrated_and_above_its_parts() -> None:
    graph, seen = groups(240), []

    def embed(left: Graph) -> NDArray[Any]:
        seen.append(undirected(left))
        return embedded(left)

    model, scores, k = calibrate(graph, embed)
    held = hold_out(graph)
    assert seen == [undirected(held.graph)] and k == held.test.linked.sum() // 10
    auc = {score.name: score.auc for score in scores}
    assert list(auc) == [
        "links", "links without the embedding", "embedding", "propagated features", "Adamic-Adar", "common neighbors",
    ]  # fmt: skip
    assert auc["links"] > 0.8 and auc["links"] >= max(auc.values()) - 0.01
    # Over the test pairs, scores are shares of edges: their mean is that of the edges.
    evidence = Evidence(held.graph, embedded(held.graph))
    odds = model.odds(evidence.parts(held.test.pairs))
    assert np.mean(odds / (1 + odds)) == pytest.approx(0.5, abs=0.05)


def test_auc_and_hits_by_hand() -> None:
    from ssge.tasks.links import _evaluated

    linked = np.array([True, True, True, True, False, False, False, False])
    found = _evaluated("x", np.array([0.9, 0.8, 0.3, 0.1, 0.7, 0.3, 0.2, 0.0]), linked, 2)
    assert found.auc == pytest.approx((4 + 4 + 2.5 + 1) / 16) and found.hits == 0.5


def test_a_missing_edge_of_a_clique_is_found_first() -> None:
    edges = [(a, b) for at in (0, 12, 24) for a in range(at, at + 12) for b in range(a + 1, at + 12)]
    edges.remove((13, 17))
    graph = Graph.of(edges=np.array(edges), features=np.repeat(np.eye(3), 12, axis=0) + 0.01 * np.arange(36)[:, None])
    evidence = Evidence(graph, np.asarray(propagated(graph)))
    model, _, _ = calibrate(graph, embedded)
    found = likely_links(evidence, model, 5)
    assert found.pairs[:, 0].tolist() == [13, 17] and (np.diff(found.odds) <= 0).all()
    pairs = set(map(tuple, found.pairs.T.tolist()))
    assert len(pairs) == 5 and not pairs & set(edges) and all(a < b for a, b in pairs)
    of = likely_links(evidence, model, 2, np.array([17, 0]))
    assert of.pairs[:, 0].tolist() == [17, 13] and of.pairs[0].tolist() == [17, 17, 0, 0]
    assert of.odds[0] == pytest.approx(found.odds[0]) and list(of.parts) == list(model.weights)


def test_overall_links_are_the_best_of_all_pairs() -> None:
    graph = groups(80)
    evidence = Evidence(graph, embedded(graph))
    model, _, _ = calibrate(graph, embedded)
    everything = likely_links(evidence, model, 80, np.arange(80))
    pairs = np.sort(everything.pairs, axis=0)
    once = np.unique(pairs[0] * 80 + pairs[1], return_index=True)[1]
    best = np.sort(everything.odds[once])[::-1][:10]
    np.testing.assert_allclose(likely_links(evidence, model, 10, candidates=79).odds, best, rtol=1e-9)


def test_without_features_there_is_one_part_less() -> None:
    graph = groups()
    model, scores, _ = calibrate(graph, embedded, features=False)
    assert "features" not in model.weights and "propagated features" not in {score.name for score in scores}


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="must have 100 undirected edges or more"):
        hold_out(ssge.load_dataset("karate"))
    with pytest.raises(InputError, match=r"share must be above 0 and below 0\.5"):
        hold_out(groups(), 0.5)
    full = Graph.of(edges=np.argwhere(np.triu(np.ones((30, 30)), 1)), features=np.ones((30, 1)))
    with pytest.raises(InputError, match="links almost all pairs"):
        hold_out(full)
    graph = groups()
    with pytest.raises(InputError, match="k must be 1 or more"):
        likely_links(Evidence(graph, embedded(graph)), calibrate(graph, embedded)[0], 0)
    assert math.isfinite(calibrate(graph, embedded)[1][0].auc)
