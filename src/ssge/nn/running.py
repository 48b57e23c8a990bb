"""A running covariance: what small batches lack."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ssge.ops.moments import Moments


class RunningCovariance(nn.Module):
    """Gives the moments of a batch the covariances of many: means over all steps in which older ones fade.

    A batch of n nodes has a covariance of rank n - 1 at most, and far from that of all nodes unless n is several times
    the width d. With C_t the covariance of step t and momentum b, an objective sees

        C = (1 - b) / (1 - b^t) * sum_i b^(t - i) C_i

    as that of so many rows as the mean holds, and its gradient goes to C_t as a whole. That gradient is linear in C_t.
    So where the weights move little in 1 / (1 - b) steps, its mean over the steps is the gradient of all nodes at once.
    The covariances of one view with the other, column by column, are treated alike.

    Parameters
    ----------
    width
        d.
    momentum
        b, from 0 to below 1; at 0 each step sees its own covariances alone.
    """

    covariance: Tensor
    cross: Tensor
    steps: Tensor

    def __init__(self, width: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("covariance", torch.zeros(2, width, width))
        self.register_buffer("cross", torch.zeros(width))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, m: Moments) -> Moments:
        """Return the moments of two views with running covariances in place of those of the batch."""
        if not self.training:
            return m
        assert m.cross is not None
        self.steps += 1
        share = (1 - self.momentum) / (1 - self.momentum ** int(self.steps))
        n, rows = round(m.n / share), max(m.n - 1, 1)
        first, second, cross = (
            (n - 1) * _valued(own / rows, mean, share)
            for own, mean in zip((*m.scatter, m.cross), (*self.covariance, self.cross), strict=True)
        )
        return m._replace(n=n, scatter=(first, second), cross=cross)


def _valued(own: Tensor, mean: Tensor, share: float) -> Tensor:
    """Move a mean towards a step's own figure, and return it with the gradient of that figure."""
    mean.lerp_(own.detach(), share)
    return own + (mean - own).detach()
