"""gCooL: inter-view InfoNCE, and communities that are learned along with the nodes."""

from __future__ import annotations

import math

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from ssge.graph import GraphInfo
from ssge.methods._adaptive import Adaptive, AdaptiveConfig, Batch
from ssge.methods._base import NodeBatchConfig
from ssge.objectives import Losses
from ssge.objectives.community import community_contrast, deca
from ssge.objectives.infonce import infonce
from ssge.ops.communities import soft_assignments
from ssge.ops.edges import edge_matrix, edges_among, without_loops
from ssge.ops.random import Key
from ssge.views import augmented


class GCooLConfig(AdaptiveConfig, NodeBatchConfig):
    """Settings of gCooL."""

    communities: PositiveInt = Field(10, description="Number of communities [K].")
    density_penalty: float = Field(1.0, ge=0, description="Weight of the edges between communities [lambda].")
    stride: PositiveInt = Field(500, description="Decay constant, in epochs, of the weight of the density term.")
    fading: float = Field(0.2, gt=0, description="Fraction of the stride after which the community terms are off.")
    one_sided: bool = Field(False, description="Use only nodes of the first view as anchors, as released.")


class GCooL(Adaptive):
    """Graph communal contrastive learning; see `ssge.objectives.infonce` and `ssge.objectives.community`.

    With t the number of epochs so far, c = exp(-t / stride) and a = max(0, 1 - t / (fading stride)), the loss is

        inter-view InfoNCE of the nodes + a (c DeCA + (1 - c) contrast of nodes and communities)

    in which DeCA is the mean over both views. Community centers are parameters that get gradients from DeCA only. The
    loss and the assignment to communities use the projections of the nodes. Augmentation is as in GCA.

    With ``batch_nodes`` an epoch has several steps, each on a random mini-batch and the edges within it. The density
    within communities then has a smaller weight, by the share of the nodes in a step. Without a recipe, this is the
    default on graphs of more than 16,384 nodes.

    Random: the initial weights and centers, the dropped edges and the masked columns of each view. Cost of a step: two
    passes of the encoder, O(n^2 d) time for the similarities of nodes and O(m K + n K d) for the communities.

    Differences from the released code: the nodes of both views are anchors, as in the paper (``one_sided`` reproduces
    the code, which uses those of the first view twice); no n x n matrix is formed; empty communities are excluded from
    the contrast; the augmentation differs as in GCA.
    """

    name = "gcool"
    title = "gCooL"
    reference = "Li et al., Graph Communal Contrastive Learning, WWW 2022"

    config: GCooLConfig
    progress: Tensor

    def __init__(self, config: GCooLConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info, generator)
        self.centers = nn.Parameter(torch.randn(config.communities, config.widths[-1], generator=generator))
        self.register_buffer("progress", torch.zeros(()))  # saved with the weights, so that training can resume

    def forward(self, batch: Batch, key: Key) -> Losses:
        """Return the contrast of nodes, and the density and contrast of communities while their weight is positive."""
        c, views = self.config, augmented(batch.view, batch.augmentations, key)
        h1, h2 = (self.projector(h) for h in self.encoded(views))
        nodes = infonce(h1, h2, c.temperature, intra=False, symmetric=not c.one_sided)
        r1, r2 = (soft_assignments(h, self.centers, c.temperature) for h in (h1, h2))
        a1, a2 = (edge_matrix(without_loops(edges_among(view.adjacency, view.seeds))) for view in views)
        density = (deca(r1, a1, c.density_penalty) + deca(r2, a2, c.density_penalty)) / 2
        contrast = community_contrast(h1, h2, r1.argmax(1), r2.argmax(1), c.communities, c.temperature)
        part, share = self.weights()
        total = nodes + part * (share * density + (1 - share) * contrast)
        terms = {"nodes": nodes, "density": density, "communities": contrast}
        return Losses(total, {name: term.detach() for name, term in terms.items()})

    def weights(self) -> tuple[float, float]:
        """Return a, the weight of the communities, and c, the share of their density in it."""
        c = self.config
        epochs = float(self.progress) * c.epochs
        return max(0.0, 1 - epochs / (c.fading * c.stride)), math.exp(-epochs / c.stride)

    def after_step(self, progress: float) -> None:
        """Update the number of epochs so far."""
        self.progress.fill_(progress)
