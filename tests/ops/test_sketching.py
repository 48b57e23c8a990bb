"""Random projections: the matrix behind them, their expectation, their gradient, and their generator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.ops.sketching import gaussian_sketch, sparse_sketch

SKETCHES = [gaussian_sketch, sparse_sketch]
Sketch = Callable[..., tuple[Tensor, ...]]


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def projection(sketch: Sketch, n: int, size: int, seed: int = 0) -> Tensor:
    """Return P, as the sketch of the identity."""
    return sketch((torch.eye(n, dtype=torch.float64),), size, torch.Generator().manual_seed(seed))[0]


@pytest.mark.parametrize("entries", [1, 3 * 20, 1 << 22])
@pytest.mark.parametrize("sketch", SKETCHES)
def test_one_linear_map_for_all_matrices_and_its_gradient(
    sketch: Sketch, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssge.ops.sketching._ENTRIES", entries)
    z1, z2, p = random(20, 3), random(20, 5, seed=1), projection(sketch, 20, 8)
    found = sketch((z1, z2), 8, torch.Generator().manual_seed(0))
    torch.testing.assert_close(found, (p @ z1, p @ z2))
    slopes = torch.autograd.grad(found[0].square().sum() + found[1].exp().sum(), (z1, z2))
    torch.testing.assert_close(slopes, (2 * p.t() @ p @ z1, p.t() @ (p @ z2).exp()))
    assert torch.autograd.gradcheck(lambda z: sketch((z,), 8, torch.Generator().manual_seed(0)), (z1,))


@pytest.mark.parametrize("sketch", SKETCHES)
def test_covariance_is_kept_in_expectation(sketch: Sketch) -> None:
    z = random(30, 3).detach()
    generator = torch.Generator().manual_seed(0)
    products = torch.stack([(s := sketch((z,), 10, generator)[0]).t() @ s for _ in range(3000)])
    error = products.std(0) / 3000**0.5
    assert ((products.mean(0) - z.t() @ z).abs() < 4 * error).all()


def test_entries_are_those_of_the_description() -> None:
    p = projection(gaussian_sketch, 400, 300)
    assert p.mean().item() == pytest.approx(0, abs=5e-4) and p.var().item() == pytest.approx(1 / 300, rel=0.02)
    p = sparse_sketch((torch.eye(50, dtype=torch.float64),), 1000, torch.Generator().manual_seed(0), copies=4)[0]
    counts = p.count_nonzero(0)
    assert counts.max() == 4 and counts.double().mean() > 3.9  # two copies in one place are rare
    assert {round(value, 6) for value in p.abs().unique().tolist()} <= {0.0, 0.5, 1.0}


@pytest.mark.parametrize("sketch", SKETCHES)
def test_randomness_is_that_of_the_generator(sketch: Sketch) -> None:
    first, again, other = (projection(sketch, 20, 8, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)
    generator = torch.Generator().manual_seed(0)
    z = torch.eye(20, dtype=torch.float64)
    assert not torch.equal(sketch((z,), 8, generator)[0], sketch((z,), 8, generator)[0])
    before = torch.get_rng_state()
    sketch((z,), 8, generator)
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(InputError, match="size must be at least 1"):
        sketch((z,), 0, generator)
