"""Skip-gram against loops over pairs in float64, closed forms and gradcheck; the Huffman tree against a heap."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from ssge.objectives.skipgram import hierarchical_softmax, huffman, negative_sampling, pieces

D = 3


def vectors(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


def walks(count: int, length: int, n: int) -> tuple[Tensor, Tensor]:
    """Return random walks on n nodes of which the last has ended at once, and one half-way."""
    rows = torch.randint(n, (count, length), generator=torch.Generator().manual_seed(5))
    there = torch.ones_like(rows, dtype=torch.bool)
    there[-1, 1:], there[0, length // 2 :] = False, False
    return rows, there


def pairs_of(rows: Tensor, there: Tensor, window: int) -> list[tuple[int, int]]:
    """Return all pairs (center, context), one by one."""
    found = []
    for walk, present in zip(rows.tolist(), there.tolist(), strict=True):
        for i, center in enumerate(walk):
            for j, context in enumerate(walk):
                if i != j and abs(i - j) <= window and present[i] and present[j]:
                    found.append((center, context))
    return found


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize(("length", "window"), [(12, 2), (7, 3), (5, 9), (2, 1), (9, 1)])
def test_pieces_hold_every_pair_once(length: int, window: int) -> None:
    rows, there = walks(4, length, 50)
    cut = pieces(rows, there, window)
    piece, inner, outer = cut.pairs.nonzero(as_tuple=True)
    found = zip(cut.inner[piece, inner].tolist(), cut.outer[piece, outer].tolist(), strict=True)
    assert sorted(found) == sorted(pairs_of(rows, there, window))


@pytest.mark.parametrize("window", [1, 3])
def test_negative_sampling_agrees_with_a_loop_over_pairs(window: int) -> None:
    n, negatives = 9, 5.0
    phi, theta = vectors(n, D), vectors(n, D, seed=1)
    rows, there = walks(5, 8, n)
    noise = torch.tensor([0, 4, 4, 8])
    cut = pieces(rows, there, window, torch.float64)
    ours = negative_sampling(phi[cut.inner], theta[cut.outer], cut.pairs, theta[noise], negatives)
    a, b = phi.detach().numpy(), theta.detach().numpy()
    pairs = pairs_of(rows, there, window)
    total = 0.0
    for i, j in pairs:
        total -= math.log(sigmoid(a[i] @ b[j]))
        total -= negatives / 4 * sum(math.log(sigmoid(-a[i] @ b[m])) for m in noise.tolist())
    assert ours.item() == pytest.approx(total / len(pairs), rel=1e-12)


@pytest.mark.parametrize("window", [1, 3])
def test_hierarchical_softmax_agrees_with_a_loop_over_pairs(window: int) -> None:
    n = 9
    tree = huffman(torch.tensor([5.0, 1, 1, 8, 2, 3, 0, 1, 20]))
    phi, theta = vectors(n, D), vectors(n - 1, D, seed=1)
    rows, there = walks(5, 8, n)
    cut = pieces(rows, there, window, torch.float64)
    side = tree.side[cut.inner].double()
    ours = hierarchical_softmax(phi[cut.outer], theta[tree.path[cut.inner]], side, cut.pairs)
    a, b = phi.detach().numpy(), theta.detach().numpy()
    pairs = pairs_of(rows, there, window)
    total = 0.0
    for i, j in pairs:
        for node, s in zip(tree.path[j].tolist(), tree.side[j].tolist(), strict=True):
            if s:
                total -= math.log(sigmoid(s * (a[i] @ b[node])))
    assert ours.item() == pytest.approx(total / len(pairs), rel=1e-12)


def test_gradcheck() -> None:
    rows, there = walks(2, 5, 6)
    cut = pieces(rows, there, 2, torch.float64)
    tree = huffman(torch.tensor([3.0, 1, 1, 2, 7, 4]))
    noise = torch.tensor([0, 5, 5])

    def negative(phi: Tensor, theta: Tensor) -> Tensor:
        return negative_sampling(phi[cut.inner], theta[cut.outer], cut.pairs, theta[noise], 5)

    def hierarchical(phi: Tensor, theta: Tensor) -> Tensor:
        side = tree.side[cut.inner].double()
        return hierarchical_softmax(phi[cut.outer], theta[tree.path[cut.inner]], side, cut.pairs)

    assert torch.autograd.gradcheck(negative, (vectors(6, D), vectors(6, D, seed=1)))
    assert torch.autograd.gradcheck(hierarchical, (vectors(6, D), vectors(5, D, seed=1)))


def test_closed_forms_at_zero() -> None:
    """With all vectors zero every comparison is a toss: log 2 each."""
    rows, there = walks(3, 8, 8)
    cut = pieces(rows, there, 2, torch.float64)
    zero = torch.zeros(8, D, dtype=torch.float64)
    loss = negative_sampling(zero[cut.inner], zero[cut.outer], cut.pairs, zero[:5], 7)
    assert loss.item() == pytest.approx(8 * math.log(2))
    tree = huffman(torch.ones(8))  # a full tree of depth 3
    side = tree.side[cut.inner].double()
    loss = hierarchical_softmax(zero[cut.outer], zero[tree.path[cut.inner]], side, cut.pairs)
    assert loss.item() == pytest.approx(3 * math.log(2))


def test_no_pairs_no_loss() -> None:
    rows = torch.zeros(2, 6, dtype=torch.int64)
    there = torch.zeros_like(rows, dtype=torch.bool)
    cut = pieces(rows, there, 2, torch.float64)
    phi = vectors(1, D)
    loss = negative_sampling(phi[cut.inner], phi[cut.outer], cut.pairs, phi, 5)
    loss.backward()
    assert loss.item() == 0
    assert phi.grad is not None
    assert phi.grad.abs().max() == 0


FREQUENCIES = {
    "equal": np.ones(37),
    "degrees": np.random.default_rng(0).zipf(1.8, 300).clip(max=1000),
    "with zeros": np.array([0, 0, 0, 4, 1, 1, 0, 9]),
    "fibonacci": np.array([1, 1, 2, 3, 5, 8, 13, 21, 34, 55]),
    "real": np.random.default_rng(1).exponential(size=101),
    "two": np.array([3, 1]),
}


def least_cost(frequency: np.ndarray) -> float:
    """Return the mean code length times the sum of frequencies, by the textbook's heap."""
    heap = [float(f) for f in frequency]
    heapq.heapify(heap)
    cost = 0.0
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        cost += joined
        heapq.heappush(heap, joined)
    return cost


