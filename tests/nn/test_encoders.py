"""Encoders: the formula written out, chunks, and PyTorch Geometric's GCN."""

from __future__ import annotations

import pytest
import torch

from graphs import random_graph
from ssge.nn.encoders import ENCODERS, GCN, MLP
from ssge.views import DropEdges, View


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def encoder(kind: str, widths: tuple[int, ...] = (12, 10, 7, 5)) -> GCN | MLP:
    return ENCODERS[kind](widths, "elu", generator()).double()


def view() -> View:
    return View.of(random_graph(), dtype=torch.float64)


@pytest.mark.parametrize("kind", ["gcn", "mlp"])
@pytest.mark.parametrize("widths", [(12, 5), (12, 10, 5), (12, 10, 7, 5)])
@pytest.mark.parametrize("chunk", [1, 7, 60, 1000])
def test_chunks_give_what_forward_gives(kind: str, widths: tuple[int, ...], chunk: int) -> None:
    model = encoder(kind, widths).eval()
    for _, buffer in model.named_buffers():
        if buffer.is_floating_point():
            buffer.uniform_(0.5, 1.5, generator=generator())
    torch.testing.assert_close(model.embed(view(), chunk), model(view()))


def test_gcn_is_that_of_pytorch_geometric() -> None:
    convolution = pytest.importorskip("torch_geometric.nn").GCNConv
    graph = random_graph()
    model = encoder("gcn", (12, 10, 5))
    torch.nn.init.normal_(model.layers[0].bias)
    x, edges = torch.from_numpy(graph.features), torch.from_numpy(graph.edges)
    layers = [convolution(a, b, bias=False).double() for a, b in ((12, 10), (10, 5))]
    for layer, ours in zip(layers, model.layers, strict=True):
        layer.lin.weight.data = ours.weight.data.T
    expected = layers[1](torch.nn.functional.elu(layers[0](x, edges) + model.layers[0].bias), edges)
    torch.testing.assert_close(model(view()), expected)


def test_mlp_ignores_edges_and_normalises_batches() -> None:
    model = encoder("mlp")
    dropped = DropEdges(1.0)(view(), generator())
    torch.testing.assert_close(model(view()), model(dropped))
    hidden = view().features @ model.layers[0].weight + model.layers[0].bias
    normal = model.norms[0](hidden)
    torch.testing.assert_close(normal.mean(0), torch.zeros(10).double(), atol=1e-7, rtol=0)


@pytest.mark.parametrize("kind", ["gcn", "mlp"])
def test_last_layer_has_no_bias(kind: str) -> None:
    model = encoder(kind)
    assert [layer.bias is None for layer in model.layers] == [False, False, True]


@pytest.mark.parametrize("kind", ["gcn", "mlp"])
def test_output_bias_shifts_all_rows_alike(kind: str) -> None:
    plain, biased = encoder(kind), ENCODERS[kind]((12, 10, 7, 5), "elu", generator(), True).double()
    shift = torch.arange(5.0).double()
    biased.affine[-1].bias.data = shift  # type: ignore[union-attr]
    torch.testing.assert_close(biased.eval()(view()), plain.eval()(view()) + shift)
    torch.testing.assert_close(biased.embed(view(), 7), biased(view()))


@pytest.mark.parametrize("kind", ["gcn", "mlp"])
def test_initial_weights_come_from_the_generator(kind: str) -> None:
    torch.manual_seed(1)
    first = encoder(kind)
    torch.manual_seed(2)
    second = encoder(kind)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
