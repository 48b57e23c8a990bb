"""Encoders: map a view to one vector per node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ssge.errors import InputError
from ssge.ops.collective import rank, swapped, total, world
from ssge.ops.random import Key
from ssge.ops.row_stream import RowStream, Stage
from ssge.ops.streaming import StreamedAdjacency, StreamedFeatures
from ssge.views import Augmentation, View

CHUNK = 1 << 16
"""Chunk size, in nodes, of embedding a graph."""
_ROWS = 256
"""Chunk size, in rows, of several passes that should stay in the cache."""


class _ELU(torch.autograd.Function):
    """In-place exponential linear unit; in the backward pass, the gradient overwrites the saved output."""

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


class ELU(nn.Module):
    """The exponential linear unit, in place."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x where it is positive, else exp(x) - 1."""
        output: Tensor = _ELU.apply(x)  # type: ignore[no-untyped-call]
        return output


class _PReLU(torch.autograd.Function):
    """In-place PReLU with a positive slope; on CPUs more than twice as fast as PyTorch's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, slope: Tensor) -> Tensor:
        functional.leaky_relu_(x, float(slope))
        ctx.mark_dirty(x)
        ctx.save_for_backward(x, slope)
        return x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        output, slope = ctx.saved_tensors  # the output has the sign of the input, because the slope is positive
        pieces = zip(gradient.split(_ROWS), output.split(_ROWS), strict=True)  # type: ignore[no-untyped-call]
        below = sum(torch.sum(piece * rows.clamp(max=0)) for piece, rows in pieces) / slope
        of_input = torch.ops.aten.leaky_relu_backward.grad_input(
            gradient, output, float(slope), True, grad_input=output
        )
        return of_input, below


class PReLU(nn.Module):
    """PReLU with one learned slope for all columns."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.full((1,), 0.25))

    def forward(self, x: Tensor) -> Tensor:
        """Return x where it is positive, else the slope times x."""
        if x.is_cpu and self.slope > 0:
            output: Tensor = _PReLU.apply(x, self.slope)  # type: ignore[no-untyped-call]
            return output
        return functional.prelu(x, self.slope)


