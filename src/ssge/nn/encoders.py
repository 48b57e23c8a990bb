"""Encoders: from a view to one vector a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ssge.registry import Registry
from ssge.views import View


class _ELU(torch.autograd.Function):
    """The exponential linear unit in place, backward too: the gradient takes the place of the output that was kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        functional.elu_(x)
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (output,) = ctx.saved_tensors
        # The slope is 1 above zero and output + 1 below it.
        return torch.ops.aten.elu_backward.grad_input(gradient, 1, 1, 1, True, output, grad_input=output)  # type: ignore[no-any-return]


ENCODERS: Registry[type[GCN] | type[MLP]] = Registry("encoder")
Activation: TypeAlias = Callable[[Tensor], Tensor]
ACTIVATIONS: Registry[Activation] = Registry("activation")
ACTIVATIONS.add("elu", _ELU.apply)
ACTIVATIONS.add("relu", functional.relu_)
ACTIVATIONS.add("none", lambda x: x)
"""All work in place: what they are given is theirs."""


class Affine(nn.Module):
    """The parameters of one layer: W (in x out, Xavier-uniform) and a bias (zero) unless told otherwise."""

    def __init__(self, inputs: int, outputs: int, bias: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        nn.init.xavier_uniform_(self.weight, generator=generator)

    def shifted(self, product: Tensor) -> Tensor:
        """Add the bias, if there is one, in place."""
        return product if self.bias is None else product.add_(self.bias)


class _Encoder(nn.Module):
    """Layers of given widths, an activation between them, a linear output without a bias.

    The last layer has no bias because every objective that standardises the output cancels it: its gradient would be
    rounding noise, which Adam turns into a random shift of all embeddings. ``output_bias`` brings it back, as the
    released code of SSGE has it.
    """

    def __init__(
        self, widths: Sequence[int], activation: str, generator: torch.Generator, output_bias: bool = False
    ) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        last = len(widths) - 2
        self.layers = nn.ModuleList(
            Affine(inputs, outputs, layer < last or output_bias, generator)
            for layer, (inputs, outputs) in enumerate(pairwise(widths))
        )

    @property
    def hops(self) -> int:
        """How far a node's representation looks upstream."""
        return len(self.layers)

    def factors(self, view: View) -> tuple[Tensor, Tensor | None]:
        """Return U and W whose product is the representations of a view; W is None where U is them already.

        An objective that needs only moments can do without the product, which pays unless W narrows U.
        """
        raise NotImplementedError

    def forward(self, view: View) -> Tensor:
        """Return the n x d representations of a view."""
        U, W = self.factors(view)
        return U if W is None else U @ W

    @property
    def factored(self) -> bool:
        """Whether the last layer is left to the objective."""
        last = self.affine[-1]
        return len(self.layers) > 1 and last.bias is None and last.weight.shape[0] <= last.weight.shape[1]

    @property
    def affine(self) -> list[Affine]:
        """The layers by their own type, which a ``ModuleList`` does not tell."""
        return cast("list[Affine]", list(self.layers))


@ENCODERS.register("gcn")
class GCN(_Encoder):
    r"""Graph convolutional network, ``H_{l+1} = activation(A H_l W_l + b_l)``, linear output ``A H W``.

    Parameters
    ----------
    widths
        Number of input features, then the width of each layer.
    activation
        Between layers: ``elu``, ``relu`` or ``none``.
    generator
        Draws the initial weights.
    output_bias
        Whether the last layer has a bias.
    """

    def factors(self, view: View) -> tuple[Tensor, Tensor | None]:
        """Return U and W whose product is the representations of a view; W is None where U is them already."""
        first, *others = self.affine
        hidden = self._layer(first, view.features.convolved(view.adjacency, first.weight))
        for layer in others:
            narrows = layer.weight.shape[1] < layer.weight.shape[0]
            if layer is others[-1] and self.factored:
                return view.adjacency @ hidden, layer.weight
            product = view.adjacency @ (hidden @ layer.weight) if narrows else (view.adjacency @ hidden) @ layer.weight
            hidden = self._layer(layer, product)
        return hidden, None

    def _layer(self, layer: Affine, product: Tensor) -> Tensor:
        """Add the bias to a product and, but for the last layer, apply the activation; both in place."""
        hidden = layer.shifted(product)
        return hidden if layer is self.layers[-1] else self.activation(hidden)

    @torch.no_grad()
    def embed(self, view: View, chunk: int) -> Tensor:
        """Return what `forward` does, in chunks of nodes: two layers' outputs and one chunk in memory at most."""
        hidden: Tensor | None = None
        for layer in self.affine:
            weight = layer.weight
            product = weight.new_empty(view.num_nodes, weight.shape[1])
            for start in range(0, view.num_nodes, chunk):
                stop = min(start + chunk, view.num_nodes)
                rows = view.features.block(start, stop, weight) if hidden is None else hidden[start:stop] @ weight
                product[start:stop] = rows
            hidden = torch.empty_like(product)
            for start in range(0, view.num_nodes, chunk):
                stop = min(start + chunk, view.num_nodes)
                hidden[start:stop] = self._layer(layer, view.adjacency.block(start, stop, product))
        assert hidden is not None
        return hidden


@ENCODERS.register("mlp")
class MLP(_Encoder):
    """Perceptron on the features alone, with batch normalisation before each activation; edges play no part."""

    def __init__(
        self, widths: Sequence[int], activation: str, generator: torch.Generator, output_bias: bool = False
    ) -> None:
        super().__init__(widths, activation, generator, output_bias)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])

    @property
    def hops(self) -> int:
        """Features alone: no hop at all."""
        return 0

    def factors(self, view: View) -> tuple[Tensor, Tensor | None]:
        """Return U and W whose product is the representations of a view; W is None where U is them already."""
        hidden = self._hidden(view.features @ self.affine[0].weight)
        return (hidden, self.affine[-1].weight) if self.factored else (self._output(hidden), None)

    def _hidden(self, product: Tensor) -> Tensor:
        """Return what the last layer makes its output of, from the product of the first layer."""
        for layer, norm in zip(self.affine[:-1], self.norms, strict=True):
            product = product if layer is self.layers[0] else product @ layer.weight
            product = self.activation(norm(layer.shifted(product)))
        return product

    def _output(self, hidden: Tensor) -> Tensor:
        last = self.affine[-1]
        return last.shifted(hidden if len(self.layers) == 1 else hidden @ last.weight)

    @torch.no_grad()
    def embed(self, view: View, chunk: int) -> Tensor:
        """Return what `forward` does in evaluation mode, in chunks of nodes."""
        first, last = self.affine[0].weight, self.affine[-1].weight
        output = last.new_empty(view.num_nodes, last.shape[1])
        for start in range(0, view.num_nodes, chunk):
            stop = min(start + chunk, view.num_nodes)
            output[start:stop] = self._output(self._hidden(view.features.block(start, stop, first)))
        return output
