"""Heads on top of an encoder: MLPs, such as predictors and projectors, and bilinear scores."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ssge.nn.encoders import ACTIVATIONS, Affine, BatchNorm


class Head(nn.Module):
    """An MLP with one hidden layer: ``activation(norm(Z W1 + b1)) W2 + b2``.

    Parameters
    ----------
    widths
        Of input, hidden layer and output.
    activation
        Of the hidden layer: ``elu``, ``relu``, ``leaky_relu``, ``prelu`` or ``none``.
    generator
        Draws the weights (Xavier-uniform); biases start at zero.
    norm
        Batch normalization of the hidden layer, with this momentum of its running statistics; it replaces the
        bias b1, which it would cancel. None: none.
    output_bias
        Whether there is a bias b2. A batch normalization in the next head would cancel it.
    """

    def __init__(
        self,
        widths: tuple[int, int, int],
        activation: str,
        generator: torch.Generator,
        norm: float | None = None,
        output_bias: bool = True,
    ) -> None:
        super().__init__()
        inputs, hidden, outputs = widths
        self.hidden = Affine(inputs, hidden, norm is None, generator)
        self.norm = None if norm is None else BatchNorm(hidden, norm)
        self.activation = ACTIVATIONS[activation]()
        self.output = Affine(hidden, outputs, output_bias, generator)

    def forward(self, z: Tensor) -> Tensor:
        """Return the head's output, n x outputs."""
        hidden = self.hidden.shifted(z @ self.hidden.weight)
        hidden = self.activation(hidden if self.norm is None else self.norm(hidden))
        return self.output.shifted(hidden @ self.output.weight)


class Bilinear(nn.Module):
    """The parameters of a score ``a' W b + bias`` of two vectors.

    Initial weights lie within +-sqrt(6 / (rows columns + columns)): Xavier's bound for a score of rows x columns
    products, as in the released codes of DGI, MVGRL and GMI. The bias starts at zero.

    Parameters
    ----------
    rows, columns
        Widths of a and b.
    generator
        Draws the weights.
    bias
        Whether there is a bias.
    """

    def __init__(self, rows: int, columns: int, generator: torch.Generator, bias: bool = True) -> None:
        super().__init__()
        bound = (6 / (rows * columns + columns)) ** 0.5
        self.weight = nn.Parameter(torch.empty(rows, columns))
        self.bias = nn.Parameter(torch.zeros(1)) if bias else None
        nn.init.uniform_(self.weight, -bound, bound, generator=generator)
