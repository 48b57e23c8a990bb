"""Two blocks of columns side by side: propagated features, and what an encoder learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from ssge.nn.propagation import Reduction
from ssge.ops.adjacency import Adjacency
from ssge.ops.features import Features
from ssge.ops.held_out import held_out_scores, noise
from ssge.ops.propagation import FILTERS, all_filtered, filter_hops, filtered
from ssge.views import View

Block: TypeAlias = Literal["propagated", "learned"]
LEARNED: tuple[Block, ...] = ("learned",)
"""What an encoder learned, and nothing beside it."""
Encode: TypeAlias = Callable[[View], Tensor]

MARGIN = 1.08
"""By how much a filter must score above the mean of all hops, which forgets nothing, to take its place."""
GAMMA = 5.0
"""How much less the encoder's output weighs that is worse than propagation."""
LEAST = 0.25
"""Of the quotient of scores: what was learned keeps a thousandth of the weight."""


class Blocks(nn.Module):
    r"""The embedding :math:`[F \mid w Z]` of propagated features F and encoder output Z, both scaled.

    F is one of `ssge.ops.propagation.FILTERS` of the features, X V with few columns (`Reduction`). Each block is
    divided by the root mean squared distance of its rows from their mean, before its weight. A linear classifier can
    use whatever serves it best, and what has a small weight hardly disturbs it. Columns are not centered: where the
    length of a row is what varies most, clusters of centered rows would be those of lengths.

    Filter and weight come from the graph without labels, by the score s of a block by data that it was not made of
    (`ssge.ops.held_out`). The filter is the one with the largest score, where the mean of all hops counts 8 % more, and
    X itself one standard deviation :math:`\sigma` of noise more. The weight is

    .. math:: w = \operatorname{clip}\left(\frac{s(Z) - \sigma}{s(F)}, \frac14, 1\right)^\gamma, \qquad \gamma = 5,

    Noisy features go far, features of nodes among strangers stay as they are, and an encoder that has washed them out
    counts little.
    """

    scores: Tensor
    chosen: Tensor
    scales: Tensor

    def __init__(self, inputs: int, columns: int, width: int) -> None:
        super().__init__()
        self.reduction = Reduction(inputs, columns)
        self.widths = [self.reduction.width, width]
        self.register_buffer("scores", torch.zeros(len(FILTERS) + 1, dtype=torch.float64))
        self.register_buffer("chosen", torch.tensor(-1))
        self.register_buffer("scales", torch.zeros(2))

    @property
    def filter(self) -> int:
        """Which of the filters was chosen."""
        return int(self.chosen)

    @property
    def hops(self) -> int:
        """From how many hops F aggregates."""
        return filter_hops(self.filter)

    @torch.no_grad()
    def fit(self, view: View, encode: Encode) -> None:
        """Choose columns, filter and weight for a graph, unless they are there from another one."""
        if self.filter >= 0:
            return
        self.reduction.fit(view)

        def make(features: Features, adjacency: Adjacency, given: Tensor) -> Iterator[Tensor]:
            yield from all_filtered(adjacency, given)
            yield encode(view._replace(features=features, adjacency=adjacency))

        self.scores.copy_(held_out_scores(view.features, view.adjacency, make))
        index, weight = self._choice(view.num_nodes)
        self.chosen.fill_(index)
        spreads = torch.stack([_spread(block) for block in self._blocks(view, encode(view))])
        self.scales.copy_(torch.tensor([1.0, weight]) / spreads.cpu())

    def _choice(self, num_nodes: int) -> tuple[int, float]:
        """Return filter and weight of what was learned; without evidence all hops and both blocks count alike."""
        *free, learned = self.scores.tolist()
        last = len(free) - 1
        if max(free) == 0:
            return last, 1.0
        favored = [free[0] + noise(num_nodes), *free[1:last], MARGIN * free[last]]
        index = favored.index(max(favored))
        quotient = (learned - noise(num_nodes)) / max(free[index], 1e-30)
        return index, min(max(quotient, LEAST), 1.0) ** GAMMA

    @torch.no_grad()
    def forward(self, view: View, learned: Tensor) -> Tensor:
        """Return the blocks side by side, given the output of the encoder."""
        scales = self.scales.repeat_interleave(torch.tensor(self.widths, device=self.scales.device))
        return torch.cat(self._blocks(view, learned), 1).mul_(scales)

    def _blocks(self, view: View, learned: Tensor) -> tuple[Tensor, Tensor]:
        return filtered(view.adjacency, self.reduction(view), self.filter), learned


def _spread(block: Tensor) -> Tensor:
    """Return the root mean squared distance of rows from their mean; of rows that are all alike, from zero."""
    whole, size = (rows.square().sum(1).mean().sqrt() for rows in (block, block - block.mean(0)))
    spread = torch.where(size > 10 * torch.finfo(block.dtype).eps * whole, size, whole)
    return torch.where(spread > 0, spread, 1.0)
