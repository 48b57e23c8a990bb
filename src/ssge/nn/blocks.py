"""Blocks of columns side by side: features, their mean over hops, and what an encoder learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from ssge.nn.propagation import Reduction
from ssge.ops.held_out import Maker, held_out_alignments, unit_rows
from ssge.ops.propagation import mean_of_hops
from ssge.views import View

Block: TypeAlias = Literal["features", "hops", "learned"]
LEARNED: tuple[Block, ...] = ("learned",)
"""What an encoder learned, and nothing beside it."""
Encode: TypeAlias = Callable[[View], Tensor]

GAMMA = 5.0
"""How much more a block weighs that is better aligned."""
FLATTERED = 1.2
"""What the alignment of features is divided by: both halves are of one node, and share what is its alone, such as the
length or the style of its text, beside what it has in common with others."""


class Blocks(nn.Module):
    r"""The embedding :math:`[w_X f_X(X V) \mid w_S f_S(S(X V)) \mid w_Z f_Z(Z)]` of features X and encoder output Z.

    S is the plain mean of the hops 0..K (`ssge.ops.propagation.mean_of_hops`). V reduces the columns (`Reduction`). f
    scales the rows of a block to unit length, or the whole block to a mean squared length of 1. A linear classifier can
    use whatever serves it best, and a block with a small weight hardly disturbs it.

    Weights and scalings come from the graph without labels. With :math:`\rho_b` the alignment of block b with features
    that it was not made of (`ssge.ops.held_out`),

    .. math:: w_b = \min\left(1, \frac{\rho_b}{\max(\rho_X, \rho_S)}\right)^\gamma, \qquad \gamma = 5,

    so that nothing learned takes weight from what needs no training, and each f is the one that is better aligned. An
    encoder that has washed out the features of nodes among strangers counts little, and so does X where it is noise
    that hops average out; rows keep their lengths where these carry something, such as the degree. Before it is
    compared, :math:`\rho_X` is divided by 1.2 (`FLATTERED`).
    """

    scales: Tensor
    unit: Tensor
    alignments: Tensor

    def __init__(self, names: Sequence[Block], inputs: int, columns: int, hops: int) -> None:
        super().__init__()
        self.names = tuple(names)
        self.hops = hops if "hops" in names else 0
        self.reduction = Reduction(inputs, columns)
        self.register_buffer("scales", torch.zeros(len(names)))
        self.register_buffer("unit", torch.ones(len(names), dtype=torch.bool))
        self.register_buffer("alignments", torch.zeros(len(names)))

    @torch.no_grad()
    def fit(self, view: View, encode: Encode) -> None:
        """Choose columns, weights and scalings for a graph, unless they are there from another one."""
        if self.scales.any():
            return
        self.reduction.fit(view)
        makers: dict[Block, Maker] = {
            "features": lambda _, given: given,
            "hops": lambda _, given: self._mean(view, given),
            "learned": lambda masked, _: encode(view._replace(features=masked)),
        }
        found = held_out_alignments(view.features, [makers[name] for name in self.names])
        self.unit.copy_(torch.tensor([unit >= plain for plain, unit in found]))
        best = torch.tensor([max(pair) for pair in found], dtype=torch.float64)
        self.alignments.copy_(best)
        best = best / torch.tensor([FLATTERED if name == "features" else 1.0 for name in self.names])
        free = max((rho for name, rho in zip(self.names, best, strict=True) if name != "learned"), default=best.max())
        weights = (best / free).clamp_max(1) ** GAMMA if free > 0 else torch.ones_like(best)
        blocks = self._blocks(view, encode(view))
        sizes = torch.stack([block.square().sum(1).mean().sqrt() for block in blocks]).double()
        self.scales.copy_(weights / torch.where(sizes > 0, sizes, 1.0))

    @torch.no_grad()
    def forward(self, view: View, learned: Tensor) -> Tensor:
        """Return the blocks side by side, given the output of the encoder."""
        blocks = zip(self.scales, self._blocks(view, learned), strict=True)
        return torch.cat([scale * block for scale, block in blocks], 1)

    def _blocks(self, view: View, learned: Tensor) -> list[Tensor]:
        known: dict[Block, Tensor] = {"learned": learned, "features": self.reduction(view)}
        if "hops" in self.names:
            known["hops"] = self._mean(view, known["features"])
        blocks = (known[name] for name in self.names)
        return [unit_rows(block) if unit else block for unit, block in zip(self.unit, blocks, strict=True)]

    def _mean(self, view: View, h: Tensor) -> Tensor:
        return mean_of_hops(view.adjacency, h, self.hops, 1 / (self.hops + 1))
