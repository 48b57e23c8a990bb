"""Base of the graph autoencoders: settings, and the loss of the decoded edges.

Why not ``torch_geometric.nn.GAE`` and ``VGAE``: they gather m x d rows of Z for each score, sample non-edges by
rejection from the global generator, and need a second copy of the graph as an edge index. See
`ssge.objectives.reconstruction`.
"""

from __future__ import annotations

from pydantic import Field, PositiveInt
from torch import Tensor

from ssge.methods._base import Epochs, LearningRate, Method, MethodConfig, WeightDecay
from ssge.nn.encoders import GCN
from ssge.objectives.reconstruction import dense_reconstruction, sampled_reconstruction
from ssge.ops.random import Key
from ssge.ops.sampling import Pairs, sample_non_edges
from ssge.views import View


class AutoencoderConfig(MethodConfig):
    """Settings of a graph autoencoder."""

    epochs: Epochs = 200
    lr: LearningRate = 1e-2
    weight_decay: WeightDecay = 0.0
    widths: tuple[PositiveInt, ...] = Field(
        (256, 128), min_length=1, description="Width of each layer, the code last; published for links: 32 16."
    )
    non_edges: float = Field(1.0, gt=0, description="Sampled non-edges per edge and step.")
    dense: bool = Field(False, description="Use all n x n pairs instead of a sample, as published; O(n^2) time.")


class Autoencoder(Method):
    """A GCN with an inner-product decoder; subclasses define the latent code."""

    family = "traditional"
    config: AutoencoderConfig
    encoder: GCN

    def reconstruction(self, z: Tensor, view: View, key: Key) -> Tensor:
        """Return the loss of the edges of a view decoded from Z, n x d."""
        edges, entries = Pairs.of(view.adjacency), view.adjacency.num_entries
        count = max(1, round(self.config.non_edges * entries))
        if self.config.dense or count >= view.num_nodes**2 - entries:  # sampling all pairs saves nothing
            return dense_reconstruction(z, edges)
        return sampled_reconstruction(
            z, edges, sample_non_edges(edges, count, key.fold_in("non-edges").generator(z.device))
        )
