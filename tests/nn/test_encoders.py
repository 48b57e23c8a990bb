"""Encoders: the formula written out, chunks, and PyTorch Geometric's GCN."""

from __future__ import annotations

import pytest
import torch

from graphs import random_graph
from ssge.nn.encoders import ENCODERS, GCN, MLP, BatchNorm, PReLU
from ssge.objectives.gaussian import gaussian
from ssge.ops.random import Key
from ssge.views import DropEdges, MaskFeatures, View


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
    from torch_geometric.nn import GCNConv as convolution  # noqa: N813

    graph = random_graph()
    model = encoder("gcn", (12, 10, 5))
    torch.nn.init.normal_(model.layers[0].bias)
    x, edges = torch.from_numpy(graph.features), torch.from_numpy(graph.edges)
    layers = [convolution(a, b, bias=False).double() for a, b in ((12, 10), (10, 5))]
    for layer, ours in zip(layers, model.layers, strict=True):
        layer.lin.weight.data = ours.weight.data.T
    expected = layers[1](torch.nn.functional.elu(layers[0](x, edges) + model.layers[0].bias), edges)
    torch.testing.assert_close(model(view()), expected)


def test_mlp_ignores_edges_and_normalizes_batches() -> None:
    model = encoder("mlp")
    dropped = DropEdges(1.0)(view(), Key(0))
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


@pytest.mark.parametrize(
    ("kind", "norm", "bound"),
    [
        ("gcn", None, (6 / 500) ** 0.5),
        ("gcn", 0.1, (6 / 500) ** 0.5),
        ("mlp", None, (6 / 500) ** 0.5),
        ("mlp", 0.1, 0.05),
    ],
)
def test_bound_of_initial_weights(kind: str, norm: float | None, bound: float) -> None:
    weight = ENCODERS[kind]((400, 100), "elu", generator(), norm=norm).affine[0].weight.detach()
    assert 0.99 * bound < weight.abs().max() <= bound
    assert abs(weight.mean()) < 0.02 * bound


@pytest.mark.parametrize("kind", ["gcn", "mlp"])
@pytest.mark.parametrize("activation", ["elu", "relu", "none"])
@pytest.mark.parametrize("widths", [(12, 5), (12, 8, 8), (12, 8, 5), (12, 5, 8, 8), (12, 8, 5, 5)])
def test_factored_encoder_gives_the_loss_and_gradients_of_plain_layers(
    kind: str, activation: str, widths: tuple[int, ...]
) -> None:
    """The whole fast path, in place and folded, against the formula of the layers and plain autograd."""
    model = ENCODERS[kind](widths, activation, generator()).double()
    apply = {"elu": torch.nn.functional.elu, "relu": torch.nn.functional.relu, "none": lambda x: x}[activation]
    one, two = (MaskFeatures(0.3)(DropEdges(0.4)(view(), key), key) for key in (Key(0), Key(1)))

    def plain(v: View) -> torch.Tensor:
        assert isinstance(v.features.matrix, torch.Tensor)
        h = v.features.matrix * v.features.kept
        matrix = v.adjacency.matrix.to_dense() if kind == "gcn" else torch.eye(len(h)).double()
        for number, layer in enumerate(model.layers):
            h = matrix @ (h @ layer.weight)
            if layer is not model.layers[-1]:
                h = h + layer.bias
                h = apply(model.norms[number](h) if isinstance(model, MLP) else h)
        return h

    (u1, weight), (u2, _) = model.factors(one), model.factors(two)
    assert (weight is not None) == (len(widths) > 2 and widths[-2] <= widths[-1])
    losses = gaussian(u1, u2, 0.5, weight=weight), gaussian(plain(one), plain(two), 0.5)
    torch.testing.assert_close(losses[0].total, losses[1].total, rtol=0, atol=1e-10)
    parameters = list(model.parameters())
    for a, b in zip(*(torch.autograd.grad(loss.total, parameters) for loss in losses), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    torch.testing.assert_close(model(one), plain(one))


def test_running_figures_of_a_normalization_are_those_of_the_passes_from_the_first_on() -> None:
    norm = BatchNorm(3, 0.25).double()
    passes = [torch.randn(50, 3, generator=generator(), dtype=torch.float64) * 1e-3 * k for k in (1, 2, 3)]
    for x in passes:
        norm(x)
    torch.testing.assert_close(norm.running_var, torch.stack([x.var(0) for x in passes]).mean(0), rtol=1e-12, atol=0)
    for _ in range(20):  # from the fourth pass on each has the share that was asked for
        before = norm.running_mean.clone()
        norm(passes[0])
    torch.testing.assert_close(norm.running_mean, 0.75 * before + 0.25 * passes[0].mean(0))


def rectifier(slope: float) -> PReLU:
    model = PReLU().double()
    model.slope.data.fill_(slope)
    return model


def below_and_above_zero(rows: int) -> torch.Tensor:
    """Return rows x 3 values, none so near to zero that a finite difference crosses it."""
    x = torch.randn(rows, 3, generator=generator(), dtype=torch.float64)
    return x + 0.01 * x.sign()


@pytest.mark.parametrize("slope", [0.25, 1.5, 1e-3, 0.0, -0.5])
@pytest.mark.parametrize("rows", [1, 256, 257, 700])
def test_rectifier_has_value_and_gradients_of_pytorch(slope: float, rows: int) -> None:
    x, gradient = below_and_above_zero(rows), torch.randn(rows, 3, generator=generator(), dtype=torch.float64)
    x[0, 0] = 0
    ours, theirs = rectifier(slope), torch.tensor([slope], dtype=torch.float64, requires_grad=True)
    given = x.clone().requires_grad_()
    memory = given * 1  # what it is given is its own to write on
    found, expected = ours(memory), torch.nn.functional.prelu(x.requires_grad_(), theirs)
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=0)
    assert (found.data_ptr() == memory.data_ptr()) == (slope > 0)  # else the sign of the input would be lost
    ones = torch.autograd.grad(found, (given, ours.slope), gradient)
    others = torch.autograd.grad(expected, (x, theirs), gradient)
    for a, b in zip(ones, others, strict=True):
        assert a.shape == b.shape
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("slope", [0.25, 0.0, -0.5])
def test_rectifier_has_the_gradients_of_finite_differences(slope: float) -> None:
    model, x = rectifier(slope), below_and_above_zero(300)
    weights = torch.randn(300, 3, generator=generator(), dtype=torch.float64)

    def total(values: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
        output = torch.func.functional_call(model, {"slope": by}, (values * 1,))
        return (weights * output * output).sum()  # not linear, so that the gradient depends on the output

    given, by = x.clone().requires_grad_(), torch.tensor([slope], dtype=torch.float64, requires_grad=True)
    of_input, of_slope = torch.autograd.grad(total(given, by), (given, by))
    h = 1e-5
    with torch.no_grad():
        for place in [(0, 0), (255, 2), (256, 0), (299, 1)] + [tuple(p) for p in (x < 0).nonzero()[::90].tolist()]:
            step = torch.zeros_like(x)
            step[place] = h
            difference = (total(x + step, by) - total(x - step, by)) / (2 * h)
            torch.testing.assert_close(of_input[place], difference, rtol=1e-6, atol=1e-6)
        difference = (total(x, by + h) - total(x, by - h)) / (2 * h)
        torch.testing.assert_close(of_slope[0], difference, rtol=1e-6, atol=1e-6)
