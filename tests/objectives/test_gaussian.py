"""The objective against an independent float64 reference, closed forms, gradcheck and descent."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from ssge.objectives.gaussian import alignment, gaussian, trace_sqrt, wasserstein_uniformity
from ssge.ops.moments import CollapseWarning

LAMBDA = 0.7
NO_FLOOR = 1e-14  # so low that it plays no part, for comparison with the formulas of the paper


def views(n: int = 40, d: int = 6, seed: int = 0, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * scale + rng.normal(size=d) * scale
    noisy = base + 0.3 * scale * rng.normal(size=(n, d))
    return torch.from_numpy(base).requires_grad_(), torch.from_numpy(noisy).requires_grad_()


def reference_terms(z1: np.ndarray, z2: np.ndarray) -> tuple[float, float]:
    """The formulas of the paper, row by row, with scipy's matrix square root."""
    n, d = z1.shape
    h1, h2 = ((z - z.mean(0)) / z.std(0, ddof=1) for z in (z1, z2))
    aligned = -sum(float(h1[i] @ h2[i]) for i in range(n)) / n
    uniform = 0.0
    for h in (h1, h2):
        sigma = h.T @ h / (n - 1)
        uniform += 0.5 * (np.trace(sigma) + d - 2 * np.trace(scipy.linalg.sqrtm(sigma)).real)
    return aligned, uniform


def autograd_reference(z1: Tensor, z2: Tensor) -> Tensor:
    """The same formulas through torch's own autograd: standardized copies and eigvalsh."""
    n, d = z1.shape
    h1, h2 = ((z - z.mean(0)) / z.std(0) for z in (z1, z2))
    roots = [torch.linalg.eigvalsh(h.T @ h / (n - 1)).sqrt().sum() for h in (h1, h2)]
    return -(h1 * h2).sum() / n + LAMBDA * (2 * d - roots[0] - roots[1])


@pytest.mark.parametrize("scale", [1.0, 1e-4, 1e4])
def test_value_agrees_with_scipy(scale: float) -> None:
    z1, z2 = views(scale=scale)
    losses = gaussian(z1, z2, LAMBDA, floor=NO_FLOOR)
    aligned, uniform = reference_terms(z1.detach().numpy(), z2.detach().numpy())
    assert losses.terms["alignment"].item() == pytest.approx(aligned, abs=1e-10)
    assert losses.terms["uniformity"].item() == pytest.approx(uniform, abs=1e-10)
    assert losses.total.item() == pytest.approx(aligned + LAMBDA * uniform, abs=1e-10)
    assert alignment(z1, z2).item() == pytest.approx(aligned, abs=1e-10)
    both = wasserstein_uniformity(z1, NO_FLOOR) + wasserstein_uniformity(z2, NO_FLOOR)
    assert both.item() / 2 == pytest.approx(uniform, abs=1e-10)


def test_gradient_agrees_with_autograd() -> None:
    z1, z2 = views()
    ours = torch.autograd.grad(gaussian(z1, z2, LAMBDA, floor=NO_FLOOR).total, (z1, z2))
    theirs = torch.autograd.grad(autograd_reference(z1, z2), (z1, z2))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("uniformity_weight", "alignment_weight"), [(LAMBDA, 1.0), (0.0, 1.0), (1.0, 0.0)])
def test_gradcheck(uniformity_weight: float, alignment_weight: float) -> None:
    z1, z2 = views(n=12, d=4)
    assert torch.autograd.gradcheck(lambda a, b: gaussian(a, b, uniformity_weight, alignment_weight).total, (z1, z2))


def test_gradcheck_of_each_term() -> None:
    z1, z2 = views(n=12, d=4)
    assert torch.autograd.gradcheck(alignment, (z1, z2))
    assert torch.autograd.gradcheck(wasserstein_uniformity, (z1,))


def test_gradcheck_of_trace_sqrt_below_the_floor() -> None:
    basis = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))[0]
    matrix = (basis * torch.tensor([2.0, 0.7, 0.02, 0.01], dtype=torch.float64)) @ basis.T

    def root(m: Tensor) -> Tensor:
        return trace_sqrt((m + m.T) / 2, 0.05)[0]

    assert torch.autograd.gradcheck(root, (matrix.requires_grad_(),))


def test_closed_forms() -> None:
    d = 4
    white = torch.linalg.qr(torch.cat([torch.ones(9, 1), torch.randn(9, d)], 1).double())[0][
        :, 1:
    ]  # centered, orthonormal
    assert wasserstein_uniformity(white).item() == pytest.approx(0, abs=1e-10)
    assert alignment(white, white).item() == pytest.approx(-d * 8 / 9)
    rank_one = torch.arange(9.0).double()[:, None] * torch.tensor([1.0, -2.0, 3.0, 0.5]).double()
    floor = 1e-12
    expected = 2 * d - 2 * (d**0.5 + (d - 1) * floor**0.5 / 2)
    assert wasserstein_uniformity(rank_one, floor).item() == pytest.approx(expected, abs=1e-4)
    singular = np.linalg.svd(_standardized(views()[0].detach().numpy()), compute_uv=False)
    assert wasserstein_uniformity(views()[0], NO_FLOOR).item() == pytest.approx(2 * 6 - 2 * singular.sum() / 39**0.5)


def _standardized(z: np.ndarray) -> np.ndarray:
    return (z - z.mean(0)) / z.std(0, ddof=1)