class BatchNorm(nn.BatchNorm1d):
    """Batch normalization whose running statistics start as the mean of all passes so far, not at 0 and 1.

    Representations of row-normalized features have variances of 1e-5. At the usual momentum of 0.01, the initial 1
    would dominate for more than a thousand passes, and the network in evaluation mode would differ from the trained
    one.
    """

    def __init__(self, width: int, momentum: float) -> None:
        super().__init__(width, momentum=momentum)
        self.last_momentum = momentum

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalized columns; in training, a pass has at least the weight ``momentum`` in the statistics."""
        if self.training and self.num_batches_tracked is not None:
            self.momentum = max(self.last_momentum, 1 / (int(self.num_batches_tracked) + 1))
        return self._over_processes(x) if self.training and world() > 1 else super().forward(x)

    def _over_processes(self, x: Tensor) -> Tensor:
        """Normalize by the statistics of all processes; `torch.nn.SyncBatchNorm` supports GPUs only."""
        n, sums = total(torch.tensor([len(x)], dtype=torch.float64, device=x.device), x.sum(0))
        mean = sums / float(n)
        centered = x - mean
        (squares,) = total(centered.square().sum(0))
        assert self.running_mean is not None and self.running_var is not None and self.momentum is not None
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(squares / (float(n) - 1), self.momentum)
            self.num_batches_tracked.add_(1)  # type: ignore[union-attr]
        return centered * (squares / float(n) + self.eps).rsqrt() * self.weight + self.bias


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "elu": ELU,
    "relu": lambda: nn.ReLU(inplace=True),
    "leaky_relu": lambda: nn.LeakyReLU(11 / 48, inplace=True),  # the mean slope of PyTorch's RReLU
    "prelu": PReLU,
    "none": nn.Identity,
}
"""They may work in place: they own their input."""

Drop: TypeAlias = Callable[[Tensor], Tensor]
"""Applied to the input of each layer except the first, for example dropout."""


class Affine(nn.Module):
    """The parameters of one layer: W (in x out, uniform) and an optional bias (zero).

    Initial weights lie within +-sqrt(6 / (in + out)) (Xavier), or, if ``by_inputs``, within +-1 / sqrt(in).
    """

    def __init__(
        self, inputs: int, outputs: int, bias: bool, generator: torch.Generator, by_inputs: bool = False
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None
        if by_inputs:
            nn.init.uniform_(self.weight, -(inputs**-0.5), inputs**-0.5, generator=generator)
        else:
            nn.init.xavier_uniform_(self.weight, generator=generator)

    def shifted(self, product: Tensor) -> Tensor:
        """Add the bias, if there is one, in place."""
        return product if self.bias is None else product.add_(self.bias.to(product.dtype))


class _Encoder(nn.Module, ABC):
    """Layers of given widths, an activation between them, a linear output without a bias.

    The last layer has no bias because every objective that standardizes the output cancels it: its gradient would be
    rounding noise, which Adam turns into a random shift of all embeddings. ``output_bias`` adds it, as in the released
    code of SSGE.

    Parameters
    ----------
    widths
        Number of input features, then the width of each layer.
    activation
        Between layers: ``elu``, ``relu``, ``leaky_relu``, ``prelu`` or ``none``.
    generator
        Draws the initial weights.
    output_bias
        Whether the last layer has a bias.
    norm
        Batch normalization before each activation, with this momentum of its running statistics; None: none.
    output_activation
        Whether normalization and activation also follow the last layer.
    """

    like_linear: ClassVar[bool] = False
    """Whether layers before a normalization are initialized like `torch.nn.Linear`: by fan-in, with a bias."""

    def __init__(
        self,
        widths: Sequence[int],
        activation: str,
        generator: torch.Generator,
        output_bias: bool = False,
        norm: float | None = None,
        output_activation: bool = False,
    ) -> None:
        super().__init__()
        last = len(widths) - 2
        active = widths[1:] if output_activation else widths[1:-1]
        hidden_bias = norm is None or self.like_linear  # a normalization would cancel it
        biased = [hidden_bias if layer < last or output_activation else output_bias for layer in range(last + 1)]
        self.layers = nn.ModuleList(
            Affine(inputs, outputs, bias, generator, by_inputs=norm is not None and self.like_linear)
            for (inputs, outputs), bias in zip(pairwise(widths), biased, strict=True)
        )
        self.activations = nn.ModuleList(ACTIVATIONS[activation]() for _ in active)
        self.norms = nn.ModuleList(BatchNorm(width, norm) for width in active if norm is not None)

    def _finished(self, index: int, product: Tensor) -> Tensor:
        """Apply bias, normalization and activation to the product of a layer, in place where possible."""
        hidden = self.affine[index].shifted(product)
        if index < len(self.norms):
            hidden = self.norms[index](hidden)
        return self.activations[index](hidden) if index < len(self.activations) else hidden

    @property
    def hops(self) -> int:
        """Number of hops of the receptive field."""
        return len(self.layers)

    @abstractmethod
    def factors(self, view: View, drop: Drop | None = None) -> tuple[Tensor, Tensor | None]:
        """Return U and W whose product is the representations of a view; W is None if U equals them.

        An objective that needs only moments can skip the product. This saves time unless W reduces the width of U.
        """

    def factors_of_two(self, view: View, augment: Augmentation, key: Key) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return U of the seeds in two augmented views, and W, as `factors` does.

        With two processes and a full batch, each process computes one view with all rows, and they exchange rows: once
        forward and once backward. Products by columns would exchange as much in every layer. Batch normalization would
        see only one view.
        """
        if world() == 2 and view.whole is not None and not len(self.norms):
            u, weight = self.factors(augment(view.whole, key.fold_in(rank())))
            u1, u2 = swapped(u)
        else:
            (u1, weight), (u2, _) = (self.factors(augment(view, key.fold_in(i))) for i in range(2))
        return view.at_seeds(u1), view.at_seeds(u2), weight

    def forward(self, view: View, drop: Drop | None = None) -> Tensor:
        """Return the n x d representations of a view."""
        U, W = self.factors(view, drop)
        return U if W is None else U @ W

    @property
    def factored(self) -> bool:
        """Whether the objective applies the last layer."""
        last = self.affine[-1]
        linear = len(self.activations) < len(self.layers) and last.bias is None
        return len(self.layers) > 1 and linear and last.weight.shape[0] <= last.weight.shape[1]

    @property
    def affine(self) -> list[Affine]:
        """The layers with their own type, which a ``ModuleList`` does not have."""
        return cast("list[Affine]", list(self.layers))


