"""A running covariance for small mini-batches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ssge.ops.moments import Moments


class RunningCovariance(nn.Module):
    """Replaces the covariances of a batch by an exponential moving average over all steps.

    The covariance of a batch of n nodes has rank n - 1 at most, and is far from that of all nodes unless n is several
    times the width d. With C_t the covariance of step t and momentum b, an objective uses

        C = (1 - b) / (1 - b^t) * sum_i b^(t - i) C_i

    with the number of rows that the average covers, and its whole gradient goes to C_t. That gradient is linear in C_t.
    So if the weights change little in 1 / (1 - b) steps, its mean over the steps is the full-batch gradient. The
    column-wise covariances between the two views are treated in the same way.

    Parameters
    ----------
    width
        d.
    momentum
        b, from 0 to below 1; at 0 each step uses only its own covariances.
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
        """Return the moments of two views with running covariances instead of those of the batch."""
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
    """Update a running mean with the value of a step, and return the mean with the gradient of that value."""
    mean.lerp_(own.detach(), share)
    return own + (mean - own).detach()