def test_gradient_vanishes_at_the_optimum() -> None:
    columns = torch.linalg.qr(torch.cat([torch.ones(9, 1), torch.randn(9, 4)], 1).double())[0][:, 1:].requires_grad_()
    wasserstein_uniformity(columns).backward()
    assert columns.grad is not None
    torch.testing.assert_close(columns.grad, torch.zeros_like(columns), rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore::ssge.ops.moments.CollapseWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("mode", ["tangent", "clamp"])
@pytest.mark.parametrize("case", ["identity", "rank one", "constant column", "n <= d", "all equal", "two rows"])
def test_finite_where_others_are_not(case: str, mode: str, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    z = torch.randn(20, 5, generator=generator, dtype=dtype)
    if case == "identity":
        z = torch.linalg.qr(torch.cat([torch.ones(20, 1, dtype=dtype), z], 1))[0][:, 1:].contiguous()
    elif case == "rank one":
        z = z[:, :1] * torch.arange(1, 6, dtype=dtype)
    elif case == "constant column":
        z[:, 2] = 0.1
    elif case == "n <= d":
        z = z[:4].contiguous()
    elif case == "all equal":
        z = torch.full_like(z, 3.3)
    elif case == "two rows":
        z = z[:2].contiguous()
    z1, z2 = z.clone().requires_grad_(), (z + 0.01 * z.flip(0)).requires_grad_()
    losses = gaussian(z1, z2, LAMBDA, floor_mode=mode)  # type: ignore[arg-type]
    losses.total.backward()
    assert torch.isfinite(losses.total)
    for tensor in (z1.grad, z2.grad):
        assert tensor is not None
        assert torch.isfinite(tensor).all()


def test_collapse_is_said() -> None:
    z = torch.randn(20, 3)
    z[:, 1] = 7.0
    with pytest.warns(CollapseWarning, match="1 of 3 columns"):
        wasserstein_uniformity(z)
    with pytest.warns(CollapseWarning, match="3 nodes cannot fill 3 dimensions"):
        wasserstein_uniformity(torch.randn(3, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wasserstein_uniformity(1e-6 * torch.randn(20, 3))  # tiny is not constant


def test_floor_bounds_the_gradient_but_does_not_zero_it() -> None:
    matrix = torch.diag(torch.tensor([1.9, 0.1, 1e-7], dtype=torch.float64)).requires_grad_()
    trace_sqrt(matrix, 1e-4)[0].backward()
    assert matrix.grad is not None
    assert matrix.grad[2, 2].item() == pytest.approx(0.5 / 1e-4**0.5)
    matrix.grad = None
    trace_sqrt(matrix, 1e-4, "clamp")[0].backward()
    assert matrix.grad[2, 2].item() == 0


def test_clamp_at_1e_8_is_the_released_formula() -> None:
    z = torch.randn(30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    z = torch.cat([z, z[:, :1]], 1)
    h = (z - z.mean(0)) / z.std(0)
    released = 2 * 4 - 2 * torch.linalg.eigvalsh(h.T @ h / 29).clamp(1e-8).sqrt().sum()
    torch.testing.assert_close(wasserstein_uniformity(z, 1e-8, "clamp"), released)


def test_uniformity_with_a_floor_is_a_lower_bound() -> None:
    z = views()[0].detach()
    z = torch.cat([z, z[:, :2] + 1e-3 * z[:, 2:4]], 1)
    assert wasserstein_uniformity(z, 0.1) < wasserstein_uniformity(z, NO_FLOOR)


def test_collapsed_direction_is_pushed_back() -> None:
    """Descent from nearly rank-one columns regains rank, because the floor keeps a gradient."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(50, 1, generator=generator, dtype=torch.float64) + 1e-5 * torch.randn(
        50, 3, generator=generator, dtype=torch.float64
    )
    z = start.clone().requires_grad_()
    before = wasserstein_uniformity(z).item()
    optimizer = torch.optim.Adam([z], lr=0.05)
    for _ in range(100):
        optimizer.zero_grad()
        loss = wasserstein_uniformity(z)
        loss.backward()
        optimizer.step()
    assert before > 1.9  # two of three directions are gone: 6 - 2 (sqrt(3) + sqrt(0.1))
    assert loss.item() < 0.05


def test_descent_aligns_the_views() -> None:
    z1, z2 = views(seed=3)
    optimizer = torch.optim.Adam([z1, z2], lr=0.05)
    first = gaussian(z1, z2, LAMBDA)
    for _ in range(200):
        optimizer.zero_grad()
        losses = gaussian(z1, z2, LAMBDA)
        losses.total.backward()
        optimizer.step()
    assert losses.terms["alignment"] < first.terms["alignment"]
    assert losses.terms["alignment"].item() == pytest.approx(-6 * 39 / 40, abs=0.05)
    assert losses.terms["uniformity"].item() < 0.05


def test_invariances() -> None:
    z1, z2 = (z.detach() for z in views())
    total = gaussian(z1, z2, LAMBDA).total
    torch.testing.assert_close(gaussian(z2, z1, LAMBDA).total, total)
    order = torch.randperm(len(z1))
    torch.testing.assert_close(gaussian(z1[order], z2[order], LAMBDA).total, total)
    torch.testing.assert_close(gaussian(3 * z1 + 5, 0.1 * z2 - 2, LAMBDA).total, total)


def test_effective_rank_of_white_and_of_one_direction() -> None:
    white = torch.linalg.qr(torch.cat([torch.ones(30, 1), torch.randn(30, 5)], 1).double())[0][:, 1:]
    assert gaussian(white, white, 1.0).terms["effective_rank"].item() == pytest.approx(5)
    line = torch.randn(30, 1).double() * torch.ones(1, 5).double()
    assert gaussian(line, line, 1.0).terms["effective_rank"].item() == pytest.approx(1, abs=1e-6)
