"""RGRL: preserve the relations of a node to neighbors and to random anchors; no negatives."""

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
    anchors: PositiveInt = Field(512, description="Anchor nodes sampled in each step [S].")
    anchor_base: float = Field(
        0.9, gt=0, le=1, description="Sampling weight of an anchor of degree d: base^log(d+1) + floor [a]."
    )
    anchor_floor: float = Field(0.1, ge=0, description="Floor of the sampling weight, at most 1 [b].")
    neighbors: PositiveInt = Field(2, description="Nearest nodes by personalized PageRank, per node [k].")
    own_neighbor: bool = Field(False, description="Include each node among its own neighbors, as released.")
    teleport: float = Field(0.15, gt=0, le=1, description="Teleport probability of personalized PageRank [alpha].")
    student_temperature: float = Field(0.1, gt=0, description="Temperature of the predicted similarities.")
    anchor_temperature: float = Field(0.01, gt=0, description="Temperature of the target's similarities to anchors.")
    local_temperature: float = Field(1.0, gt=0, description="Temperature of the target's similarities to neighbors.")
    local_weight: float = Field(1.0, ge=0, description="Weight of the term on neighbors [lambda].")
    normalize_features: NormalizeFeatures = False
    released_bn: bool = Field(False, description="Train with batch normalization in evaluation mode, as released.")


@dataclass(frozen=True)
class Related(Prepared):
    """The clean view, and the positions of the k neighbors of each node, padded with -1."""

    near: Tensor


class RGRL(Bootstrap):
    """Relational graph representation learning; see `ssge.objectives.relation` for the formula.

    With predictions of one view and target vectors of the other, the loss is the divergence of the relations to anchors
    plus lambda times that of the relations to the k nearest nodes by personalized PageRank, summed over both orders of
    the views. The second term excludes nodes that reach no other node. The momentum of the target is constant.

    Random: the initial weights, the dropped edges and masked columns of each view, the anchors of each step (drawn
    without replacement, the same for both orders). Cost of a step, for s anchors: four passes of the encoder, two of
    them without gradient, O(n s d + n k d) time and O(n s) memory; once before training the neighbors, by forward push.

    Differences from the released code: its evaluation leaves batch normalization in evaluation mode, so that it uses
    the initial statistics 0 and 1 in all of training except the first step (``released_bn`` reproduces this from the
    first step on); its PageRank is exact and needs n x n numbers, whereas ours drops small residuals; it counts the
    node among its own neighbors (``own_neighbor``), so that only one of two is another node; layers before a batch
    normalization have no bias.
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
        """Sample distinct anchors; nodes of low degree are more likely."""
        degree = adjacency.pattern.incoming.indptr.diff()  # the self-loop is the 1 added to the degree
        share = (self.config.anchor_base ** degree.log() + self.config.anchor_floor).clamp_max(1)
        return share.multinomial(min(self.config.anchors, degree.numel()), generator=generator)
