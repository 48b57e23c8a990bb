"""Heads: the formula written out, and weights from the generator alone."""

from __future__ import annotations

import pytest
import torch

from ssge.nn.heads import Bilinear, Head


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


def test_output_without_a_bias() -> None:
    model = Head((4, 7, 3), "relu", torch.Generator(), output_bias=False)
    assert model.output.bias is None
    assert [name for name, _ in model.named_parameters()] == ["hidden.weight", "hidden.bias", "output.weight"]


def test_bilinear_weights_fill_the_bound_of_torch_s_initialization() -> None:
    model = Bilinear(30, 50, torch.Generator().manual_seed(0))
    released = torch.nn.Bilinear(30, 50, 1)  # its weight is 1 x 30 x 50
    torch.nn.init.xavier_uniform_(released.weight)
    bound = (6 / (30 * 50 + 50)) ** 0.5
    for weight in (model.weight, released.weight):
        assert 0.99 * bound < weight.abs().max() <= bound
    assert model.weight.shape == (30, 50) and model.bias is not None and model.bias.tolist() == [0]
    assert Bilinear(3, 3, torch.Generator(), bias=False).bias is None
