"""SSGC: the mean of K hops of the features, with a residual share of the features themselves; training-free."""

from __future__ import annotations

from pydantic import Field, PositiveInt
from torch import Tensor

from ssge.methods._propagated import Propagated, PropagatedConfig
from ssge.ops.adjacency import Adjacency
from ssge.ops.propagation import mean_of_hops


class SSGCConfig(PropagatedConfig):
    """Settings of SSGC; the names in brackets are the paper's."""

    hops: PositiveInt = Field(16, description="Number of propagation steps [K].")
    alpha: float = Field(0.05, ge=0, le=1, description="Weight of the node's own features [alpha].")


class SSGC(Propagated):
    """Simple spectral graph convolution: alpha X + (1 - alpha) / K * (A X + ... + A^K X).

    See `ssge.ops.propagation.mean_of_hops`. With alpha = 1 / (K + 1) it is the plain mean of the hops 0..K. The paper
    trains a classifier on it; here it is the embedding.
    """

    name = "ssgc"
    title = "SSGC"
    reference = "Zhu and Koniusz, Simple Spectral Graph Convolution, 2021"

    config: SSGCConfig

    def propagate(self, adjacency: Adjacency, h: Tensor, chunk: int) -> Tensor:
        """Return the mean of the hops."""
        return mean_of_hops(adjacency, h, self.config.hops, self.config.alpha, chunk)
