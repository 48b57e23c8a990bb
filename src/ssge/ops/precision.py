"""Precision of operations within ``torch.autocast``, the context of mixed-precision training."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])


def product_dtype(matrix: Tensor) -> torch.dtype:
    """Return the precision of products with a matrix: that of ``torch.autocast`` if active, else the matrix's."""
    device = matrix.device.type
    if matrix.dtype == torch.float32 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return matrix.dtype


def in_float32(function: Function) -> Function:
    """Make a function compute in float32 even within ``torch.autocast``; bfloat16 arguments are converted."""

    @wraps(function)
    def run(first: Tensor, *others: Any, **options: Any) -> Any:
        with torch.autocast(first.device.type, enabled=False):
            return function(_wide(first), *map(_wide, others), **options)

    return cast("Function", run)


def _wide(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype == torch.bfloat16 else value
