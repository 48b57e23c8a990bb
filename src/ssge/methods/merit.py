"""MERIT: contrast nodes across two views, and across an online network and its moving average."""

from __future__ import annotations

import copy

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from ssge.graph import GraphInfo
from ssge.methods._base import Epochs, FeatureMask, LearningRate
from ssge.methods._diffused import Diffused, DiffusedConfig, DiffusedMethod
from ssge.nn.encoders import GCN
from ssge.nn.heads import Head
from ssge.nn.momentum import MovingAverage
from ssge.objectives import Losses
from ssge.objectives.infonce import infonce
from ssge.ops.diffusion import ColumnScale
from ssge.ops.edges import add_edges
from ssge.ops.random import Key
from ssge.views import DropEdges, MaskFeatures, View


class MERITConfig(DiffusedConfig):
    """Settings of MERIT."""

    epochs: Epochs = 100
    lr: LearningRate = 3e-4
    edge_drop: float = Field(
        0.2,
        ge=0,
        le=1,
        description="Fraction of edges that the first view changes: half are dropped, and as many random ones added.",
    )
    feature_mask: FeatureMask = 0.5
    predictor_width: PositiveInt = Field(512, description="Width of the hidden layers of projector and predictor.")
    momentum: float = Field(0.8, ge=0, le=1, description="Momentum of the target's moving average.")
    view_weight: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Weight of the cross-view contrast; the cross-network contrast has the rest [beta].",
    )
    temperature: float = Field(1.0, gt=0, description="Temperature of the similarities.")
    norm_momentum: float = Field(
        0.1, gt=0, le=1, description="Momentum of the running statistics of batch normalization."
    )
    teleport: float = Field(0.05, gt=0, le=1, description="Teleport probability of personalized PageRank [alpha].")
    column_scale: ColumnScale = Field("sum", description="Divide columns of the diffusion by their sum or maximum.")


class Projected(nn.Module):
    """An encoder followed by a projector."""

    def __init__(self, encoder: GCN, projector: Head) -> None:
        super().__init__()
        self.encoder, self.projector = encoder, projector

    def forward(self, view: View) -> Tensor:
        """Return the projections of a view."""
        return self.projector(self.encoder(view))  # type: ignore[no-any-return]


class MERIT(DiffusedMethod):
    """Multi-scale contrastive Siamese networks; see `ssge.objectives.infonce` for the formula.

    The first view is the graph with some edges dropped and as many random ones added. The second is its personalized
    PageRank diffusion. Columns of X are masked in both. Let q be the predictions of the online network and z the
    projections of the target, for views 1 and 2. The loss is

        beta infonce(q1, q2) + (1 - beta) / 2 (infonce'(q1, z2) + infonce'(q2, z1))

    where infonce' has no intra-view negatives and anchors in its first argument only. The target is a moving average
    of encoder and projector. The embedding is the sum of the encoder's outputs for graph and diffusion.

    Random: the initial weights, the dropped and added edges and masked columns of each view; with ``batch_nodes`` the
    nodes of each step. Cost of a step, for s nodes and heads of hidden width w: four passes of the encoder, two of them
    without gradient, O(s d w) and O(s^2 d) time. Once before training: O(n^3) time and O(n^2) memory for the diffusion,
    less in large graphs.

    Differences from the released code: edges are dropped and added in each direction independently; the diffusion is
    the same in training and embedding, whereas the code normalizes it once more, with self-loops, in training only; a
    step uses all nodes, or a mini-batch drawn without replacement, whereas the code uses 2,000 nodes with consecutive
    ids in each of 4 steps per epoch; the projector's output has no bias, which the predictor's batch normalization
    cancels; the last epoch is kept, whereas the code reports the epoch with the best test accuracy.
    """

    name = "merit"
    title = "MERIT"
    reference = (
        "Jin et al., Multi-Scale Contrastive Siamese Networks for Self-Supervised Graph Representation Learning, "
        "IJCAI 2021"
    )

    config: MERITConfig

    def __init__(self, config: MERITConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        d = config.widths[-1]
        sizes, norm = (d, config.predictor_width, d), config.norm_momentum
        encoder = GCN((info.num_features, *config.widths), "prelu", generator, output_activation=True)
        self.online = Projected(encoder, Head(sizes, "prelu", generator, norm, output_bias=False))
        self.predictor = Head(sizes, "prelu", generator, norm)
        self.target = MovingAverage(copy.deepcopy(self.online))
        self.drop, self.mask = DropEdges(config.edge_drop / 2), MaskFeatures(config.feature_mask)

    @property
    def encoder(self) -> GCN:  # type: ignore[override]
        """The encoder of the online network."""
        return self.online.encoder

    def forward(self, batch: Diffused, key: Key) -> Losses:
        """Return the contrast of views and the contrast of networks."""
        c = self.config
        views = [self.mask(view, key.fold_in(i)) for i, view in enumerate((self.rewire(batch.graph, key), batch[1]))]
        q1, q2 = (self.predictor(self.online(view)) for view in views)
        z1, z2 = (self.target(view) for view in views)
        across_views = infonce(q1, q2, c.temperature)
        first, second = (infonce(q, z, c.temperature, intra=False, symmetric=False) for q, z in ((q1, z2), (q2, z1)))
        across_networks = (first + second) / 2
        total = c.view_weight * across_views + (1 - c.view_weight) * across_networks
        return Losses(total, {"views": across_views.detach(), "networks": across_networks.detach()})

    def rewire(self, view: View, key: Key) -> View:
        """Drop some edges of a view and add as many random ones."""
        count = round(self.config.edge_drop / 2 * (view.adjacency.num_entries - view.num_nodes))
        dropped = self.drop(view, key).adjacency
        return view._replace(adjacency=add_edges(dropped, count, key.fold_in("added").generator(self.device)))

    def after_step(self, progress: float) -> None:
        """Update the target."""
        self.target.update(self.online, self.config.momentum)
