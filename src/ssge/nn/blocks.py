"""Concatenated blocks of columns: features, propagated features, and the output of an encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

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
"""The output of the encoder alone."""
Encode: TypeAlias = Callable[[View], Tensor]

LENGTH = 0.8
"""Factor of the column of lengths of a block."""
MARGIN = 1.1
"""Factor of the score of the mean of all hops, which keeps every hop."""
SHARPNESS = 40.0
"""Exponent of the weight of a filter: a score 5 % lower gives an eighth of the weight."""
NEGLIGIBLE = 0.01
"""Filters with a smaller weight are dropped."""
GAMMA = 5.0
"""Exponent of the weight of a block."""
LEAST = (0.15, 1e-3, 1e-3)
"""Smallest weight of each block: the node's own features never vanish."""


class Choice(NamedTuple):
    """The weight of each filter (without X), and of each block."""

    mixture: list[float]
    weights: list[float]


class Blocks(nn.Module):
    r"""The embedding :math:`[w_X X \mid w_F F \mid w_Z Z]` of features, propagated features and encoder output.

    X are the features, reduced to few columns (`Reduction`). F is a mixture of the filters of
    `ssge.ops.propagation.FILTERS` beyond the node itself: a polynomial in A, applied to X.

    A row b of a block enters as its direction and, in a column of its own, its length:

    .. math:: \left[\frac{b}{\|b\|\, \sigma}, \quad 0.8 \log\left(1 + \frac{\|b\|}{r}\right)\right],

    with r the root mean square of the lengths and :math:`\sigma` the root mean squared distance of the directions from
    their mean. Where degrees vary, lengths vary, too, and few long rows would dominate a block. Yet lengths can tell
    classes apart, so a linear classifier gets both. Columns are not centered: on graphs where lengths vary most,
    clusters of centered rows would be clusters of lengths. A block with a small weight hardly disturbs a classifier.

    Mixture and weights are chosen without labels, by the score s of a block on held-out data of the graph
    (`ssge.ops.held_out`), with rows of unit length. A filter has the weight :math:`(s_k / \max_j s_j)^{40}`, so only
    filters with nearly equal scores share F; the score of the mean of all hops is raised by 10 %. With
    :math:`s_F = \max_k s_k` and :math:`\sigma_s` the noise of a score, the weights of the blocks are

    .. math:: w_X = \left(\frac{s_X + \sigma_s}{m}\right)^5, \quad w_F = \left(\frac{s_F}{m}\right)^5, \quad
       w_Z = \left(\frac{s_Z - \sigma_s}{m}\right)^5, \qquad m = \max(s_X + \sigma_s, s_F),

    at most 1, and at least 0.15 for X and a thousandth for the others. So noisy features are propagated over many hops,
    features of heterophilic nodes stay unpropagated, and an encoder that over-smooths gets a small weight.

    Alternatively, pass the weights, one per block, and a power of A instead of the mixture. With given weights, rows
    enter as they are, over their spread. All blocks are multiplied by the spread of Z, so that Z with weight 1 keeps
    the encoder's scale, for which the paper's probe was tuned.
    """

    scores: Tensor
    coefficients: Tensor
    scales: Tensor
    spreads: Tensor
    lengths: Tensor

    def __init__(
        self,
        names: Sequence[Block],
        inputs: int,
        columns: int,
        width: int,
        weights: Sequence[float] | None = None,
        power: int | None = None,
    ) -> None:
        super().__init__()
        self.power = power
        self.kept = [i for i, name in enumerate(ALL) if name in names]
        self.weights = dict(zip(names, weights, strict=True)) if weights is not None else None
        self.reduction = Reduction(inputs, columns)
        widths = (self.reduction.width, self.reduction.width, width)
        self.widths = [widths[i] + (weights is None) for i in self.kept]
        self.register_buffer("scores", torch.zeros(len(FILTERS) + 1, dtype=torch.float64))
        self.register_buffer("coefficients", torch.zeros(HOPS + 1))
        self.register_buffer("scales", torch.zeros(len(ALL)))
        self.register_buffer("spreads", torch.ones(len(ALL)))
        self.register_buffer("lengths", torch.ones(len(ALL)))

    @property
    def hops(self) -> int:
        """Number of hops of F."""
        return max((k for k, weight in enumerate(self.coefficients.tolist()) if weight), default=0)

    @torch.no_grad()
    def fit(self, view: View, encode: Encode) -> None:
        """Choose columns, mixture and weights for a graph, unless already fitted."""
        if self.scales.any():
            return
        self.reduction.fit(view)

        def make(features: Features, adjacency: Adjacency, given: Tensor) -> Iterator[Tensor]:
            yield from map(functional.normalize, all_filtered(adjacency, given))
            yield functional.normalize(encode(view._replace(features=features, adjacency=adjacency)))

        self.scores.copy_(held_out_scores(view.features, view.adjacency, make))
        mixture, weights = choice(self.scores.tolist(), view.num_nodes)
        if self.power is None:
            spreads = [float(_spread(block)) for block in all_filtered(view.adjacency, self.reduction(view))]
            self.coefficients.copy_(coefficients([0, *(m / s for m, s in zip(mixture, spreads[1:], strict=True))]))
        else:
            self.coefficients[self.power] = 1
        if self.weights is not None:
            weights = [self.weights.get(name, 0.0) for name in ALL]
        blocks = self._blocks(view, encode(view))
        self.spreads.copy_(torch.stack([_spread(self._rows(block)) for block in blocks]))
        lengths = torch.stack([block.square().sum(1).mean().sqrt() for block in blocks])
        self.lengths.copy_(torch.where(lengths > 0, lengths, 1.0))
        self.scales.copy_(torch.tensor(weights) * _spread(blocks[-1]).cpu())

    @torch.no_grad()
    def forward(self, view: View, learned: Tensor) -> Tensor:
        """Return the concatenated blocks, given the output of the encoder."""
        blocks = self._blocks(view, learned)
        embedding = learned.new_empty(learned.shape[0], sum(self.widths))
        for i, columns in zip(self.kept, torch.split(embedding, self.widths, 1), strict=True):
            width = blocks[i].shape[1]
            columns[:, :width] = self._rows(blocks[i]) * (self.scales[i] / self.spreads[i])
            if self.weights is None:
                columns[:, width] = (blocks[i].norm(dim=1) / self.lengths[i]).log1p_() * (LENGTH * self.scales[i])
        return embedding

    def _rows(self, block: Tensor) -> Tensor:
        """Return the rows of a block as they are, or their directions."""
        return block if self.weights is not None else functional.normalize(block)

    def _blocks(self, view: View, learned: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self.reduction(view)
        return features, polynomial(view.adjacency, features, self.coefficients.tolist()), learned


def choice(scores: Sequence[float], num_nodes: int) -> Choice:
    """Return mixture and weights from the scores of X, of the other filters and of the encoder.

    If all scores are zero, use the mean of all hops and equal weights.
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
    """Return the root mean squared distance of rows from their mean, or from zero if all rows are equal."""
    whole, size = (rows.square().sum(1).mean().sqrt() for rows in (block, block - block.mean(0)))
    spread = torch.where(size > 10 * torch.finfo(block.dtype).eps * whole, size, whole)
    return torch.where(spread > 0, spread, 1.0)
