"""RGRL: keep a node's relations to others, near and far, instead of its position; anchors in place of negatives."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from ssge.graph import Graph, GraphInfo
from ssge.methods._base import EdgeDrops, Epochs, FeatureMasks, NormalizeFeatures, Prepared
from ssge.methods._bootstrap import Bootstrap, BootstrapConfig
from ssge.objectives import Losses
from ssge.objectives.relation import anchored_relation, local_relation
from ssge.ops.adjacency import Adjacency
from ssge.ops.diffusion import top_pagerank
from ssge.ops.random import Key
from ssge.views import augmented, drop_and_mask


class RGRLConfig(BootstrapConfig):
    """Settings of RGRL."""

    epochs: Epochs = 300
    edge_drops: EdgeDrops = (0.2, 0.4)
    feature_masks: FeatureMasks = (0.3, 0.4)
    anchors: PositiveInt = Field(512, description="Nodes that all are related to, drawn anew in each step [S].")
    anchor_base: float = Field(
        0.9, gt=0, le=1, description="A node of degree d is drawn in proportion to base^log(d+1) + floor [a]."
    )
    anchor_floor: float = Field(0.1, ge=0, description="The floor of that proportion, which is 1 at most [b].")
    neighbors: PositiveInt = Field(2, description="Nodes next by personalized PageRank that each is related to [k].")
    own_neighbor: bool = Field(False, description="Count each node among its own neighbors, as released.")
    teleport: float = Field(0.15, gt=0, le=1, description="Probability that the walk of PageRank returns [alpha].")
    student_temperature: float = Field(0.1, gt=0, description="Temperature of the predictions' relations.")
    anchor_temperature: float = Field(0.01, gt=0, description="Temperature of the target's relations to anchors.")
    local_temperature: float = Field(1.0, gt=0, description="Temperature of the target's relations to neighbors.")
    local_weight: float = Field(1.0, ge=0, description="Weight of the relations to neighbors [lambda].")
    normalize_features: NormalizeFeatures = False
    released_bn: bool = Field(False, description="Train with batch normalization in evaluation mode, as released.")


@dataclass(frozen=True)
class Related(Prepared):
    """The clean view, and the positions of the k neighbors of each node, -1 for those it lacks."""

    near: Tensor


class RGRL(Bootstrap):
    """Relational graph representation learning; the formula stands at `ssge.objectives.relation`.

    With predictions of one view and the target's vectors of the other, the loss is the divergence of the relations to
    anchors plus lambda times that of the relations to the k nodes next by personalized PageRank; both orders of the
    views are added. Nodes that reach no other have no part in the second. The target follows at a constant momentum.

    Random: the initial weights, the dropped edges and masked columns of each view, the anchors of each step (drawn
    without replacement, the same for both orders). Cost of a step, for s anchors: four passes of the encoder, two of
    them without gradient, O(n s d + n k d) time and O(n s) memory; once before training the neighbors, by pushing.

    Differences from the released code: its evaluation leaves batch normalization in evaluation mode, so that it takes
    the initial figures 0 and 1 in all of training but the first step, which ``released_bn`` reproduces from the first
    step on; its PageRank is exact and needs n x n numbers, here small residuals are left out; it counts the node among
    its own neighbors (``own_neighbor``), so that of two only one is another; layers before a batch normalization have
    no bias.
    """

    name = "rgrl"
    title = "RGRL"
    reference = "Lee et al., Relational Self-Supervised Learning on Graphs, 2022"
    normalization = "in"

    config: RGRLConfig

    def __init__(self, config: RGRLConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info, generator)
        self.augmentations = drop_and_mask(config.edge_drops, config.feature_masks)

    def prepare(self, graph: Graph) -> Related:
        """Return the clean view and the neighbors of each node by personalized PageRank."""
        c, view = self.config, super().prepare(graph)
        return Related(view, top_pagerank(view.adjacency, c.neighbors, c.teleport, c.own_neighbor))

    def forward(self, batch: Related, key: Key) -> Losses:
        """Return the divergences of the relations to anchors and to neighbors."""
        c, view = self.config, batch.view
        anchors = self.drawn_anchors(view.adjacency, key.fold_in("anchors").generator(self.device))
        pairs = self.crossed(*augmented(view, self.augmentations, key))
        far = torch.stack([anchored_relation(q, t, anchors, c.student_temperature, c.anchor_temperature)
                           for q, t in pairs]).sum()  # fmt: skip
        local = torch.stack([local_relation(q, t, batch.near, c.student_temperature, c.local_temperature)
                             for q, t in pairs]).sum()  # fmt: skip
        return Losses(far + c.local_weight * local, {"anchors": far.detach(), "local": local.detach()})

    def drawn_anchors(self, adjacency: Adjacency, generator: torch.Generator) -> Tensor:
        """Draw different nodes, those of low degree rather than those of high degree."""
        degree = adjacency.pattern.incoming.indptr.diff()  # its self-loop is the one that is added to the degree
        share = (self.config.anchor_base ** degree.log() + self.config.anchor_floor).clamp_max(1)
        return share.multinomial(min(self.config.anchors, degree.numel()), generator=generator)
