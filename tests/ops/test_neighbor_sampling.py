"""Sampled neighborhoods: every neighbor equally likely, products right on average, draws that nothing else changes."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from graphs import random_graph
from ssge.ops import neighbor_sampling
from ssge.ops.adjacency import Adjacency, Normalization
from ssge.ops.neighbor_sampling import NeighborSampler, count_degrees, distinct_offsets, sample_rows
from ssge.ops.random import Key
from ssge.views import View

GRAPH = random_graph(n=50, m=400, weighted=True, directed=True)
KEY = Key(0).fold_in("train", 1)


def whole(normalization: Normalization = "out-in", drop: float = 0.0) -> Adjacency:
    view = View.of(GRAPH, normalization, dtype=torch.float64)
    return view.adjacency.drop_edges(Key(5), drop) if drop else view.adjacency


@pytest.mark.parametrize(("degree", "k"), [(7, 3), (7, 1), (7, 6), (4, 2), (1000, 2)])
def test_offsets_are_distinct_and_equally_likely(degree: int, k: int) -> None:
    count = 20_000
    found = distinct_offsets(torch.full((count,), degree), k, torch.arange(count), KEY)
    assert found.shape == (k, count) and found.min() >= 0 and found.max() < degree
    assert all(len(set(column)) == k for column in found.t().tolist())
    counts = np.bincount(found.flatten().numpy(), minlength=degree)
    # Of the counts of draws without replacement, chi-square is smaller by the factor (D - k) / (D - 1).
    statistic = ((counts - count * k / degree) ** 2 / (count * k / degree)).sum() * (degree - 1) / (degree - k)
    assert 1e-3 < stats.chi2.sf(statistic, degree - 1) < 1 - 1e-3
    if degree < 10:
        sets = Counter(frozenset(column) for column in found.t().tolist())
        assert stats.chisquare([sets[frozenset(c)] for c in combinations(range(degree), k)]).pvalue > 1e-3


def test_rows_have_the_loop_first_and_no_neighbor_twice() -> None:
    pattern = whole().pattern
    nodes = torch.arange(50)
    rows = sample_rows(pattern, nodes, 4, KEY)
    bounds = rows.indptr.tolist()
    for node in range(50):
        mine = rows.entries[bounds[node] : bounds[node + 1]]
        first, last = (int(pattern.incoming.indptr[node + i]) for i in (0, 1))
        degree, drawn = last - first - 1, len(mine) - 1
        assert mine[0] == pattern.loops[node] and drawn == min(degree, 4)
        assert len(set(mine.tolist())) == len(mine) and first <= mine.min() and mine.max() < last
        scale = rows.scale[bounds[node] : bounds[node + 1]].tolist()
        assert scale == pytest.approx([1.0, *[degree / max(drawn, 1)] * drawn])


def test_draws_do_not_depend_on_the_other_nodes_of_a_call() -> None:
    pattern, nodes = whole().pattern, torch.randperm(50, generator=torch.Generator().manual_seed(0))
    together = sample_rows(pattern, nodes, 3, KEY)
    for size in (1, 7, 50):
        parts = [sample_rows(pattern, part, 3, KEY) for part in nodes.split(size)]
        assert torch.equal(torch.cat([part.entries for part in parts]), together.entries)
        assert torch.equal(torch.cat([part.scale for part in parts]), together.scale)
    assert not torch.equal(sample_rows(pattern, nodes, 3, Key(1)).entries, together.entries)


@pytest.mark.parametrize("normalization", ["out-in", "in"])
@pytest.mark.parametrize("drop", [0.0, 0.4])
def test_products_of_samples_converge_to_those_of_the_view(normalization: Normalization, drop: float) -> None:
    adjacency, seeds = whole(normalization, drop), torch.arange(0, 50, 3)
    x = torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    expected = (adjacency @ (adjacency @ x))[seeds]
    sampler, draws = NeighborSampler(adjacency, (3, 2)), 400
    found = []
    for step in range(draws):
        part = sampler.sample(seeds, KEY.at_step(step))
        sampled = sampler.adjacency(part)
        found.append(sampled @ (sampled @ x[part.nodes]))
    stacked = torch.stack(found)
    error = (stacked.mean(0) - expected) / (stacked.std(0) / draws**0.5).clamp_min(1e-9)
    assert stacked.std(0).max() > 0.05  # a sample is not the whole
    assert error.abs().max() < 4.5  # standard errors, of 51 numbers


@pytest.mark.parametrize("normalization", ["out-in", "in"])
@pytest.mark.parametrize("fanouts", [(60, 60), (10**9, 10**9, 10**9)])
def test_without_a_limit_a_sample_is_the_whole_neighborhood(
    normalization: Normalization, fanouts: tuple[int, ...]
) -> None:
    adjacency, seeds = whole(normalization, 0.3), torch.tensor([3, 17, 49])
    sampler = NeighborSampler(adjacency, fanouts)
    x = torch.randn(50, 4, dtype=torch.float64, requires_grad=True)
    expected, part = x, sampler.sample(seeds, KEY)
    found, sampled = x[part.nodes], sampler.adjacency(part)
    for _ in fanouts:
        expected, found = adjacency @ expected, sampled @ found
    torch.testing.assert_close(found[:3], expected[seeds])
    one, other = (torch.autograd.grad(y.square().sum(), x)[0] for y in (found[:3], expected[seeds]))
    torch.testing.assert_close(one, other)


def test_views_share_a_neighborhood_and_differ_in_what_they_drop() -> None:
    sampler = NeighborSampler(whole(), (4,))
    clean = sampler.adjacency(sampler.sample(torch.arange(20), KEY))
    first, second = (clean.drop_edges(Key(i), 0.5) for i in range(2))
    assert first.part is second.part is clean.part
    x = torch.randn(clean.part.nodes.numel(), 2, dtype=torch.float64)
    assert not torch.allclose(first @ x, second @ x)


@pytest.mark.parametrize("entries", [1, 7, 1 << 20])
@pytest.mark.parametrize("drop", [0.0, 0.4])
def test_degrees_are_those_of_the_view_however_they_are_counted(
    entries: int, drop: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbor_sampling, "_ENTRIES", entries)
    adjacency = whole(drop=drop)
    for one, other in zip(count_degrees(adjacency.pattern, adjacency.drops), adjacency._degrees, strict=True):
        torch.testing.assert_close(one, other)


def test_rates_may_differ_from_edge_to_edge() -> None:
    adjacency = whole()
    rates = torch.rand(adjacency.num_entries, generator=torch.Generator().manual_seed(2))
    dropped, sampler = adjacency.drop_edges(Key(7), rates), NeighborSampler(adjacency, (99,))
    sampled = sampler.adjacency(sampler.sample(torch.arange(50), KEY)).drop_edges(Key(7), rates)
    x = torch.randn(51, 2, dtype=torch.float64)
    torch.testing.assert_close(sampled @ x, dropped @ x[:50])


def test_degrees_are_counted_once_per_view_and_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Any] = []
    honest = neighbor_sampling.count_degrees
    monkeypatch.setattr(neighbor_sampling, "count_degrees", lambda *a: counted.append(a) or honest(*a))
    sampler = NeighborSampler(whole(), (3,))
    for step in range(4):
        clean = sampler.adjacency(sampler.sample(torch.arange(9), KEY.at_step(step)))
        for view in range(2):
            clean.drop_edges(Key(view), 0.5) @ torch.zeros(clean.part.nodes.numel(), 1, dtype=torch.float64)
    assert len(counted) == 2


def test_a_sampler_forgets_the_neighborhood_before() -> None:
    sampler = NeighborSampler(whole(), (2, 2))
    first = sampler.sample(torch.arange(5), KEY)
    sampler.sample(torch.arange(20, 40), KEY)
    again = sampler.sample(torch.arange(5), KEY)
    assert torch.equal(first.nodes, again.nodes)
    assert all(torch.equal(a.indices, b.indices) for a, b in zip(first.blocks, again.blocks, strict=True))
