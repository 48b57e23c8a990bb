"""NAFS: k-hop features, weighted per node by their similarity to the node; training-free."""

from __future__ import annotations

from pydantic import Field, PositiveInt
from torch import Tensor

from ssge.methods._propagated import Propagated, PropagatedConfig
from ssge.ops.adjacency import Adjacency
from ssge.ops.propagation import weighted_hops


class NAFSConfig(PropagatedConfig):
    """Settings of NAFS; the names in brackets are the paper's."""

    hops: PositiveInt = Field(16, description="Number of propagation steps [k].")


class NAFS(Propagated):
    """Node-adaptive feature smoothing: each node has its own weights of hops (`ssge.ops.propagation.weighted_hops`).

    Differences from the paper: one normalization of the adjacency, whereas the paper combines several; cosines are
    those of the reduced columns.
    """

    name = "nafs"
    title = "NAFS"
    reference = "Zhang et al., NAFS: A Simple yet Tough-to-beat Baseline for Graph Representation, 2022"

    config: NAFSConfig

    def propagate(self, adjacency: Adjacency, h: Tensor, chunk: int) -> Tensor:
        """Return the weighted hops."""
        return weighted_hops(adjacency, h, self.config.hops, chunk)
