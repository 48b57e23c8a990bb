"""Differentiable collective operations of distributed training: sums, and exchanges of rows and columns.

Every process computes the same loss from sums over all processes. The gradient of that loss is the **mean** over the
processes of their local gradients, if the gradient of a sum over processes is itself a sum over processes: parameters
used after the sum get the whole gradient in every process, those used before it get W times the share of their process.

A custom implementation, because ``torch.distributed.nn.functional`` is deprecated, and because a gradient that is known
to be equal in all processes needs no second exchange. A single process exchanges nothing, at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ssge.errors import LostProcessError

_alone: ContextVar[bool] = ContextVar("alone", default=False)


def world() -> int:
    """Return the number of processes of this run."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() and not _alone.get() else 1


@contextmanager
def alone() -> Iterator[None]:
    """Disable communication in a context, for example for trials on graphs of this process."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def rank() -> int:
    """Return the rank of this process, from 0."""
    return dist.get_rank() if world() > 1 else 0


def own_rows(n: int) -> slice:
    """Return the contiguous range of the n rows that belongs to this process; shares differ by at most one row."""
    start = sum(sizes(n)[: rank()])
    return slice(start, start + sizes(n)[rank()])


def sizes(n: int) -> list[int]:
    """Return the number of rows or columns of each process."""
    return [n // world() + (r < n % world()) for r in range(world())]


def total(*tensors: Tensor, same: bool = False) -> tuple[Tensor, ...]:
    """Return the sums of tensors over all processes, added in float64; differentiable.

    Parameters
    ----------
    tensors
        Tensors of the same shapes and type in every process.
    same
        Whether the gradients of the sums are equal in every process, like those of moments. Their sum is then the
        gradient times the number of processes, without an exchange.
    """
    if world() == 1:
        return tensors
    sums: tuple[Tensor, ...] = _Total.apply(same, *tensors)  # type: ignore[no-untyped-call]
    return sums


def average_gradients(parameters: Iterable[Tensor]) -> None:
    """Replace each gradient by its mean over all processes, the last step of every backward pass."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if world() == 1 or not gradients:
        return
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])  # not in float64, unlike sums over nodes
    _call(dist.all_reduce, flat)
    pieces = (flat / world()).split([gradient.numel() for gradient in gradients])  # type: ignore[no-untyped-call]
    for gradient, piece in zip(gradients, pieces, strict=True):
        gradient.copy_(piece.view(gradient.shape))


def agree(value: float) -> float:
    """Return the maximum of a value over all processes."""
    if world() == 1:
        return value
    values = torch.tensor([value], dtype=torch.float64, device=_device())
    _call(dist.all_reduce, values, dist.ReduceOp.MAX)
    return float(values)


def to_columns(rows: Tensor, n: int) -> Tensor:
    """Exchange rows for columns: from this process's rows of an n-row matrix to all rows of its columns."""
    columns: Tensor = _Exchange.apply(rows, n, rows.shape[1], True)  # type: ignore[no-untyped-call]
    return columns


def to_rows(columns: Tensor, width: int) -> Tensor:
    """Exchange columns for rows: the inverse of `to_columns` for a matrix of a given width."""
    rows: Tensor = _Exchange.apply(columns, columns.shape[0], width, False)  # type: ignore[no-untyped-call]
    return rows


def swapped(matrix: Tensor) -> tuple[Tensor, ...]:
    """Exchange matrices for rows: from all rows of this process's matrix to its rows of every process's matrix."""
    rows: tuple[Tensor, ...] = _Swap.apply(matrix)  # type: ignore[no-untyped-call]
    return rows


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, same: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.same = same
        return tuple(_summed(tensors))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, *([gradient * world() for gradient in gradients] if ctx.same else _summed(gradients))


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, n: int, width: int, columns: bool) -> Tensor:
        ctx.shape, ctx.columns = (n, width), columns
        return _columns(part, n) if columns else _rows(part, width)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        n, width = ctx.shape
        return _rows(gradient, width) if ctx.columns else _columns(gradient, n), None, None, None


class _Swap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> tuple[Tensor, ...]:
        n, width = matrix.shape
        ctx.given, ctx.taken = [h * width for h in sizes(n)], [sizes(n)[rank()] * width] * world()
        received = matrix.new_empty(world(), sizes(n)[rank()], width)
        _call(dist.all_to_all_single, received.view(-1), matrix.contiguous().view(-1), ctx.taken, ctx.given)
        return received.unbind()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        width = gradients[0].shape[1]
        received = gradients[0].new_empty(sum(ctx.given) // width, width)
        _call(dist.all_to_all_single, received.view(-1), torch.cat(gradients).view(-1), ctx.given, ctx.taken)
        return received


def _columns(rows: Tensor, n: int) -> Tensor:
    widths, heights = sizes(rows.shape[1]), sizes(n)
    sent = torch.cat([part.reshape(-1) for part in rows.split(widths, 1)])  # type: ignore[no-untyped-call]
    received = rows.new_empty(n, widths[rank()])
    taken, given = [h * widths[rank()] for h in heights], [rows.shape[0] * w for w in widths]
    _call(dist.all_to_all_single, received.view(-1), sent, taken, given)
    return received


def _rows(columns: Tensor, width: int) -> Tensor:
    widths, heights = sizes(width), sizes(columns.shape[0])
    received = columns.new_empty(heights[rank()] * width)
    given = [h * columns.shape[1] for h in heights]
    taken = [heights[rank()] * w for w in widths]
    _call(dist.all_to_all_single, received, columns.contiguous().view(-1), taken, given)
    parts = received.split(taken)  # type: ignore[no-untyped-call]
    return torch.cat([part.view(heights[rank()], w) for part, w in zip(parts, widths, strict=True)], 1)


def _summed(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return the sums over all processes, in one exchange."""
    parts = list(tensors)
    flat = torch.cat([part.reshape(-1).double() for part in parts])
    _call(dist.all_reduce, flat)
    pieces = flat.split([part.numel() for part in parts])  # type: ignore[no-untyped-call]
    return [piece.view(part.shape).to(part.dtype) for piece, part in zip(pieces, parts, strict=True)]


def _call(collective: Callable[..., Any], *arguments: Any) -> None:
    """Run a collective operation; an error means that another process has failed."""
    try:
        collective(*arguments)
    except RuntimeError as error:
        why = "no longer answers" if "imed out" in str(error) else "has ended"
        raise LostProcessError(f"One of the {world()} processes of this run {why}.") from error


def _device() -> str:
    return "cuda" if dist.get_backend() == "nccl" else "cpu"
