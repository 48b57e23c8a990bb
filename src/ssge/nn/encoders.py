"""Encoders: from a view to one vector a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ssge.registry import Registry
from ssge.views import View

ENCODERS: Registry[type[GCN] | type[MLP]] = Registry("encoder")
Activation: TypeAlias = Callable[[Tensor], Tensor]
ACTIVATIONS: Registry[Activation] = Registry("activation")
ACTIVATIONS.add("elu", F.elu)
ACTIVATIONS.add("relu", F.relu)
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
    rounding noise, which Adam turns into a random shift of all embeddings.
    """

    def __init__(self, widths: Sequence[int], activation: str, generator: torch.Generator) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        last = len(widths) - 2
        self.layers = nn.ModuleList(
            Affine(inputs, outputs, layer < last, generator)
            for layer, (inputs, outputs) in enumerate(zip(widths[:-1], widths[1:], strict=True))
        )


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
    """

    def __init__(self, widths: Sequence[int], activation: str, generator: torch.Generator) -> None:
        super().__init__(widths, activation, generator)

    def forward(self, view: View) -> Tensor:
        """Return the n x d representations of a view."""
        hidden: Tensor | None = None
        for layer in self.layers:
            hidden = self._layer(layer, view.adjacency @ ((view.features if hidden is None else hidden) @ layer.weight))
        assert hidden is not None
        return hidden

    def _layer(self, layer: nn.Module, hidden: Tensor) -> Tensor:
        return hidden if layer.bias is None else self.activation(hidden + layer.bias)

    @torch.no_grad()
    def embed(self, view: View, chunk: int) -> Tensor:
        """Return what `forward` does, in chunks of nodes: two layers' outputs and one chunk in memory at most."""
        hidden: Tensor | None = None
        for layer in self.layers:
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

    def __init__(self, widths: Sequence[int], activation: str, generator: torch.Generator) -> None:
        super().__init__(widths, activation, generator)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])

    def forward(self, view: View) -> Tensor:
        """Return the n x d representations of a view."""
        return self._upper(view.features @ self.layers[0].weight)

    def _upper(self, hidden: Tensor) -> Tensor:
        for layer, norm, above in zip(self.layers[:-1], self.norms, self.layers[1:], strict=True):
            hidden = self.activation(norm(hidden + layer.bias)) @ above.weight
        return hidden

    @torch.no_grad()
    def embed(self, view: View, chunk: int) -> Tensor:
        """Return what `forward` does in evaluation mode, in chunks of nodes."""
        output = self.layers[-1].weight.new_empty(view.num_nodes, self.layers[-1].weight.shape[1])
        for start in range(0, view.num_nodes, chunk):
            stop = min(start + chunk, view.num_nodes)
            output[start:stop] = self._upper(view.features.block(start, stop, self.layers[0].weight))
        return output
