"""Cross entropy over labeled nodes: a float64 reference, closed forms, gradients, invariances, descent."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
import torch
from torch import Tensor

from ssge.objectives.classification import UNKNOWN, cross_entropy

N, K = 30, 4


def inputs(seed: int = 0, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(K, size=N)
    labels[rng.permutation(N)[: N // 2]] = UNKNOWN
    return torch.from_numpy(rng.normal(size=(N, K)) * scale).requires_grad_(), torch.from_numpy(labels)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_value_and_accuracy_agree_with_scipy(scale: float) -> None:
    scores, labels = inputs(scale=scale)
    array, known = scores.detach().numpy(), np.flatnonzero(labels.numpy() >= 0)
    expected = -np.mean([scipy.special.log_softmax(array[i])[labels[i]] for i in known])
    losses = cross_entropy(scores, labels)
    assert losses.total.item() == pytest.approx(expected, rel=1e-12)
    right = np.mean([array[i].argmax() == labels[i].item() for i in known])
    assert losses.terms["training_accuracy"].item() == pytest.approx(right)
    assert not losses.terms["training_accuracy"].requires_grad


def test_gradcheck() -> None:
    scores, labels = inputs()
    assert torch.autograd.gradcheck(lambda s: cross_entropy(s, labels).total, (scores,))


def test_gradient_is_softmax_less_one_hot_and_zero_without_a_label() -> None:
    scores, labels = inputs()
    (gradient,) = torch.autograd.grad(cross_entropy(scores, labels).total, scores)
    known = labels != UNKNOWN
    expected = torch.softmax(scores.detach(), 1) - torch.eye(K).double()[labels.clamp_min(0)]
    torch.testing.assert_close(gradient, expected * known[:, None] / known.sum())
    assert torch.equal(gradient[~known], torch.zeros_like(gradient[~known]))


def test_closed_forms() -> None:
    labels = torch.tensor([0, UNKNOWN, 2])
    assert cross_entropy(torch.zeros(3, K), labels).total.item() == pytest.approx(math.log(K))
    sure = 50 * torch.eye(3, K)
    assert cross_entropy(sure, labels).total.item() == pytest.approx(0, abs=1e-12)
    assert cross_entropy(sure, labels).terms["training_accuracy"].item() == 1
    assert cross_entropy(sure.flip(1), labels).total.item() == pytest.approx(50, rel=1e-6)


def test_a_shift_of_a_row_changes_nothing_and_neither_do_scores_of_other_nodes() -> None:
    scores, labels = inputs()
    plain = cross_entropy(scores, labels)
    shifted = cross_entropy(scores + torch.arange(N).double()[:, None], labels)
    torch.testing.assert_close(shifted.total, plain.total)
    other = torch.where((labels == UNKNOWN)[:, None], torch.randn(N, K).double(), scores)
    assert torch.equal(cross_entropy(other, labels).total, plain.total)


def test_descent_brings_it_to_zero() -> None:
    scores, labels = inputs()
    before = cross_entropy(scores, labels).total.item()
    for _ in range(50):
        (gradient,) = torch.autograd.grad(cross_entropy(scores, labels).total, scores)
        scores = (scores - 20 * gradient).detach().requires_grad_()
    assert cross_entropy(scores, labels).total.item() < before / 10
    assert cross_entropy(scores, labels).terms["training_accuracy"].item() == 1
