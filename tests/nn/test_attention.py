"""Graph attention: the formula written out, PyTorch Geometric's layer, gradients, chunks, dropped edges."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from graphs import random_graph
from ssge.graph import Graph
from ssge.nn import attention as module
from ssge.nn.attention import GAT, Attention, attention
from ssge.ops.dropout import dropout
from ssge.ops.random import Key
from ssge.views import DropEdges, View

WIDTHS = (12, 5, 3)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def encoder(heads: int = 4, output_heads: int = 2, widths: tuple[int, ...] = WIDTHS) -> GAT:
    model = GAT(widths, heads, output_heads, "elu", generator()).double()
    for layer in model.attentions:  # a bias of zero would hide that it is forgotten
        torch.nn.init.normal_(layer.bias, generator=generator(1))
    return model


def view(weighted: bool = False) -> View:
    return View.of(random_graph(weighted=weighted), dtype=torch.float64)


def plain(model: GAT, heard: Tensor, x: Tensor) -> Tensor:
    """The formula with dense n x n matrices, head by head; ``heard`` says whom each node hears."""
    for layer in model.attentions:
        outputs = []
        for head in range(layer.heads):
            h = x @ layer.weight[:, head * layer.width : (head + 1) * layer.width]
            scores = (h @ layer.target[head])[:, None] + (h @ layer.source[head])[None, :]
            scores = torch.where(scores > 0, scores, 0.2 * scores).masked_fill(~heard, -math.inf)
            outputs.append(torch.softmax(scores, 1) @ h)
        x = (sum(outputs) / layer.heads if layer.average else torch.cat(outputs, 1)) + layer.bias
        x = x if layer is model.attentions[-1] else torch.where(x > 0, x, torch.expm1(x))
    return x


@pytest.mark.parametrize(("heads", "output_heads", "widths"), [(1, 1, (12, 4)), (4, 2, WIDTHS), (2, 3, (12, 5, 4, 3))])
@pytest.mark.parametrize("dropped", [0.0, 0.5])
def test_it_is_the_formula_with_its_gradients(
    heads: int, output_heads: int, widths: tuple[int, ...], dropped: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 100)  # several blocks in the backward pass
    model, seen = encoder(heads, output_heads, widths), DropEdges(dropped)(view(), Key(0))
    assert isinstance(seen.features.matrix, Tensor)
    expected = plain(model, seen.adjacency.matrix.to_dense() != 0, seen.features.matrix)
    found = model(seen)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(model.embed(seen, 1000), expected)
    gradient = torch.randn(expected.shape, generator=generator(2), dtype=torch.float64)
    parameters = list(model.parameters())
    for a, b in zip(*(torch.autograd.grad(z, parameters, gradient) for z in (found, expected)), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(("heads", "average"), [(1, True), (8, False), (8, True)])
def test_layer_is_that_of_pytorch_geometric(heads: int, average: bool) -> None:
    from torch_geometric.nn import GATConv as convolution  # noqa: N813

    graph = random_graph()
    x, edges = torch.from_numpy(graph.features), torch.from_numpy(graph.edges)
    ours = Attention(12, 5, heads, average, generator()).double()
    torch.nn.init.normal_(ours.bias, generator=generator(1))
    theirs = convolution(12, 5, heads, concat=not average, dropout=0.6).double().eval()
    theirs.lin.weight.data = ours.weight.data.T
    theirs.att_src.data, theirs.att_dst.data = ours.source.data[None], ours.target.data[None]
    theirs.bias.data = ours.bias.data
    torch.testing.assert_close(ours(x @ ours.weight, view().adjacency), theirs(x, edges))


def test_attention_sums_to_one_and_survives_large_scores() -> None:
    rows = view().adjacency.pattern.incoming
    source, target = (torch.randn(60, 3, generator=generator(s), dtype=torch.float64) for s in (0, 1))
    found = attention(rows, 1e4 * source, 1e4 * target)
    assert torch.isfinite(found).all()
    row = torch.repeat_interleave(torch.arange(60), rows.indptr.diff())
    sums = torch.zeros(60, 3).double().index_add(0, row, found)
    torch.testing.assert_close(sums, torch.ones(60, 3).double())
    torch.testing.assert_close(
        attention(rows, 0 * source, 0 * target), (1 / rows.indptr.diff().double())[row, None].expand(-1, 3)
    )


def test_gradcheck() -> None:
    graph = random_graph(n=8, m=14)
    model = GAT((12, 3, 2), 2, 2, "none", generator()).double()
    # Those of the catalog work in place, and their backward pass only once; a smooth one that does not:
    model.activations[0] = torch.nn.Tanh()
    for layer in model.attentions:  # else a node whose attention is all dropped has output 0, where there is a kink
        torch.nn.init.normal_(layer.bias, generator=generator(1))
    seen = View.of(graph, dtype=torch.float64)
    names = [name for name, _ in model.named_parameters()]

    def run(*values: Tensor) -> Tensor:
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (seen,))

    drop = partial(dropout, rate=0.3)

    def dropped(*values: Tensor) -> Tensor:
        draw = generator()
        arguments = (seen, lambda x: drop(x, generator=draw))
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), arguments)

    values = tuple(parameter.detach().clone().requires_grad_() for parameter in model.parameters())
    assert torch.autograd.gradcheck(run, values)
    assert torch.autograd.gradcheck(dropped, values)


@pytest.mark.parametrize("chunk", [1, 7, 60, 1000])
@pytest.mark.parametrize("dropped", [0.0, 0.5])
def test_chunks_give_what_forward_gives(chunk: int, dropped: float) -> None:
    model, seen = encoder(), DropEdges(dropped)(view(), Key(0))
    torch.testing.assert_close(model.embed(seen, chunk), model(seen))


def test_drop_sees_attention_and_the_inputs_of_later_layers() -> None:
    shapes = []
    model, seen = encoder(), view()
    model(seen, lambda x: shapes.append(tuple(x.shape)) or x)
    entries = seen.adjacency.num_entries
    assert shapes == [(entries, 4), (60, 20), (entries, 2)]
    twice = GAT(WIDTHS, 4, 2, "elu", generator(), drop_products=True).double()
    shapes.clear()
    twice(seen, lambda x: shapes.append(tuple(x.shape)) or x)
    assert shapes == [(entries, 4), (60, 20), (60, 20), (entries, 2), (60, 6)]
    torch.testing.assert_close(model(seen, lambda x: x), model(seen))
    layer = model.attentions[0]
    silent = layer(seen.features @ layer.weight, seen.adjacency, torch.zeros_like)
    torch.testing.assert_close(silent, layer.bias.expand(60, -1))


def test_edge_weights_play_no_part_and_an_isolated_node_hears_itself() -> None:
    model = encoder(widths=(12, 3), output_heads=2)
    torch.testing.assert_close(model(view(weighted=True)), model(view()))
    x, layer = view().features @ model.attentions[0].weight, model.attentions[0]
    torch.testing.assert_close(model(view())[59], x[59].view(2, 3).mean(0) + layer.bias)


@pytest.mark.parametrize("sparse", [False, True])
def test_embedding_some_nodes_equals_embedding_all(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 12)) * (rng.random((60, 12)) < 0.4)
    graph = Graph.of(
        edges=rng.integers(0, 60, (2, 70)), features=sp.csr_array(features) if sparse else features,
        direction="in", dtype=np.float64,
    )  # fmt: skip
    whole, model = View.of(graph, dtype=torch.float64), encoder()
    nodes = torch.tensor([50, 3, 17])
    part = whole.k_hop_subgraph(nodes, model.hops)
    assert part.num_nodes < 60
    torch.testing.assert_close(part.at_seeds(model.embed(part, 9)), model.embed(whole, 11)[nodes])


def test_initial_weights_come_from_the_generator() -> None:
    torch.manual_seed(1)
    first = GAT(WIDTHS, 4, 2, "elu", generator())
    torch.manual_seed(2)
    for a, b in zip(first.parameters(), GAT(WIDTHS, 4, 2, "elu", generator()).parameters(), strict=True):
        assert torch.equal(a, b)
    layer = first.attentions[0]
    assert layer.source.abs().max() <= 1 and layer.source.std() > 0.3
    assert not torch.equal(layer.source, layer.target)
