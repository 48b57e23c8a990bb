"""Held-out features: what they say of blocks, on graphs where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from ssge.datasets import load
from ssge.graph import Graph
from ssge.ops.features import Features
from ssge.ops.held_out import Kernel, held_out_alignments, unit_rows
from ssge.ops.propagation import mean_of_hops
from ssge.views import View

RNG = np.random.default_rng(0)


def alignments(graph: Graph) -> tuple[float, float]:
    """Return those of the features and of their mean over hops."""
    view = View.of(graph, dtype=torch.float64)
    hops = lambda _, given: mean_of_hops(view.adjacency, given, 8, 1 / 9)  # noqa: E731
    own, propagated = held_out_alignments(view.features, [lambda _, given: given, hops])
    return max(own), max(propagated)


def graph_of(signal: float, homophily: float) -> Graph:
    return load(f"sbm:nodes=1000,classes=4,features=40,homophily={homophily},feature_signal={signal}")


@pytest.mark.parametrize("signal", [1, 3])
def test_hops_are_aligned_where_neighbors_are_alike_and_not_among_strangers(signal: float) -> None:
    own, hops = alignments(graph_of(signal, 0.9))
    assert hops > 2 * own > 0
    own, hops = alignments(graph_of(signal, 0.25))
    assert own > 1.1 * hops


def test_noise_is_not_aligned() -> None:
    assert max(alignments(graph_of(0, 0.9))) < 0.005


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
    X = np.where(RNG.random((200, 30)) < 0.3, 1.0, 0.0)
    X[:100, :15] *= 3
    makers = [lambda masked, _: masked @ torch.eye(30, dtype=torch.float64), lambda _, given: given]
    dense, sparse = (
        held_out_alignments(Features.of(matrix, dtype=torch.float64), makers) for matrix in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(dense, sparse)
    np.testing.assert_allclose(dense[0], dense[1])  # a block of a masked view lacks the same columns
    assert 0 < max(dense[0]) < 1


def test_too_little_to_hold_out_is_no_evidence() -> None:
    for shape in ((2, 1), (3, 4), (50, 4)):  # the last one has features, but constant ones
        graph = Graph.of(edges=np.array([[0], [1]]), features=np.ones(shape), dtype=np.float64)
        assert alignments(graph) == (0, 0)


def test_unit_rows_keep_rows_of_zeros() -> None:
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert unit_rows(rows).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0, 0]]
