"""SGC: features propagated over K hops, A^K X; training-free."""

from __future__ import annotations

from pydantic import Field, PositiveInt
from torch import Tensor

from ssge.methods._propagated import Propagated, PropagatedConfig
from ssge.ops.adjacency import Adjacency
from ssge.ops.propagation import power


class SGCConfig(PropagatedConfig):
    """Settings of SGC; the names in brackets are the paper's."""

    hops: PositiveInt = Field(2, description="Number of propagation steps [K].")


class SGC(Propagated):
    """Simplified graph convolution: A^K X, a GCN without weights and activations (`ssge.ops.propagation.power`).

    The paper trains a classifier on it; here it is the embedding.
    """

    name = "sgc"
    title = "SGC"
    reference = "Wu et al., Simplifying Graph Convolutional Networks, 2019"

    config: SGCConfig

    def propagate(self, adjacency: Adjacency, h: Tensor, chunk: int) -> Tensor:
        """Return A^K H."""
        return power(adjacency, h, self.config.hops, chunk)
