"""W-MSE against numpy in float64, closed forms, gradcheck, invariances, and what cannot be whitened."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.objectives.whitening import w_mse, whiten


def views(n: int = 20, d: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    u, v = torch.randn(2, n, d, dtype=torch.float64, generator=generator)
    return u.clone().requires_grad_(), v.clone().requires_grad_()


def reference(h: np.ndarray, shrinkage: float) -> np.ndarray:
    covariance = np.cov(h, rowvar=False)
    factor = np.linalg.cholesky((1 - shrinkage) * covariance + shrinkage * np.diag(np.diag(covariance)))
    return np.array([np.linalg.inv(factor) @ (row - h.mean(0)) for row in h])


@pytest.mark.parametrize("shrinkage", [0.0, 1e-3, 0.5, 1.0])
def test_values_agree_with_numpy(shrinkage: float) -> None:
    u, v = views()
    x, y = (reference(z.detach().numpy(), shrinkage) for z in (u, v))
    np.testing.assert_allclose(whiten(u, shrinkage).detach().numpy(), x, atol=1e-12)
    x, y = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    assert w_mse(u, v, shrinkage).item() == pytest.approx(np.mean(((x - y) ** 2).sum(1)))


def test_whitened_rows_have_covariance_one() -> None:
    w = whiten(views(50, 6)[0] @ torch.randn(6, 6, dtype=torch.float64), 0.0)
    torch.testing.assert_close(torch.cov(w.t()), torch.eye(6, dtype=torch.float64))
    torch.testing.assert_close(w.mean(0), torch.zeros(6, dtype=torch.float64))


def test_equal_views_lose_nothing_and_opposite_ones_most() -> None:
    u, _ = views()
    assert w_mse(u, u).item() == pytest.approx(0, abs=1e-14)
    assert w_mse(u, -u).item() == pytest.approx(4)


def test_shift_and_scale_of_a_view_do_not_matter() -> None:
    u, v = (x.detach() for x in views())
    columns = torch.tensor([1e-3, 1.0, 50.0, 7.0], dtype=torch.float64)
    torch.testing.assert_close(w_mse(u * columns + 5, v, 0.0), w_mse(u, v, 0.0))
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(w_mse(u[order], v[order]), w_mse(u, v))


def test_gradcheck() -> None:
    u, v = views(9, 3)
    assert torch.autograd.gradcheck(w_mse, (u, v))
    assert torch.autograd.gradcheck(lambda a, b: w_mse(a, b, 0.3), (u, v))


def test_descent_aligns_views_without_collapse() -> None:
    u, v = views()
    optimizer = torch.optim.SGD([u, v], lr=5.0)
    before = w_mse(u, v).item()
    for _ in range(200):
        optimizer.zero_grad()
        w_mse(u, v).backward()
        optimizer.step()
    assert w_mse(u, v).item() < before / 4
    assert torch.linalg.matrix_rank(u.detach() - u.detach().mean(0)).item() == 4


def test_dead_columns_and_few_rows() -> None:
    u, v = (x.detach().float() for x in views())
    u[:, 2] = 3.0
    u.requires_grad_()
    loss = w_mse(u, v)
    loss.backward()
    assert torch.isfinite(loss) and u.grad is not None and torch.isfinite(u.grad).all()
    assert torch.isfinite(w_mse(*views(3, 8)))
    with pytest.raises(InputError, match=r"3 rows in 8 dimensions is singular; shrinkage must be larger than 0\.0"):
        w_mse(torch.ones(3, 8), torch.ones(3, 8), 0.0)
    with pytest.raises(InputError, match="at least 2 rows"):
        whiten(torch.ones(1, 2))
    with pytest.raises(InputError, match="shrinkage must be from 0 to 1"):
        whiten(u, -0.1)


@pytest.mark.parametrize("shrinkage", [1e-3, 0.3])
def test_shrinkage_is_that_of_standardized_columns(shrinkage: float) -> None:
    u, v = (x.detach() for x in views())
    columns = torch.tensor([1e-6, 1.0, 50.0, 7.0], dtype=torch.float64)
    standard = [x / x.std(0) for x in (u, v)]
    expected = w_mse(*standard, shrinkage)
    torch.testing.assert_close(w_mse(u * columns + 5, v, shrinkage), expected)


def test_shrinkage_leaves_a_constant_column_at_zero() -> None:
    u = views()[0].detach().clone()
    u[:, 2] = 3.0
    assert (whiten(u, 1e-3)[:, 2].abs() < 1e-6).all()
    assert torch.isfinite(whiten(u, 1e-3)).all()
