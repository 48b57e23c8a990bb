"""Canonical correlation and Barlow Twins against float64 references, closed forms, gradcheck and descent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from ssge.objectives import Losses
from ssge.objectives.decorrelation import barlow, cca
from ssge.objectives.gaussian import alignment, wasserstein_uniformity
from ssge.ops.moments import CollapseWarning

LAMBDA = 0.3
OBJECTIVES: dict[str, Callable[..., Losses]] = {
    "cca": lambda a, b, w=None: cca(a, b, LAMBDA, w),
    "barlow": lambda a, b, w=None: barlow(a, b, None, w),
    "barlow, own weight": lambda a, b, w=None: barlow(a, b, LAMBDA, w),
}
every_objective = pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)


def views(n: int = 40, d: int = 6, seed: int = 0, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * scale + rng.normal(size=d) * scale
    noisy = base + 0.3 * scale * rng.normal(size=(n, d))
    return torch.from_numpy(base).requires_grad_(), torch.from_numpy(noisy).requires_grad_()


def white(n: int = 9, d: int = 4) -> Tensor:
    """Centered orthonormal columns."""
    ones_first = torch.cat([torch.ones(n, 1), torch.randn(n, d, generator=torch.Generator().manual_seed(0))], 1)
    return torch.linalg.qr(ones_first.double())[0][:, 1:].contiguous()


def standardized(z: Tensor) -> Tensor:
    return (z - z.mean(0)) / z.std(0)


def reference_cca(z1: Tensor, z2: Tensor) -> dict[str, Tensor]:
    h1, h2 = standardized(z1), standardized(z2)
    n, d = h1.shape
    invariant = -torch.trace(h1.T @ h2) / n
    identity = torch.eye(d, dtype=h1.dtype)
    decorrelated = sum((torch.linalg.matrix_norm(h.T @ h / n - identity) ** 2 for h in (h1, h2)), torch.tensor(0.0))
    return {"alignment": invariant, "decorrelation": decorrelated, "total": invariant + LAMBDA * decorrelated}


def reference_barlow(z1: Tensor, z2: Tensor, weight: float) -> dict[str, Tensor]:
    """Entry by entry."""
    h1, h2 = standardized(z1), standardized(z2)
    n, d = h1.shape
    invariance, redundancy = torch.zeros((), dtype=h1.dtype), torch.zeros((), dtype=h1.dtype)
    for i in range(d):
        for j in range(d):
            c = (h1[:, i] @ h2[:, j]) / n
            if i == j:
                invariance = invariance + (1 - c) ** 2
            else:
                redundancy = redundancy + c**2
    return {"invariance": invariance, "redundancy": redundancy, "total": invariance + weight * redundancy}


REFERENCES: dict[str, Callable[[Tensor, Tensor], dict[str, Tensor]]] = {
    "cca": reference_cca,
    "barlow": lambda a, b: reference_barlow(a, b, 1 / a.shape[1]),
    "barlow, own weight": lambda a, b: reference_barlow(a, b, LAMBDA),
}


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e4])
def test_values_and_gradients_are_those_of_the_formula(name: str, scale: float) -> None:
    z1, z2 = views(scale=scale)
    losses, expected = OBJECTIVES[name](z1, z2), REFERENCES[name](z1, z2)
    assert losses.terms.keys() == expected.keys() - {"total"}
    for key, value in (losses.terms | {"total": losses.total}).items():
        torch.testing.assert_close(value, expected[key], rtol=0, atol=1e-10)
    ours = torch.autograd.grad(losses.total, (z1, z2))
    theirs = torch.autograd.grad(expected["total"], (z1, z2))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a * scale, b * scale, rtol=0, atol=1e-10)


@every_objective
def test_gradcheck(objective: Callable[..., Losses]) -> None:
    z1, z2 = views(n=12, d=4)
    assert torch.autograd.gradcheck(lambda a, b: objective(a, b).total, (z1, z2))


@every_objective
@pytest.mark.parametrize("widths", [(4, 4), (3, 5), (5, 3)])
def test_gradcheck_with_a_folded_layer(objective: Callable[..., Losses], widths: tuple[int, int]) -> None:
    u1, u2 = views(n=12, d=widths[0])
    weight = torch.randn(*widths, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    torch.testing.assert_close(objective(u1, u2, weight).total, objective(u1 @ weight, u2 @ weight).total)
    assert torch.autograd.gradcheck(lambda a, b, w: objective(a, b, w).total, (u1, u2, weight))


def test_closed_forms() -> None:
    """White views reach the bounds; equal columns of both views give the all-ones matrix, up to (n-1)/n."""
    n, d = 9, 4
    z = white(n, d)
    assert cca(z, z, LAMBDA).total.item() == pytest.approx(-d * (n - 1) / n + LAMBDA * 2 * d / n**2)
    assert barlow(z, z).total.item() == pytest.approx(d / n**2)
    turned = z.roll(1, 1)  # column i of one view is column i + 1 of the other: all is redundancy
    assert barlow(z, turned).terms["invariance"].item() == pytest.approx(d)
    assert barlow(z, turned).terms["redundancy"].item() == pytest.approx(d * ((n - 1) / n) ** 2)
    assert cca(z, turned, LAMBDA).terms["alignment"].item() == pytest.approx(0, abs=1e-12)
    equal = z[:, :1].repeat(1, d)
    off, on = ((n - 1) / n) ** 2, 1 / n**2
    decorrelation = cca(equal, equal, LAMBDA).terms["decorrelation"].item()
    assert decorrelation == pytest.approx(2 * (d * (d - 1) * off + d * on))
    assert barlow(equal, equal, 1.0).terms["redundancy"].item() == pytest.approx(d * (d - 1) * off)


def test_barlow_of_equal_views_is_half_the_decorrelation() -> None:
    """C is then the correlation matrix itself: with weight 1, |C - I|^2."""
    z = views()[0]
    torch.testing.assert_close(barlow(z, z, 1.0).total, cca(z, z, 1.0).terms["decorrelation"] / 2, check_dtype=False)


def test_shares_its_alignment_and_its_minimiser_with_the_gaussian_objective() -> None:
    z1, z2 = views()
    torch.testing.assert_close(cca(z1, z2, LAMBDA).terms["alignment"], alignment(z1, z2).detach())
    columns = white()
    assert wasserstein_uniformity(columns).item() == pytest.approx(0, abs=1e-10)
    for objective in OBJECTIVES.values():
        z1, z2 = columns.clone().requires_grad_(), columns.clone().requires_grad_()
        objective(z1, z2).total.backward()
        for z in (z1, z2):
            assert z.grad is not None
            torch.testing.assert_close(z.grad, torch.zeros_like(z), rtol=0, atol=1e-10)


@every_objective
def test_descent_aligns_and_decorrelates(objective: Callable[..., Losses]) -> None:
    z1, z2 = views(seed=3)
    optimizer = torch.optim.Adam([z1, z2], lr=0.05)
    for _ in range(300):
        optimizer.zero_grad()
        objective(z1, z2).total.backward()
        optimizer.step()
    h1, h2 = standardized(z1.detach()), standardized(z2.detach())
    torch.testing.assert_close(h1.T @ h2 / 39, torch.eye(6, dtype=torch.float64), rtol=0, atol=0.05)


@every_objective
def test_invariances(objective: Callable[..., Losses]) -> None:
    z1, z2 = (z.detach() for z in views())
    total = objective(z1, z2).total
    torch.testing.assert_close(objective(z2, z1).total, total)
    order = torch.randperm(len(z1), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(objective(z1[order], z2[order]).total, total)
    torch.testing.assert_close(objective(3 * z1 + 5, 0.1 * z2 - 2).total, total)
    columns = torch.tensor([2, 0, 1, 5, 3, 4])
    torch.testing.assert_close(objective(z1[:, columns], z2[:, columns]).total, total)
    signs = torch.tensor([1.0, -1, 1, -1, -1, 1], dtype=torch.float64)
    torch.testing.assert_close(objective(z1 * signs, z2 * signs).total, total)
    assert objective(z1, z2 * signs).total > total


@pytest.mark.filterwarnings("ignore::ssge.ops.moments.CollapseWarning")
@every_objective
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", ["constant column", "rank one", "n <= d", "all equal", "two rows"])
def test_finite_where_the_released_codes_are_not(
    objective: Callable[..., Losses], case: str, dtype: torch.dtype
) -> None:
    z = torch.randn(20, 5, generator=torch.Generator().manual_seed(1), dtype=dtype)
    if case == "constant column":
        z[:, 2] = 0.1
    elif case == "rank one":
        z = z[:, :1] * torch.arange(1, 6, dtype=dtype)
    elif case == "n <= d":
        z = z[:4].contiguous()
    elif case == "all equal":
        z = torch.full_like(z, 3.3)
    else:
        z = z[:2].contiguous()
    z1, z2 = z.clone().requires_grad_(), (z + 0.01 * z.flip(0)).requires_grad_()
    losses = objective(z1, z2)
    losses.total.backward()
    assert losses.total.dtype == dtype
    for tensor in (losses.total, z1.grad, z2.grad):
        assert tensor is not None
        assert torch.isfinite(tensor).all()


@every_objective
def test_collapse_is_said(objective: Callable[..., Losses]) -> None:
    z = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    z[:, 1] = 7.0
    with pytest.warns(CollapseWarning, match="1 of 3 columns"):
        objective(z, z)
    with pytest.warns(CollapseWarning, match="3 nodes cannot fill 3 dimensions"):
        objective(z[:3] + torch.eye(3), z[:3] + torch.eye(3))
