"""Cosine regression against loops in float64, closed forms, gradcheck and invariances."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ssge.objectives.prediction import cosine_regression, paired_cosine_regression


def vectors(n: int = 12, d: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(n, d))).requires_grad_(), torch.from_numpy(rng.normal(size=(n, d)))


def some_pairs(n: int = 12, count: int = 30, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, n, size=(2, count)))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_values_agree_with_loops() -> None:
    q, t = vectors()
    x, y = q.detach().numpy(), t.numpy()
    expected = np.mean([1 - cosine(a, b) for a, b in zip(x, y, strict=True)])
    assert cosine_regression(q, t).item() == pytest.approx(expected, abs=1e-12)
    pairs = some_pairs()
    both = [2 - 2 * cosine(x[i], y[j]) + 2 - 2 * cosine(x[j], y[i]) for i, j in pairs.T.tolist()]
    assert paired_cosine_regression(q, t, pairs).item() == pytest.approx(np.mean(both), abs=1e-12)


def test_pairs_of_equal_rows_are_the_regression_over_rows() -> None:
    q, t = vectors()
    own = torch.arange(12).repeat(2, 1)
    torch.testing.assert_close(paired_cosine_regression(q, t, own), 4 * cosine_regression(q, t))


def test_gradcheck() -> None:
    q, t = vectors(n=6, d=3)
    assert torch.autograd.gradcheck(lambda a: cosine_regression(a, t), (q,))
    assert torch.autograd.gradcheck(lambda a: paired_cosine_regression(a, t, some_pairs(6, 10)), (q,))


def test_targets_are_constants() -> None:
    q, t = vectors()
    t.requires_grad_()
    (cosine_regression(q, t) + paired_cosine_regression(q, t, some_pairs())).backward()
    assert t.grad is None and q.grad is not None


def test_closed_forms() -> None:
    _, t = vectors()
    assert cosine_regression(3 * t, t).item() == pytest.approx(0, abs=1e-12)
    assert cosine_regression(-t, t).item() == pytest.approx(2, abs=1e-12)
    axes = torch.eye(4, dtype=torch.float64)
    assert cosine_regression(axes, axes.roll(1, 0)).item() == 1
    assert paired_cosine_regression(axes, axes, torch.tensor([[0, 1], [1, 2]])).item() == 4
    assert paired_cosine_regression(-axes, axes, torch.tensor([[0, 3], [0, 3]])).item() == 8
    zero = torch.zeros(4, 4, dtype=torch.float64, requires_grad=True)
    loss = cosine_regression(zero, axes)
    loss.backward()
    assert loss.item() == 1 and zero.grad is not None and torch.isfinite(zero.grad).all()


def test_row_scale_and_order_of_pairs_do_not_matter() -> None:
    q, t = (x.detach() for x in vectors())
    scale = torch.logspace(-6, 6, 12, dtype=torch.float64).unsqueeze(1)
    pairs = some_pairs()
    for loss in (cosine_regression, lambda a, b: paired_cosine_regression(a, b, pairs)):
        torch.testing.assert_close(loss(scale * q, t / scale), loss(q, t), rtol=0, atol=1e-12)
    torch.testing.assert_close(paired_cosine_regression(q, t, pairs.flip(0, 1)), paired_cosine_regression(q, t, pairs))


def test_descent_finds_the_targets() -> None:
    q, t = vectors()
    optimizer = torch.optim.Adam([q], lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        loss = cosine_regression(q, t)
        loss.backward()
        optimizer.step()
    assert loss.item() < 1e-3
