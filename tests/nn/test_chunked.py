"""The GCN in pieces: the network, gradients and memory of the plain one."""

from __future__ import annotations

import pytest
import torch

from graphs import random_graph
from ssge.nn import chunked
from ssge.nn.chunked import ChunkedGCN
from ssge.nn.encoders import GCN
from ssge.ops.random import Key
from ssge.views import Compose, DropEdges, MaskFeatures, View

WIDTHS = [(12, 5), (12, 10, 5), (12, 5, 10), (12, 10, 7, 5), (12, 5, 10, 7), (12, 10, 10)]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "_ROWS", 7)  # the graph has 60 nodes, so the last piece is smaller


def both(widths: tuple[int, ...], activation: str = "elu", output_bias: bool = False) -> list[GCN]:
    made = [
        kind(widths, activation, torch.Generator().manual_seed(0), output_bias).double() for kind in (GCN, ChunkedGCN)
    ]
    for model in made:
        for layer in model.affine:
            if layer.bias is not None:
                torch.nn.init.normal_(layer.bias, generator=torch.Generator().manual_seed(1))
    return made


def augmented(sparse: bool) -> View:
    view = View.of(random_graph(sparse=sparse), dtype=torch.float64)
    return Compose(DropEdges(0.3), MaskFeatures(0.4))(view, Key(0))


def passed(model: GCN, view: View) -> list[torch.Tensor]:
    """Return output and gradients of all parameters, for a loss in which every number counts differently."""
    output = model(view)
    (output * torch.arange(output.numel()).view_as(output).cos()).sum().backward()
    return [output.detach(), *(parameter.grad for parameter in model.parameters() if parameter.grad is not None)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("activation", ["elu", "relu", "none"])
@pytest.mark.parametrize("widths", WIDTHS)
def test_network_and_gradients_are_those_of_the_plain_one(
    widths: tuple[int, ...], activation: str, sparse: bool
) -> None:
    plain, pieces = (passed(model, augmented(sparse)) for model in both(widths, activation))
    assert len(plain) == len(pieces)
    torch.testing.assert_close(pieces, plain)


def test_output_bias() -> None:
    plain, pieces = (passed(model, augmented(False)) for model in both((12, 10, 5), output_bias=True))
    torch.testing.assert_close(pieces, plain)


@pytest.mark.parametrize("shape", ["both", "before", "after"])
def test_gradients_by_finite_differences(shape: str) -> None:
    random = torch.Generator().manual_seed(0)

    def drawn(*size: int) -> torch.Tensor:
        return torch.randn(*size, dtype=torch.float64, generator=random).requires_grad_()

    before = drawn(4, 3) if shape in ("both", "before") else None
    after = drawn(3, 2) if shape in ("both", "after") else None
    x, bias = drawn(16, 4 if before is not None else 3), drawn(3)

    def rows(x: torch.Tensor, bias: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        given = iter(weights)
        w, v = (next(given) if one is not None else None for one in (before, after))
        return chunked._Rows.apply(x * 1, w, bias, v, chunked._ACTIVATIONS["elu"])  # it may overwrite what it is given

    inputs = [x, bias, *(one for one in (before, after) if one is not None)]
    assert torch.autograd.gradcheck(rows, inputs)


def test_bfloat16_sums_in_float32() -> None:
    model = both((12, 10, 5))[1].float()
    exact = passed(both((12, 10, 5))[0], augmented(False))
    view = Compose(DropEdges(0.3), MaskFeatures(0.4))(View.of(random_graph()), Key(0))
    with torch.autocast("cpu", torch.bfloat16):
        found = passed(model, view)
    for one, expected in zip(found[1:], exact[1:], strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one.double(), expected, rtol=0, atol=0.05 * float(expected.abs().max()))


def test_features_are_not_overwritten() -> None:
    view = View.of(random_graph(), dtype=torch.float64)
    before = view.features.matrix.clone()
    passed(both((12, 10, 5))[1], view)
    assert torch.equal(view.features.matrix, before)
