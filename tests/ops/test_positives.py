"""Positives against loops; k-means on clusters that are plain to see."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.positives import k_means, nearest_targets, positive_pairs


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("chunk", [None, 1, 7, 1000])
def test_nearest_by_cosine_with_oneself(chunk: int | None) -> None:
    q, t = random(40, 5), random(40, 5, seed=1)
    found = nearest_targets(q, t, 4, chunk)
    x, y = (a.numpy() / np.linalg.norm(a.numpy(), axis=1, keepdims=True) for a in (q, t))
    cosines = x @ y.T
    np.fill_diagonal(cosines, 2)
    for i in range(40):
        assert found[i].tolist() == np.argsort(-cosines[i])[:4].tolist()
    assert nearest_targets(q[:3], t[:3], 8).shape == (3, 3)


def test_pairs_agree_with_loops() -> None:
    graph = random_graph()
    adjacency = Adjacency.of(graph.edges, 60, dtype=torch.float64)
    near = nearest_targets(random(60, 3), random(60, 3, seed=1), 20)
    rng = np.random.default_rng(0)
    clusters = torch.from_numpy(rng.integers(0, 10, size=(60, 2)))
    hears = set(zip(graph.edges[1].tolist(), graph.edges[0].tolist(), strict=True))
    expected = {
        (i, j)
        for i, row in enumerate(near.tolist())
        for j in row
        if i == j or (i, j) in hears or bool((clusters[i] == clusters[j]).any())
    }
    pairs = positive_pairs(near, adjacency, clusters)
    found = list(zip(*pairs.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == expected
    alone = torch.arange(60).unsqueeze(1)
    only = set(zip(*positive_pairs(near, adjacency, alone).tolist(), strict=True))
    assert only == {(i, j) for i, j in expected if i == j or (i, j) in hears}


def test_k_means_finds_plain_clusters() -> None:
    centers = 20 * torch.eye(4, dtype=torch.float64)
    truth = torch.arange(80) % 4
    x = centers[truth] + random(80, 4)
    found = (k_means(x, 4, 20, torch.Generator().manual_seed(seed)) for seed in range(8))
    best = min(found, key=lambda clusters: _within(x, clusters))  # a bad start is possible, eight are not
    assert {(int(a), int(b)) for a, b in zip(truth, best, strict=True)} == set(enumerate(best[:4].tolist()))
    assert best[:4].unique().numel() == 4


def _within(x: torch.Tensor, clusters: torch.Tensor) -> float:
    return sum(float((x[clusters == c] - x[clusters == c].mean(0)).square().sum()) for c in clusters.unique())


def test_rounds_of_k_means_lower_its_objective() -> None:
    x = random(100, 3)
    sums = [_within(x, k_means(x, 8, rounds, torch.Generator().manual_seed(0))) for rounds in (0, 1, 3, 20)]
    assert sums[0] > sums[1] > sums[2] >= sums[3]


def test_k_means_is_the_generator_s_and_bears_few_rows() -> None:
    x = random(30, 3)
    first, again, other = (k_means(x, 6, 2, torch.Generator().manual_seed(s)) for s in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert k_means(x[:3], 100, 5, torch.Generator().manual_seed(0)).unique().numel() == 3
    same = k_means(torch.ones(10, 2), 4, 5, torch.Generator().manual_seed(0))
    assert same.unique().numel() == 1
