"""Propagation without weights, against dense matrices in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphs import dense, random_graph
from ssge.ops.adjacency import Adjacency
from ssge.ops.propagation import (
    FILTERS,
    all_filtered,
    coefficients,
    mean_of_hops,
    polynomial,
    power,
    weighted_hops,
)

GRAPH = random_graph(n=40, m=120, weighted=True, directed=True)
H = torch.from_numpy(np.random.default_rng(1).normal(size=(40, 5)))
MATRIX = dense(GRAPH) + np.eye(40)
MATRIX /= np.sqrt(np.outer(MATRIX.sum(axis=1), MATRIX.sum(axis=0)))
ADJACENCY = Adjacency.of(GRAPH.edges, 40, GRAPH.weights, dtype=torch.float64)
HOPS = [np.linalg.matrix_power(MATRIX, k) @ H.numpy() for k in range(7)]
chunks = pytest.mark.parametrize("chunk", [1 << 16, 7])


@chunks
def test_a_power_is_that_of_the_matrix(chunk: int) -> None:
    for hops in (0, 1, 4):
        np.testing.assert_allclose(power(ADJACENCY, H, hops, chunk), HOPS[hops], atol=1e-12)


@chunks
@pytest.mark.parametrize("alpha", [0.0, 0.05, 1.0])
def test_a_mean_of_hops_is_the_sum_of_powers(alpha: float, chunk: int) -> None:
    for hops in (1, 6):
        expected = alpha * HOPS[0] + (1 - alpha) * np.mean(HOPS[1 : hops + 1], axis=0)
        np.testing.assert_allclose(mean_of_hops(ADJACENCY, H, hops, alpha, chunk), expected, atol=1e-12)
    np.testing.assert_allclose(mean_of_hops(ADJACENCY, H, 6, 1 / 7, chunk), np.mean(HOPS, axis=0), atol=1e-12)


@chunks
def test_hops_are_weighted_by_the_softmax_of_cosines(chunk: int) -> None:
    cosines = [(h * HOPS[0]).sum(1) / np.linalg.norm(h, axis=1) / np.linalg.norm(HOPS[0], axis=1) for h in HOPS]
    weights = np.exp(cosines) / np.exp(cosines).sum(axis=0)
    expected = sum(w[:, None] * h for w, h in zip(weights, HOPS, strict=True))
    np.testing.assert_allclose(weighted_hops(ADJACENCY, H, 6, chunk), expected, atol=1e-12)
    zero = torch.zeros_like(H)
    assert torch.equal(weighted_hops(ADJACENCY, zero, 6, chunk), zero)


def test_what_is_given_is_not_changed() -> None:
    before = H.clone()
    power(ADJACENCY, H, 2)
    mean_of_hops(ADJACENCY, H, 2, 0.1)
    weighted_hops(ADJACENCY, H, 2)
    assert torch.equal(H, before)


def test_filters_share_their_hops() -> None:
    found = list(all_filtered(ADJACENCY, H, chunk=7))
    assert len(found) == len(FILTERS)
    for rows, hop in zip(found, (0, 2, 4), strict=False):
        np.testing.assert_allclose(rows, HOPS[hop], atol=1e-12)
    torch.testing.assert_close(found[4], mean_of_hops(ADJACENCY, H, 8, 1 / 9))


@chunks
def test_a_polynomial_is_the_sum_of_its_terms(chunk: int) -> None:
    weights = [0.5, 0.0, -2.0, 1.5, 0.0, 0.0]
    expected = 0.5 * HOPS[0] - 2 * HOPS[2] + 1.5 * HOPS[3]
    np.testing.assert_allclose(polynomial(ADJACENCY, H, weights, chunk), expected, atol=1e-12)
    assert not polynomial(ADJACENCY, H, [0.0, 0.0], chunk).any()


def test_a_mixture_of_filters_is_one_polynomial() -> None:
    mixture = [0.3, 1.0, 0.0, 0.2, 0.7]
    expected = sum(m * rows for m, rows in zip(mixture, all_filtered(ADJACENCY, H), strict=True))
    torch.testing.assert_close(polynomial(ADJACENCY, H, coefficients(mixture).tolist()), expected)
