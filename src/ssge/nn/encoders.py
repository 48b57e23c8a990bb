"""Encoders: from a view to one vector a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ssge.registry import Registry
from ssge.views import View

ENCODERS: Registry[type[GCN] | type[MLP]] = Registry("encoder")
Activation: TypeAlias = Callable[[Tensor], Tensor]
ACTIVATIONS: Registry[Activation] = Registry("activation")
ACTIVATIONS.add("elu", functional.elu)
ACTIVATIONS.add("relu", functional.relu)
ACTIVATIONS.add("none", lambda x: x)


class Affine(nn.Module):
    """The parameters of one layer: W (in x out, Xavier-uniform) and a bias (zero) unless told otherwise."""

    def __init__(self, inputs: int, outputs: int, bias: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        nn.init.xavier_uniform_(self.weight, generator=generator)


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

    def forward(self, view: View) -> Tensor:
        """Return the n x d representations of a view."""
        hidden: Tensor | None = None
        for layer in self.affine:
            hidden = self._layer(layer, view.adjacency @ ((view.features if hidden is None else hidden) @ layer.weight))
        assert hidden is not None
        return hidden

    def _layer(self, layer: Affine, hidden: Tensor) -> Tensor:
        hidden = hidden if layer.bias is None else hidden + layer.bias
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

    def forward(self, view: View) -> Tensor:
        """Return the n x d representations of a view."""
        return self._upper(view.features @ self.affine[0].weight)

    def _upper(self, hidden: Tensor) -> Tensor:
        for layer, norm, above in zip(self.affine[:-1], self.norms, self.affine[1:], strict=True):
            hidden = self.activation(norm(hidden if layer.bias is None else hidden + layer.bias)) @ above.weight
        last = self.affine[-1].bias
        return hidden if last is None else hidden + last

    @torch.no_grad()
    def embed(self, view: View, chunk: int) -> Tensor:
        """Return what `forward` does in evaluation mode, in chunks of nodes."""
        first, last = self.affine[0].weight, self.affine[-1].weight
        output = last.new_empty(view.num_nodes, last.shape[1])
        for start in range(0, view.num_nodes, chunk):
            stop = min(start + chunk, view.num_nodes)
            output[start:stop] = self._upper(view.features.block(start, stop, first))
        return output
