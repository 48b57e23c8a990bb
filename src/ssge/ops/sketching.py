r"""Sketches: random projections P Z of the node axis to fewer rows, which preserve Z'Z in expectation (COSTA).

Z are n x d representations, P is k x n with E[P'P] = I, hence E[(PZ)'(PZ)] = Z'Z.

- `gaussian_sketch`: entries of P are N(0, 1/k), as in COSTA. O(k n d) time. P is drawn in groups of rows, and
  redrawn for the gradient, so that at most 2^22 of its numbers are in memory at a time.
- `sparse_sketch`: each column of P has s entries +-1/sqrt(s) at random positions, with the same expectation.
  O(s n d) time, O(s n) memory.

Both project several matrices by the same P, as COSTA does with its two views.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.ops.sparse import CSR, SparseMatrix, transpose

_ENTRIES = 1 << 22  # numbers of P in memory at once


def gaussian_sketch(matrices: tuple[Tensor, ...], size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Return P Z of each matrix Z, for one P of independent normal numbers.

    Parameters
    ----------
    matrices
        n x d each; d may differ.
    size
        k, the number of rows of P: ratio n in COSTA.
    generator
        On the device of the matrices. It draws one number, the seed of P.
    """
    _check(size)
    seed = int(torch.randint(1 << 62, (1,), generator=generator, device=generator.device))
    joined = torch.cat(matrices, 1)
    sketch: Tensor = _Gaussian.apply(joined, size, seed)  # type: ignore[no-untyped-call]
    return sketch.split([z.shape[1] for z in matrices], 1)  # type: ignore[no-untyped-call, no-any-return]


def sparse_sketch(
    matrices: tuple[Tensor, ...], size: int, generator: torch.Generator, copies: int = 8
) -> tuple[Tensor, ...]:
    """Return P Z of each matrix Z, for one sparse P: each row of Z is added to some random rows with random signs.

    Parameters
    ----------
    matrices, size, generator
        See `gaussian_sketch`.
    copies
        s, entries per column of P. A larger s approximates the Gaussian sketch.
    """
    _check(size)
    n, device = matrices[0].shape[0], matrices[0].device
    place = torch.randint(size, (n * copies,), generator=generator, device=device)
    sign = torch.randint(2, (n * copies,), generator=generator, device=device).to(matrices[0].dtype) * 2 - 1
    columns = CSR(torch.arange(n + 1, device=device) * copies, place, sign * copies**-0.5)
    projection = SparseMatrix(transpose(columns, size)[0], columns)
    return tuple(projection @ z for z in matrices)


def _check(size: int) -> None:
    if size < 1:
        raise InputError(f"size must be at least 1; received {size}.")


class _Gaussian(torch.autograd.Function):
    """P Z and P' G, with P drawn from the same seed both times."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, size: int, seed: int) -> Tensor:
        ctx.setting = size, seed, z.shape[0]
        return torch.cat([part @ z for part in _parts(z, size, z.shape[0], seed)])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        size, seed, n = ctx.setting
        total, start = gradient.new_zeros(n, gradient.shape[1]), 0
        for part in _parts(gradient, size, n, seed):
            total.addmm_(part.t(), gradient[start : start + part.shape[0]])
            start += part.shape[0]
        return total, None, None


def _parts(like: Tensor, size: int, n: int, seed: int) -> Iterator[Tensor]:
    """Yield P in groups of rows."""
    generator = torch.Generator(like.device).manual_seed(seed)
    step = max(1, _ENTRIES // n)
    for start in range(0, size, step):
        shape = min(step, size - start), n
        yield torch.randn(shape, generator=generator, dtype=like.dtype, device=like.device).mul_(size**-0.5)
