"""Dropout with an explicit random generator."""

from __future__ import annotations

import torch
from torch import Tensor


def dropout(x: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Set each entry to zero with probability ``rate`` (below 1) and divide the others by 1 - rate.

    The expectation is x, so evaluation needs no scaling. At rate 0 it returns x and draws no random number.
    """
    if rate == 0:
        return x
    kept = torch.rand(x.shape, generator=generator, device=x.device).ge_(rate)
    return (x * kept).div_(1 - rate)
