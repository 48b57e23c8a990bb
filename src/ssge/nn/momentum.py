"""Moving average: a target network that follows an online network slowly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

Buffers: TypeAlias = Literal["own", "average", "copy"]


class MovingAverage(nn.Module):
    """A frozen network that `update` moves towards another of the same shape; calling it takes no gradient.

    Its parameters are part of the ``state_dict``, so that checkpoints hold them, but not of what is trained. The other
    network is not held but handed to `update`, else a method that has both would own its parameters twice.

    Parameters
    ----------
    network
        The target itself, for example a copy of the online network; it is frozen and belongs to this module.
    buffers
        Of buffers such as the running figures of a batch normalization: ``own`` leaves to the target what it counts
        itself, ``average`` moves them as the parameters are moved, ``copy`` takes those of the online network.
        Whole numbers are copied wherever others are averaged.
    """

    def __init__(self, network: nn.Module, buffers: Buffers = "own") -> None:
        super().__init__()
        self.network = network.requires_grad_(False)
        self.buffers_mode = buffers

    @torch.no_grad()
    def forward(self, *arguments: Any) -> Any:
        """Return what the target makes of the arguments, without gradient."""
        return self.network(*arguments)

    @torch.no_grad()
    def update(self, online: nn.Module, momentum: float | Sequence[float]) -> None:
        """Move to ``momentum * target + (1 - momentum) * online``; at momentum 1 nothing moves.

        A sequence gives each parameter a momentum of its own, in the order of ``parameters()``; buffers that are
        averaged then take the last one.
        """
        own = list(self.network.parameters())
        rates = [momentum] * len(own) if isinstance(momentum, float | int) else list(momentum)
        for parameter, other, rate in zip(own, online.parameters(), rates, strict=True):
            parameter.lerp_(other, 1 - rate)
        if self.buffers_mode == "own":
            return
        for buffer, source in zip(self.network.buffers(), online.buffers(), strict=True):
            if self.buffers_mode == "average" and buffer.is_floating_point():
                buffer.lerp_(source, 1 - rates[-1])
            else:
                buffer.copy_(source)
