"""Moving average: a target network that follows an online network slowly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn


class MovingAverage(nn.Module):
    """A frozen network that `update` moves towards another of the same shape; calling it takes no gradient.

    Its parameters are part of the ``state_dict``, so that checkpoints hold them, but not of what is trained. The other
    network is not held but handed to `update`, else a method that has both would own its parameters twice. Buffers,
    such as the running figures of a batch normalization, are left to the target, which counts its own.

    Parameters
    ----------
    network
        The target itself, for example a copy of the online network; it is frozen and belongs to this module.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network.requires_grad_(False)

    @torch.no_grad()
    def forward(self, *arguments: Any) -> Any:
        """Return what the target makes of the arguments, without gradient."""
        return self.network(*arguments)

    @torch.no_grad()
    def update(self, online: nn.Module, momentum: float | Sequence[float]) -> None:
        """Move to ``momentum * target + (1 - momentum) * online``; at momentum 1 nothing moves.

        A sequence gives each parameter a momentum of its own, in the order of ``parameters()``.
        """
        own = list(self.network.parameters())
        rates = [momentum] * len(own) if isinstance(momentum, float | int) else list(momentum)
        for parameter, other, rate in zip(own, online.parameters(), rates, strict=True):
            parameter.lerp_(other, 1 - rate)
