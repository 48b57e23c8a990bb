"""Graph attention: the layer, and the encoder made of such layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ssge.nn.encoders import ACTIVATIONS, CHUNK, BatchNorm, Drop
from ssge.ops.adjacency import Adjacency, Pattern
from ssge.ops.sparse import CSR, row_indices, spmm
from ssge.views import View

SLOPE = 0.2
_BLOCK = 1 << 22
"""Numbers gathered at once in the backward pass, so that no edges x heads x width tensor is formed."""


class Attention(nn.Module):
    r"""The parameters of one layer of several heads, and the attention of each.

    With :math:`h_i = W x_i` of a head, and j over the in-neighbors of i and i itself,

    .. math:: \alpha_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}(a_t^\top h_i + a_s^\top h_j), \qquad
              o_i = \sum_j \alpha_{ij} h_j.

    The heads' outputs are concatenated or averaged; then a bias is added. Edge weights are ignored. Cost, for K heads
    of width d and m edges: O(n p K d) for the products with W, and O(m K d) time and O(m K) memory for the rest.

    Parameters
    ----------
    inputs, width
        Columns of the input, and of the output of each head.
    heads
        Number of heads, K.
    average
        Average the heads instead of concatenating them.
    generator
        Draws the initial weights: Xavier-uniform per head, as in the released code of GAT; the vectors a like the
        weights of a layer from d columns to one.
    drop_products
        Whether to apply dropout again after the product with W: to the messages, not to the attention scores.
    bias
        Whether there is a bias.
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        heads: int,
        average: bool,
        generator: torch.Generator,
        drop_products: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.heads, self.width, self.average, self.drop_products = heads, width, average, drop_products
        self.outputs = width if average else heads * width
        self.weight = nn.Parameter(torch.empty(inputs, heads * width))
        self.source = nn.Parameter(torch.empty(heads, width))
        self.target = nn.Parameter(torch.empty(heads, width))
        self.bias = nn.Parameter(torch.zeros(self.outputs)) if bias else None
        for tensor, ends in ((self.weight, inputs + width), (self.source, width + 1), (self.target, width + 1)):
            bound = (6 / ends) ** 0.5
            nn.init.uniform_(tensor, -bound, bound, generator=generator)

    def halves(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the contribution of each node to a score as source and as target, n x K each, from n x (K d)."""
        split = hidden.reshape(-1, self.heads, self.width)
        return (split * self.source).sum(2), (split * self.target).sum(2)

    def finished(self, mixed: Tensor) -> Tensor:
        """Join the heads, n x (K d), and add the bias, if there is one."""
        joined = mixed.reshape(-1, self.heads, self.width).mean(1) if self.average else mixed
        return joined if self.bias is None else joined.add_(self.bias)

    def forward(self, hidden: Tensor, adjacency: Adjacency, drop: Drop | None = None) -> Tensor:
        """Return the layer's output from the products with W, n x (K d); ``drop`` is applied to the attention."""
        source, target = self.halves(hidden)
        found = attention(adjacency.pattern.incoming, source, target, adjacency.kept)
        if drop is not None:
            found, hidden = drop(found), drop(hidden) if self.drop_products else hidden
        mixed: Tensor = _Mixed.apply(hidden, found, adjacency.pattern)  # type: ignore[no-untyped-call]
        return self.finished(mixed)

    def block(
        self, start: int, stop: int, hidden: Tensor, halves: tuple[Tensor, Tensor], adjacency: Adjacency
    ) -> Tensor:
        """Return rows ``start`` to ``stop`` of the output, without gradient."""
        incoming, (source, target) = adjacency.pattern.incoming, halves
        rows, first = incoming.block(start, stop), int(incoming.indptr[start])
        kept = None if adjacency.kept is None else adjacency.kept[first : first + rows.indices.numel()]
        return self.finished(_mix(rows, attention(rows, source, target[start:stop], kept), hidden))


def attention(rows: CSR, source: Tensor, target: Tensor, kept: Tensor | None = None) -> Tensor:
    """Return the softmax over the entries of each row of LeakyReLU(target of the row + source of the column).

    Parameters
    ----------
    rows
        The in-neighbors of each node; values are ignored.
    source, target
        n x K and one row for each of ``rows``.
    kept
        Entries that count, or None for all; at least one in each row.

    Returns
    -------
    Tensor
        One row per entry, K columns; zero where an entry does not count.
    """
    column, row = rows.indices.long(), row_indices(rows.indptr).long()
    scores = functional.leaky_relu(source[column] + target[row], SLOPE)
    if kept is not None:
        scores = scores.masked_fill(~kept.unsqueeze(1), -torch.inf)
    with torch.no_grad():  # softmax is shift-invariant; subtracting the maximum prevents overflow
        places = row.unsqueeze(1).expand_as(scores)
        largest = torch.full_like(target, -torch.inf).scatter_reduce_(0, places, scores, "amax")
    powers = (scores - largest[row]).exp()
    return powers / torch.zeros_like(target).index_add(0, row, powers)[row]


def _mix(rows: CSR, weights: Tensor, hidden: Tensor) -> Tensor:
    """Return weighted sums of rows of ``hidden``, n x (K d), with separate weights per head (entries x K)."""
    heads = hidden.reshape(len(hidden), weights.shape[1], -1).unbind(1)
    mixed = [
        spmm(rows._replace(values=weight.contiguous()), head.contiguous())
        for weight, head in zip(weights.unbind(1), heads, strict=True)
    ]
    return torch.cat(mixed, 1)


class _Mixed(torch.autograd.Function):
    """`_mix` over a whole pattern, with a backward pass without an edges x heads x width tensor."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weights: Tensor, pattern: Pattern) -> Tensor:
        ctx.save_for_backward(hidden, weights)
        ctx.pattern = pattern
        return _mix(pattern.incoming, weights.detach(), hidden.detach())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        hidden, weights = ctx.saved_tensors
        incoming, outgoing, order = ctx.pattern.incoming, ctx.pattern.outgoing, ctx.pattern.order
        to_hidden = _mix(outgoing, weights[order], gradient)
        column, row = incoming.indices, row_indices(incoming.indptr)
        to_weights = torch.empty_like(weights)
        step = max(_BLOCK // hidden.shape[1], 1)
        for start in range(0, len(weights), step):
            part = slice(start, start + step)
            both = gradient.index_select(0, row[part]) * hidden.index_select(0, column[part])
            to_weights[part] = both.reshape(len(both), weights.shape[1], -1).sum(2)
        return to_hidden, to_weights, None


class GAT(nn.Module):
    """Graph attention network: hidden layers with concatenated heads and an activation, then averaged heads.

    Parameters
    ----------
    widths
        Number of input features, then the width of a head in each layer.
    heads, output_heads
        Number of heads of the hidden layers, and of the last one.
    activation
        Between layers: ``elu``, ``relu``, ``prelu`` or ``none``.
    generator
        Draws the initial weights.
    drop_products
        Whether to apply dropout again after the product with W, as in the released code of GAT.
    norm
        Batch normalization before each activation, with this momentum of its running statistics; None: none.
    output_activation
        Whether the last layer is like the others: concatenated heads, normalization, activation.
    """

    def __init__(
        self,
        widths: Sequence[int],
        heads: int,
        output_heads: int,
        activation: str,
        generator: torch.Generator,
        drop_products: bool = False,
        norm: float | None = None,
        output_activation: bool = False,
    ) -> None:
        super().__init__()
        features, *hidden, output = widths
        inputs = [features, *(heads * width for width in hidden)]
        shapes = [(width, heads, False) for width in hidden] + [(output, output_heads, not output_activation)]
        active = [heads * width for width in hidden] + [output_heads * output] * output_activation
        self.layers = nn.ModuleList(
            # A normalization would cancel the bias.
            Attention(a, *shape, generator, drop_products, bias=norm is None or index >= len(active))
            for index, (a, shape) in enumerate(zip(inputs, shapes, strict=True))
        )
        self.activations = nn.ModuleList(ACTIVATIONS[activation]() for _ in active)
        self.norms = nn.ModuleList(BatchNorm(width, norm) for width in active if norm is not None)

    @property
    def hops(self) -> int:
        """Number of hops of the receptive field."""
        return len(self.layers)

    @property
    def attentions(self) -> list[Attention]:
        """The layers with their own type, which a ``ModuleList`` does not have."""
        return cast("list[Attention]", list(self.layers))

    def forward(self, view: View, drop: Drop | None = None) -> Tensor:
        """Return the n x d representations; ``drop`` applies to attention and to the inputs of later layers."""
        product = view.features @ self.attentions[0].weight
        for index, layer in enumerate(self.attentions):
            hidden = self._finished(index, layer(product, view.adjacency, drop))
            if index + 1 < len(self.layers):
                product = (hidden if drop is None else drop(hidden)) @ self.attentions[index + 1].weight
        return hidden

    def _finished(self, index: int, output: Tensor) -> Tensor:
        """Apply normalization and activation to the output of a layer, if it has them."""
        if index < len(self.norms):
            output = self.norms[index](output)
        return self.activations[index](output) if index < len(self.activations) else output

    @torch.no_grad()
    def embed(self, view: View, chunk: int = CHUNK) -> Tensor:
        """Return what `forward` does without ``drop``, in chunks of nodes."""
        blocks = [(start, min(start + chunk, view.num_nodes)) for start in range(0, view.num_nodes, chunk)]
        hidden: Tensor | None = None
        for index, layer in enumerate(self.attentions):
            product = layer.weight.new_empty(view.num_nodes, layer.weight.shape[1])
            for start, stop in blocks:
                weight = layer.weight
                rows = view.features.block(start, stop, weight) if hidden is None else hidden[start:stop] @ weight
                product[start:stop] = rows
            hidden, halves = product.new_empty(view.num_nodes, layer.outputs), layer.halves(product)
            for start, stop in blocks:
                hidden[start:stop] = self._finished(index, layer.block(start, stop, product, halves, view.adjacency))
        assert hidden is not None
        return hidden
