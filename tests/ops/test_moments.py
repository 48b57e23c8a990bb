"""Moments by pieces and of a folded layer, against the plain formulas in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from ssge.objectives.gaussian import gaussian
from ssge.ops import moments as module
from ssge.ops.moments import CrossMoments, cross_moments, deviations, moments


def views(n: int, d: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    base = torch.randn(n, d, dtype=torch.float64, generator=generator) + 3
    return base.requires_grad_(), (
        base + torch.randn(n, d, dtype=torch.float64, generator=generator)
    ).detach().requires_grad_()


def plain(z1: Tensor, z2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    c1, c2 = z1 - z1.mean(0), z2 - z2.mean(0)
    return c1.T @ c1, c2.T @ c2, (c1 * c2).sum(0)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make several pieces and blocks, the last ones incomplete, of small matrices."""
    monkeypatch.setattr(module, "_ROWS", 16)
    monkeypatch.setattr(module, "_BLOCK", 4)


@pytest.mark.usefixtures("small_pieces")
def test_pieces_and_blocks_give_the_plain_moments_and_gradients() -> None:
    z1, z2 = views(50, 10)
    found = moments(z1, z2)
    assert found.cross is not None
    ours, expected = (*found.scatter, found.cross), plain(z1, z2)
    weights = [torch.randn_like(part) for part in expected]
    for a, b in zip(ours, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    gradients = [
        torch.autograd.grad(sum((w * part).sum() for w, part in zip(weights, parts, strict=True)), (z1, z2))  # type: ignore[arg-type]
        for parts in (ours, expected)
    ]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("widths", [(10, 10), (6, 10), (10, 6)])
def test_folded_layer_gives_the_loss_and_gradients_of_the_plain_one(widths: tuple[int, int]) -> None:
    u1, u2 = views(50, widths[0])
    weight = torch.randn(*widths, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    folded = gaussian(u1, u2, 0.7, weight=weight)
    unfolded = gaussian(u1 @ weight, u2 @ weight, 0.7)
    torch.testing.assert_close(folded.total, unfolded.total, rtol=0, atol=1e-10)
    for name, term in folded.terms.items():
        torch.testing.assert_close(term, unfolded.terms[name], rtol=0, atol=1e-10)
    ours = torch.autograd.grad(folded.total, (u1, u2, weight))
    theirs = torch.autograd.grad(unfolded.total, (u1, u2, weight))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_folded_objective_passes_gradcheck() -> None:
    u1, u2 = views(12, 4)
    weight = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b, w: gaussian(a, b, 0.7, weight=w).total, (u1, u2, weight))


def plain_cross(z1: Tensor, z2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    c1, c2 = z1 - z1.mean(0), z2 - z2.mean(0)
    return c1.square().sum(0), c2.square().sum(0), c1.T @ c2


def parts_of(found: CrossMoments) -> tuple[Tensor, Tensor, Tensor]:
    return (*found.squares, found.cross)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("width", [None, 10, 6, 13])
def test_cross_moments_are_the_plain_ones_and_so_are_their_gradients(width: int | None) -> None:
    """Of the views as they are, and of a layer that is folded in."""
    z1, z2 = views(50, 10)
    inputs, weight = [z1, z2], None
    if width is not None:
        weight = torch.randn(10, width, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
        inputs.append(weight.requires_grad_())
    found = cross_moments(z1, z2, weight)
    outputs = (z1, z2) if weight is None else (z1 @ weight, z2 @ weight)
    ours, expected = parts_of(found), plain_cross(*outputs)
    assert found.n == 50
    for a, b in zip((*found.means, *ours), (*(z.mean(0) for z in outputs), *expected), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    draws = [torch.randn_like(part) for part in expected]
    gradients = [
        torch.autograd.grad(sum((w * part).sum() for w, part in zip(draws, parts, strict=True)), inputs)  # type: ignore[arg-type]
        for parts in (ours, expected)
    ]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def test_cross_moments_have_the_diagonals_of_moments() -> None:
    z1, z2 = views(30, 5)
    one, other = moments(z1, z2), cross_moments(z1, z2)
    assert one.cross is not None
    torch.testing.assert_close(other.cross.diagonal(), one.cross)
    for squares, scatter, mean in zip(other.squares, one.scatter, one.means, strict=True):
        torch.testing.assert_close(squares, scatter.diagonal())
        for a, b in zip(deviations(squares, mean, 30), deviations(scatter, mean, 30), strict=True):
            torch.testing.assert_close(a, b)


def test_scatter_is_exactly_symmetric() -> None:
    z1, z2 = views(300, 150)
    for scatter in moments(z1.float(), z2.float()).scatter:
        assert torch.equal(scatter, scatter.T)