@pytest.mark.parametrize("case", list(FREQUENCIES))
def test_huffman_tree_is_optimal_and_prefix_free(case: str) -> None:
    frequency = FREQUENCIES[case]
    tree = huffman(torch.from_numpy(frequency))
    lengths = (tree.side != 0).sum(1).numpy()
    assert (frequency * lengths).sum() == pytest.approx(least_cost(frequency), rel=1e-12)
    assert sum(2.0**-length for length in lengths.tolist()) == pytest.approx(1)  # complete
    codes = [tuple(s for s in row if s)[::-1] for row in tree.side.tolist()]  # from the root on
    assert len({code[:k] for code in codes for k in [len(code)]}) == len(codes)
    inside = {code[:k] for code in codes for k in range(len(code))}
    assert not inside & set(codes)  # no code is the beginning of another
    inner = {
        int(u) for row, sides in zip(tree.path, tree.side, strict=True) for u, s in zip(row, sides, strict=True) if s
    }
    assert inner == set(range(len(frequency) - 1))


@pytest.mark.parametrize("case", list(FREQUENCIES))
def test_probabilities_over_all_leaves_sum_to_one(case: str) -> None:
    tree = huffman(torch.from_numpy(FREQUENCIES[case]))
    n = len(tree.path)
    phi, theta = vectors(4, D).detach(), 2 * vectors(n - 1, D, seed=1).detach()
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    for center in phi:
        losses = [
            hierarchical_softmax(center[None, None], theta[path][None, None], side.double()[None, None], one)
            for path, side in zip(tree.path, tree.side, strict=True)
        ]
        assert torch.stack(losses).neg().exp().sum().item() == pytest.approx(1, abs=1e-12)


def test_one_leaf_needs_no_choice() -> None:
    tree = huffman(torch.ones(1))
    assert tree.path.shape == tree.side.shape == (1, 0)
