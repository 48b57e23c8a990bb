"""Heads: the formula written out, and weights from the generator alone."""

from __future__ import annotations

import pytest
import torch

from ssge.nn.heads import Head


def head(norm: float | None = None, seed: int = 0) -> Head:
    return Head((4, 7, 3), "prelu", torch.Generator().manual_seed(seed), norm).double()


@pytest.mark.parametrize("norm", [None, 0.1])
def test_formula(norm: float | None) -> None:
    model = head(norm)
    for parameter in model.parameters():
        parameter.data.uniform_(-1, 1, generator=torch.Generator().manual_seed(parameter.numel()))
    z = torch.randn(9, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    hidden = z @ model.hidden.weight
    if norm is None:
        assert model.hidden.bias is not None
        hidden = hidden + model.hidden.bias
    else:
        assert model.norm is not None and model.hidden.bias is None
        deviation = (hidden.var(0, unbiased=False) + model.norm.eps).sqrt()
        hidden = (hidden - hidden.mean(0)) / deviation * model.norm.weight + model.norm.bias
    slope = model.activation.slope
    assert isinstance(slope, torch.Tensor)
    hidden = torch.where(hidden > 0, hidden, slope * hidden)
    torch.testing.assert_close(model(z), hidden @ model.output.weight + model.output.bias)


def test_weights_come_from_the_generator() -> None:
    torch.manual_seed(1)
    first = head().state_dict()
    torch.manual_seed(2)
    for name, tensor in head().state_dict().items():
        assert torch.equal(tensor, first[name])
    assert not torch.equal(head(seed=3).hidden.weight, first["hidden.weight"])
