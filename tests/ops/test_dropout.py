"""Dropout: rates, expectation, gradient, and randomness from the generator alone."""

from __future__ import annotations

import pytest
import torch

from ssge.ops.dropout import dropout


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("rate", [0.1, 0.6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_entries_are_zero_at_the_rate_or_scaled(rate: float, dtype: torch.dtype) -> None:
    x = torch.rand(300, 200, generator=generator(1), dtype=dtype) + 1
    found = dropout(x, rate, generator())
    assert found.dtype == dtype
    kept = found != 0
    assert kept.double().mean().item() == pytest.approx(1 - rate, abs=0.01)
    torch.testing.assert_close(found[kept], x[kept] / (1 - rate))


def test_entries_are_dropped_one_by_one() -> None:
    kept = dropout(torch.ones(400, 300), 0.5, generator()) != 0
    for share in (kept.double().mean(0), kept.double().mean(1)):  # neither whole columns nor whole rows
        assert 0.3 < share.min() < share.max() < 0.7


def test_gradient_goes_through_what_was_kept() -> None:
    x = torch.randn(20, 10, generator=generator(1)).requires_grad_()
    found = dropout(x, 0.4, generator())
    found.sum().backward()
    torch.testing.assert_close(x.grad, (found != 0) / 0.6)


def test_the_generator_decides_and_the_global_state_plays_no_part() -> None:
    x = torch.ones(50, 40)
    torch.manual_seed(1)
    first = dropout(x, 0.5, generator(5))
    torch.manual_seed(2)
    assert torch.equal(first, dropout(x, 0.5, generator(5)))
    assert not torch.equal(first, dropout(x, 0.5, generator(6)))


def test_rate_zero_draws_nothing() -> None:
    x, draw = torch.ones(5), generator()
    before = draw.get_state()
    assert dropout(x, 0, draw) is x
    assert torch.equal(draw.get_state(), before)
