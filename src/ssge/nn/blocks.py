"""Blocks of columns side by side: features, propagated features, and what an encoder learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from ssge.nn.propagation import Reduction
from ssge.ops.adjacency import Adjacency
from ssge.ops.features import Features
from ssge.ops.held_out import held_out_scores, noise
from ssge.ops.propagation import FILTERS, HOPS, all_filtered, coefficients, polynomial
from ssge.views import View

Block: TypeAlias = Literal["features", "propagated", "learned"]
ALL: tuple[Block, ...] = ("features", "propagated", "learned")
"""In the order of an embedding's columns."""
LEARNED: tuple[Block, ...] = ("learned",)
"""What an encoder learned, and nothing beside it."""
Encode: TypeAlias = Callable[[View], Tensor]

MARGIN = 1.05
"""How much more the score of the mean of all hops counts, which forgets nothing."""
SHARPNESS = 40.0
"""How much less a filter counts that has a smaller score: with 5 % less it has an eighth of the weight."""
NEGLIGIBLE = 0.01
"""Weight below which a filter is left out."""
GAMMA = 5.0
"""How much less a block weighs that has a smaller score."""
LEAST = (0.15, 1e-3, 1e-3)
"""Least weight of each block: what a node has of its own is never given up."""


class Choice(NamedTuple):
    """How much each filter counts, X being none of them, and what each block weighs."""

    mixture: list[float]
    weights: list[float]


class Blocks(nn.Module):
    r"""The embedding :math:`[w_X X \mid w_F F \mid w_Z Z]` of features, propagated features and encoder output.

    X are the features with few columns (`Reduction`). F is a mixture of the filters of `ssge.ops.propagation.FILTERS`
    that go beyond the node itself: a polynomial in A, applied to X. Each block is divided by the root mean squared
    distance of its rows from their mean, before its weight. A linear classifier can use whatever serves it best, and
    what has a small weight hardly disturbs it. Columns are not centered: where the length of a row is what varies most,
    clusters of centered rows would be those of lengths.

    Mixture and weights come from the graph without labels, by the score s of a block by data that it was not made of
    (`ssge.ops.held_out`). A filter counts :math:`(s_k / \max_j s_j)^{40}`, so filters share F only where they are
    nearly as good as each other; the score of the mean of all hops is taken 5 % higher here. With
    :math:`s_F = \max_k s_k` and :math:`\sigma` the noise of a score, blocks weigh

    .. math:: w_X = \left(\frac{s_X + \sigma}{m}\right)^5, \quad w_F = \left(\frac{s_F}{m}\right)^5, \quad
       w_Z = \left(\frac{s_Z - \sigma}{m}\right)^5, \qquad m = \max(s_X + \sigma, s_F),

    at most 1, and at least 0.15 for X and a thousandth for the others. So noisy features go far, features of nodes
    among strangers stay as they are, and an encoder that has washed them out counts little.

    Weights may be given instead, one per block. All blocks are multiplied by the spread of Z, so that Z with weight 1
    keeps the encoder's scale, for which the paper's probe was tuned.
    """

    scores: Tensor
    coefficients: Tensor
    scales: Tensor

    def __init__(
        self, names: Sequence[Block], inputs: int, columns: int, width: int, weights: Sequence[float] | None = None
    ) -> None:
        super().__init__()
        self.kept = [i for i, name in enumerate(ALL) if name in names]
        self.weights = dict(zip(names, weights, strict=True)) if weights is not None else None
        self.reduction = Reduction(inputs, columns)
        widths = (self.reduction.width, self.reduction.width, width)
        self.widths = [widths[i] for i in self.kept]
        self.register_buffer("scores", torch.zeros(len(FILTERS) + 1, dtype=torch.float64))
        self.register_buffer("coefficients", torch.zeros(HOPS + 1))
        self.register_buffer("scales", torch.zeros(len(ALL)))

    @property
    def hops(self) -> int:
        """From how many hops F aggregates."""
        return max((k for k, weight in enumerate(self.coefficients.tolist()) if weight), default=0)

    @torch.no_grad()
    def fit(self, view: View, encode: Encode) -> None:
        """Choose columns, mixture and weights for a graph, unless they are there from another one."""
        if self.scales.any():
            return
        self.reduction.fit(view)

        def make(features: Features, adjacency: Adjacency, given: Tensor) -> Iterator[Tensor]:
            yield from all_filtered(adjacency, given)
            yield encode(view._replace(features=features, adjacency=adjacency))

        self.scores.copy_(held_out_scores(view.features, view.adjacency, make))
        mixture, weights = choice(self.scores.tolist(), view.num_nodes)
        spreads = [float(_spread(block)) for block in all_filtered(view.adjacency, self.reduction(view))]
        self.coefficients.copy_(coefficients([0, *(m / s for m, s in zip(mixture, spreads[1:], strict=True))]))
        if self.weights is not None:
            weights = [self.weights.get(name, 0.0) for name in ALL]
        found = torch.stack([_spread(block) for block in self._blocks(view, encode(view))])
        self.scales.copy_(torch.tensor(weights) / found.cpu() * found[-1].cpu())

    @torch.no_grad()
    def forward(self, view: View, learned: Tensor) -> Tensor:
        """Return the blocks side by side, given the output of the encoder."""
        blocks = self._blocks(view, learned)
        scales = self.scales[self.kept].repeat_interleave(torch.tensor(self.widths, device=self.scales.device))
        return torch.cat([blocks[i] for i in self.kept], 1).mul_(scales)

    def _blocks(self, view: View, learned: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self.reduction(view)
        return features, polynomial(view.adjacency, features, self.coefficients.tolist()), learned


def choice(scores: Sequence[float], num_nodes: int) -> Choice:
    """Return mixture and weights by the scores of X, of the other filters and of what was learned.

    Without evidence all hops count, and all blocks alike.
    """
    own, *free, learned = scores
    if max(own, *free) <= 0:
        return Choice([0.0] * (len(free) - 1) + [1.0], [1.0] * len(ALL))
    favored = [*free[:-1], MARGIN * free[-1]]
    shares = [(one / max(*favored, 1e-30)) ** SHARPNESS for one in favored]
    if max(free) <= 0:
        shares[-1] = 1.0
    sigma = noise(num_nodes)
    best = max(own + sigma, *free)
    quotients = [(own + sigma) / best, max(free) / best, max(learned - sigma, 0.0) / best]
    weights = [min(max(q**GAMMA, least), 1.0) for q, least in zip(quotients, LEAST, strict=True)]
    return Choice([share if share >= NEGLIGIBLE else 0.0 for share in shares], weights)


def _spread(block: Tensor) -> Tensor:
    """Return the root mean squared distance of rows from their mean; of rows that are all alike, from zero."""
    whole, size = (rows.square().sum(1).mean().sqrt() for rows in (block, block - block.mean(0)))
    spread = torch.where(size > 10 * torch.finfo(block.dtype).eps * whole, size, whole)
    return torch.where(spread > 0, spread, 1.0)
