"""Exponential moving average: a momentum target network of an online network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn


class MovingAverage(nn.Module):
    """A frozen network that `update` moves toward another of the same shape; calls compute no gradient.

    Its parameters are in the ``state_dict``, so checkpoints contain them, but they are not trained. The online network
    is passed to `update` and not stored, because otherwise a method with both would own its parameters twice. The
    target keeps its own buffers, such as the running statistics of batch normalization.

    Parameters
    ----------
    network
        The target, for example a copy of the online network; it is frozen and owned by this module.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network.requires_grad_(False)

    @torch.no_grad()
    def forward(self, *arguments: Any) -> Any:
        """Return the output of the target, without gradient."""
        return self.network(*arguments)

    @torch.no_grad()
    def update(self, online: nn.Module, momentum: float | Sequence[float]) -> None:
        """Set the target to ``momentum * target + (1 - momentum) * online``; at momentum 1 nothing changes.

        A sequence gives one momentum per parameter, in the order of ``parameters()``.
        """
        own = list(self.network.parameters())
        rates = [momentum] * len(own) if isinstance(momentum, float | int) else list(momentum)
        for parameter, other, rate in zip(own, online.parameters(), rates, strict=True):
            parameter.lerp_(other, 1 - rate)
