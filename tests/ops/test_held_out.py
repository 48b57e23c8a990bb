"""Held-out evidence: what it says of blocks, on graphs where the answer is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from graphs import random_graph
from ssge.datasets import load
from ssge.graph import Graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.features import Features
from ssge.ops.held_out import Kernel, _folds, held_out_scores, noise
from ssge.ops.propagation import all_filtered
from ssge.views import View

RNG = np.random.default_rng(0)


def scores(graph: Graph) -> dict[str, float]:
    """Return those of the features, of the second and the eighth hop, and of the mean over hops."""
    view = View.of(graph, dtype=torch.float64)
    make = lambda _, adjacency, given: all_filtered(adjacency, given)  # noqa: E731
    found = held_out_scores(view.features, view.adjacency, make).tolist()
    return {"own": found[0], "two": found[1], "far": found[3], "mean": found[-1]}


def graph_of(signal: float, homophily: float) -> Graph:
    return load(f"sbm:nodes=1000,classes=4,features=40,homophily={homophily},feature_signal={signal}")


def test_hops_score_where_neighbors_are_alike_and_not_among_strangers() -> None:
    alike, noisy, strangers = (scores(graph_of(s, h)) for s, h in ((3, 0.9), (1, 0.9), (3, 0.25)))
    assert alike["mean"] > 2 * alike["own"] > 0
    assert noisy["far"] > noisy["mean"] > 2 * noisy["own"]  # the mean keeps a ninth of a node's own noise
    assert strangers["own"] > strangers["mean"] > strangers["two"]


def test_what_has_nothing_to_do_with_the_targets_scores_within_its_noise() -> None:
    view = View.of(graph_of(3, 0.9))

    def make(_: Features, adjacency: Adjacency, given: Tensor) -> Iterator[Tensor]:
        for seed in range(40):
            yield torch.randn(1000, 20, generator=torch.Generator().manual_seed(seed))

    draws = held_out_scores(view.features, view.adjacency, make)
    assert draws.max() < 4 * noise(1000)
    # Alignments below 0 are cut off, which leaves about half of the spread.
    assert 0.2 * noise(1000) < draws.std() < 1.2 * noise(1000)


def test_a_block_sees_half_of_the_columns_and_edges_and_is_judged_by_the_others() -> None:
    graph = random_graph(n=60, p=10, m=200, weighted=True, directed=True)
    view = View.of(graph, dtype=torch.float64)
    first, second = _folds(view.features, view.adjacency)
    X = torch.from_numpy(graph.features)
    eye = torch.eye(10, dtype=torch.float64)
    kept = [(fold.features @ eye).abs().sum(0) > 0 for fold in (first, second)]
    assert kept[0].sum() == 5 and torch.equal(kept[0], ~kept[1])
    parts = [set(map(tuple, _edges(fold.adjacency))) for fold in (first, second)]
    assert parts[0] | parts[1] == set(map(tuple, graph.edges.T.tolist())) and not parts[0] & parts[1]
    assert not {(b, a) for a, b in parts[0]} & parts[1]  # both directions go together
    own, neighbors = first.targets
    left, deviations, _ = torch.linalg.svd(X[:, kept[1]] - X[:, kept[1]].mean(0), full_matrices=False)
    held = left * deviations.sqrt()  # directions count by their deviation instead of their variance
    torch.testing.assert_close(own.kernel.rows @ own.kernel.rows.T, _gram(held[own.nodes]))
    weights = {tuple(edge): w for edge, w in zip(graph.edges.T.tolist(), graph.weights, strict=True)}
    means = torch.zeros(len(neighbors.nodes), 5, dtype=torch.float64)
    for row, node in enumerate(neighbors.nodes.tolist()):
        total = 0.0
        for source, target in parts[1]:
            if target == node:
                means[row] += weights[source, target] * held[source]
                total += weights[source, target]
        assert total > 0
        means[row] /= total
    torch.testing.assert_close(neighbors.kernel.rows @ neighbors.kernel.rows.T, _gram(means))


def _edges(adjacency: Adjacency) -> list[list[int]]:
    csr = adjacency.entries[0]
    target = torch.repeat_interleave(csr.indptr.diff())
    pairs = torch.stack([csr.indices.long(), target.long()], 1)
    return pairs[pairs[:, 0] != pairs[:, 1]].tolist()


def _gram(rows: Tensor) -> Tensor:
    centered = rows - rows.mean(0)
    return centered @ centered.T


def test_alignment_is_that_of_the_kernels_without_their_diagonals() -> None:
    b, x = RNG.normal(size=(30, 4)), RNG.normal(size=(30, 3))
    x[:, 0] += b[:, 0]
    kernels = []
    for rows in (b, x):
        centered = rows - rows.mean(axis=0)
        kernels.append((centered @ centered.T)[~np.eye(30, dtype=bool)])
    expected = kernels[0] @ kernels[1] / np.linalg.norm(kernels[0]) / np.linalg.norm(kernels[1])
    turned = b @ np.linalg.qr(RNG.normal(size=(4, 4)))[0] * 7 + 5
    for rows in (b, turned):  # blind to rotations, scale and shifts
        assert Kernel(torch.from_numpy(rows)).alignment(Kernel(torch.from_numpy(x))) == pytest.approx(expected)
    assert Kernel(torch.from_numpy(b)).alignment(Kernel(torch.from_numpy(b))) == pytest.approx(1)
    assert Kernel(torch.ones(30, 2)).alignment(Kernel(torch.from_numpy(x))) == 0


def test_sparse_features_count_as_dense_ones() -> None:
    graph = random_graph(n=200, p=30, m=900, sparse=True)
    dense = replace(graph, features=graph.features.toarray())
    np.testing.assert_allclose(list(scores(graph).values()), list(scores(dense).values()))


def test_too_little_to_hold_out_is_no_evidence() -> None:
    for shape in ((2, 1), (50, 1), (50, 4)):  # the last one has features, but constant ones
        graph = Graph.of(edges=np.array([[0], [1]]), features=np.ones(shape), dtype=np.float64)
        assert set(scores(graph).values()) == {0}