class GCN(_Encoder):
    r"""Graph convolutional network, ``H_{l+1} = activation(A H_l W_l + b_l)``, linear output ``A H W``."""

    def factors(self, view: View, drop: Drop | None = None) -> tuple[Tensor, Tensor | None]:
        """Return U and W whose product is the representations of a view; W is None if U equals them."""
        if isinstance(view.adjacency, StreamedAdjacency):
            weight = self.affine[-1].weight if self.factored else None
            return cast("Tensor", self.stream(view, self.factored)), weight  # only its moments are used
        hidden = self._finished(0, view.features.propagate(view.adjacency, self.affine[0].weight))
        for index, layer in enumerate(self.affine[1:], 1):
            hidden = hidden if drop is None else drop(hidden)
            if index == len(self.layers) - 1 and self.factored:
                return view.adjacency @ hidden, layer.weight
            narrows = layer.weight.shape[1] < layer.weight.shape[0]
            product = view.adjacency @ (hidden @ layer.weight) if narrows else (view.adjacency @ hidden) @ layer.weight
            hidden = self._finished(index, product)
        return hidden, None

    def stream(self, view: View, factored: bool = False) -> RowStream:
        """Return the representations of a view of a graph on disk; without the last layer's weights if ``factored``.

        Each layer computes its sparse product before or after the product with its weights, as in `factors`.
        """
        assert isinstance(view.features, StreamedFeatures)
        assert isinstance(view.adjacency, StreamedAdjacency)
        if len(self.norms):
            raise InputError("Batch normalization needs all rows in memory: an encoder with it cannot be streamed.")
        kept, stages, before = view.features.kept, list[Stage](), Stage()
        columns = None if kept is None else kept.nonzero().squeeze(1)
        for index, layer in enumerate(self.affine):
            inputs, outputs = (
                layer.weight.shape if columns is None or index else (columns.numel(), layer.weight.shape[1])
            )
            step = Stage(partial(_multiplied, layer.weight, columns if index == 0 else None), (layer.weight,))
            finish = Stage(partial(self._finished, index), self._finishing(index))
            if index == len(self.layers) - 1 and factored:
                stages.append(before)
                before = Stage()
            elif inputs > (2 if index == 0 else 1) * outputs:
                stages.append(before.then(step))
                before = finish
            else:
                stages.append(before)
                before = step.then(finish)
        return RowStream(view.features, view.adjacency, [*stages, before])

    def _finishing(self, index: int) -> tuple[Tensor, ...]:
        """Return the parameters of `_finished`."""
        bias = self.affine[index].bias
        active = self.activations[index].parameters() if index < len(self.activations) else ()
        return (*(() if bias is None else (bias,)), *active)

    @torch.no_grad()
    def embed(self, view: View, chunk: int = CHUNK) -> Tensor:
        """Return the output of `forward`, in chunks of nodes: at most two layers' outputs and one chunk in memory."""
        hidden: Tensor | None = None
        for index, layer in enumerate(self.affine):
            weight = layer.weight
            product = weight.new_empty(view.num_nodes, weight.shape[1])
            for start in range(0, view.num_nodes, chunk):
                stop = min(start + chunk, view.num_nodes)
                rows = view.features.block(start, stop, weight) if hidden is None else hidden[start:stop] @ weight
                product[start:stop] = rows
            hidden = torch.empty_like(product)
            for start in range(0, view.num_nodes, chunk):
                stop = min(start + chunk, view.num_nodes)
                hidden[start:stop] = self._finished(index, view.adjacency.block(start, stop, product))
        assert hidden is not None
        return hidden


def _multiplied(weight: Tensor, columns: Tensor | None, rows: Tensor) -> Tensor:
    return rows @ (weight if columns is None else weight.index_select(0, columns))


class MLP(_Encoder):
    """Multi-layer perceptron on the features; it ignores edges.

    With batch normalization, layers are initialized like `torch.nn.Linear`, as is common for MLPs. The normalized
    output does not depend on the size of the weights, but smaller weights change direction faster under Adam: on
    CoauthorCS the paper's schedule then reaches an effective rank of 30, and 9 with Xavier's bound. The bias matches
    the released code of SSGE, although the normalization cancels it.
    """

    like_linear = True

    @property
    def hops(self) -> int:
        """Zero: the network uses features only."""
        return 0

    def factors(self, view: View, drop: Drop | None = None) -> tuple[Tensor, Tensor | None]:
        """Return U and W whose product is the representations of a view; W is None if U equals them."""
        return self._of_product(view.features @ self.affine[0].weight, self.factored, drop)

    def _of_product(self, product: Tensor, factored: bool, drop: Drop | None = None) -> tuple[Tensor, Tensor | None]:
        hidden = self._finished(0, product)
        for index, layer in enumerate(self.affine[1:], 1):
            hidden = hidden if drop is None else drop(hidden)
            if index == len(self.layers) - 1 and factored:
                return hidden, layer.weight
            hidden = self._finished(index, hidden @ layer.weight)
        return hidden, None

    @torch.no_grad()
    def embed(self, view: View, chunk: int = CHUNK) -> Tensor:
        """Return the output of `forward` in evaluation mode, in chunks of nodes."""
        first, last = self.affine[0].weight, self.affine[-1].weight
        output = last.new_empty(view.num_nodes, last.shape[1])
        for start in range(0, view.num_nodes, chunk):
            stop = min(start + chunk, view.num_nodes)
            output[start:stop] = self._of_product(view.features.block(start, stop, first), factored=False)[0]
        return output


ENCODERS: dict[str, Callable[..., GCN | MLP]] = {"gcn": GCN, "mlp": partial(MLP, norm=0.1)}
"""Encoders by their names in settings; an MLP has batch normalization by default."""
