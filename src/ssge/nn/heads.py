"""Heads: small perceptrons on top of an encoder, such as predictors and projectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ssge.nn.encoders import ACTIVATIONS, Affine, BatchNorm


class Head(nn.Module):
    """A perceptron of one hidden layer, row by row: ``activation(norm(Z W1 + b1)) W2 + b2``.

    Parameters
    ----------
    widths
        Of input, hidden layer and output.
    activation
        Of the hidden layer: ``elu``, ``relu``, ``leaky_relu``, ``prelu`` or ``none``.
    generator
        Draws the weights (Xavier-uniform); biases begin at zero.
    norm
        Batch normalization of the hidden layer, with this momentum of its running figures; it takes the place of the
        bias b1, which it would cancel. None: none.
    """

    def __init__(
        self, widths: tuple[int, int, int], activation: str, generator: torch.Generator, norm: float | None = None
    ) -> None:
        super().__init__()
        inputs, hidden, outputs = widths
        self.hidden = Affine(inputs, hidden, norm is None, generator)
        self.norm = None if norm is None else BatchNorm(hidden, norm)
        self.activation = ACTIVATIONS[activation]()
        self.output = Affine(hidden, outputs, True, generator)

    def forward(self, z: Tensor) -> Tensor:
        """Return the head's output, n x outputs."""
        hidden = self.hidden.shifted(z @ self.hidden.weight)
        hidden = self.activation(hidden if self.norm is None else self.norm(hidden))
        return self.output.shifted(hidden @ self.output.weight)
