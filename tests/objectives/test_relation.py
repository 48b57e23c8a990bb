"""Relations against loops in float64, closed forms, gradcheck and invariances."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import torch
from torch import Tensor

from ssge.objectives.relation import anchored_relation, local_relation

ANCHORS = torch.tensor([7, 2, 5, 0])
NEAR = torch.tensor([[1, 2, 3], [0, -1, -1], [-1, -1, -1], [5, 6, -1], [9, 8, 7], [0, 1, 2], [3, 2, 1], [4, 5, 6],
                     [-1, -1, -1], [1, 4, 8]])  # fmt: skip


def vectors(n: int = 10, d: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(n, d))).requires_grad_(), torch.from_numpy(rng.normal(size=(n, d)))


def divergence(q: np.ndarray, t: np.ndarray, others: np.ndarray, tau_q: float, tau_t: float) -> float:
    """KL of one node's relations, by scipy."""
    q, t = q / np.linalg.norm(q), t / np.linalg.norm(t)
    others = others / np.linalg.norm(others, axis=1, keepdims=True)
    return float(
        scipy.special.rel_entr(
            scipy.special.softmax(others @ t / tau_t), scipy.special.softmax(others @ q / tau_q)
        ).sum()
    )


def test_values_agree_with_scipy() -> None:
    q, t = vectors()
    x, y = q.detach().numpy(), t.numpy()
    expected = np.mean([divergence(x[i], y[i], y[ANCHORS.numpy()], 0.1, 0.05) for i in range(10)])
    assert anchored_relation(q, t, ANCHORS, 0.1, 0.05).item() == pytest.approx(expected, abs=1e-10)
    rows = [(i, [j for j in near if j >= 0]) for i, near in enumerate(NEAR.tolist())]
    local = np.mean([divergence(x[i], y[i], y[js], 0.1, 1.0) for i, js in rows if js])
    assert local_relation(q, t, NEAR, 0.1, 1.0).item() == pytest.approx(local, abs=1e-10)


def test_nothing_is_lost_where_both_sides_agree() -> None:
    _, t = vectors()
    assert anchored_relation(3 * t, t, ANCHORS, 0.1, 0.1).item() == pytest.approx(0, abs=1e-12)
    assert local_relation(3 * t, t, NEAR, 0.1, 0.1).item() == pytest.approx(0, abs=1e-12)
    assert anchored_relation(t, t, ANCHORS, 0.1, 0.05).item() > 1e-3


def test_closed_form_of_two_anchors() -> None:
    """The target sits on one of two orthogonal anchors, the prediction between them."""
    t = torch.eye(2, dtype=torch.float64)
    q = torch.ones(2, 2, dtype=torch.float64)
    p = 1 / (1 + np.exp(-1.0))
    expected = p * np.log(2 * p) + (1 - p) * np.log(2 * (1 - p))
    assert anchored_relation(q, t, torch.tensor([0, 1]), 0.3, 1.0).item() == pytest.approx(expected, abs=1e-12)


def test_one_neighbor_or_none_is_no_relation() -> None:
    q, t = vectors(n=3)
    near = torch.tensor([[1], [-1], [0]])
    assert local_relation(q, t, near, 0.1, 1.0).item() == pytest.approx(0, abs=1e-12)
    alone = local_relation(q, t, torch.full((3, 2), -1), 0.1, 1.0)
    alone.backward()
    assert alone.item() == 0 and q.grad is not None and torch.isfinite(q.grad).all()


def test_gradcheck() -> None:
    q, t = vectors()
    assert torch.autograd.gradcheck(lambda a: anchored_relation(a, t, ANCHORS, 0.3, 0.1), (q,))
    assert torch.autograd.gradcheck(lambda a: local_relation(a, t, NEAR, 0.3, 0.1), (q,))


def test_targets_are_constants() -> None:
    q, t = vectors()
    t.requires_grad_()
    (anchored_relation(q, t, ANCHORS, 0.1, 0.1) + local_relation(q, t, NEAR, 0.1, 0.1)).backward()
    assert t.grad is None and q.grad is not None


def test_invariances() -> None:
    q, t = (x.detach() for x in vectors())
    scale = torch.logspace(-6, 6, 10, dtype=torch.float64).unsqueeze(1)
    far, local = anchored_relation(q, t, ANCHORS, 0.1, 0.05), local_relation(q, t, NEAR, 0.1, 0.05)
    torch.testing.assert_close(anchored_relation(scale * q, t / scale, ANCHORS, 0.1, 0.05), far)
    torch.testing.assert_close(anchored_relation(q, t, ANCHORS.flip(0), 0.1, 0.05), far)
    torch.testing.assert_close(local_relation(scale * q, t / scale, NEAR.flip(1), 0.1, 0.05), local)
    turn = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))[0]
    torch.testing.assert_close(anchored_relation(q @ turn, t @ turn, ANCHORS, 0.1, 0.05), far)
