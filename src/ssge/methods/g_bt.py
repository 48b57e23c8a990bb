"""G-BT: Barlow Twins on two views of a graph; no negatives, no projector, no moving average."""

from __future__ import annotations

import torch
from pydantic import Field

from ssge.graph import GraphInfo
from ssge.methods._base import EdgeDrop, FeatureMask, Method, NodeBatchConfig, NormalizeFeatures, Widths
from ssge.nn.encoders import GCN
from ssge.nn.schedules import warm_up_cosine
from ssge.objectives import Losses
from ssge.objectives.decorrelation import barlow
from ssge.ops.random import Key
from ssge.views import Compose, DropEdges, MaskFeatures, View


class GBTConfig(NodeBatchConfig):
    """Settings of G-BT."""

    lr: float = Field(5e-4, gt=0, description="Peak learning rate of AdamW, after the warm-up.")
    weight_decay: float = Field(1e-5, ge=0, description="Decoupled weight decay of AdamW.")
    warm_up: float = Field(
        0.1, ge=0, lt=1, description="Fraction of the epochs for the warm-up of the learning rate from 0."
    )
    edge_drop: EdgeDrop = 0.4
    feature_mask: FeatureMask = 0.1
    redundancy_weight: float | None = Field(
        None, ge=0, description="Weight of the off-diagonal correlations; default: 1 / width of the embedding."
    )
    widths: Widths = (512, 256)
    normalize_features: NormalizeFeatures = False


class GBT(Method):
    """Graph Barlow Twins; see `ssge.objectives.decorrelation.barlow` for the formula.

    The encoder is a GCN with batch normalization (momentum 0.01) and PReLU between its layers and a linear output. The
    learning rate has a linear ``warm_up`` and a cosine decay. Random: the initial weights, the dropped edges and
    the masked columns of each view. Cost of a step, for m edges and width d: two passes of the encoder,
    O(m d + n d^2), and O(n d^2) for the moments, in O(d^2) memory.

    Differences from the released code: no layer has a bias, because normalization or the objective cancels it and the
    optimizer turns the rounding of its gradient into a random shift; the drop rates of the paper were chosen by test
    accuracy and are not in the repository, so the recipes use others and document their origin; features are divided by
    their row sums only with ``normalize_features``, whereas the code always does so.
    """

    name = "g_bt"
    title = "G-BT"
    family = "non-contrastive"
    of_moments = True
    reference = (
        "Bielak et al., Graph Barlow Twins: A self-supervised representation learning framework for graphs, 2022"
    )
    normalization = "in"
    Optimizer = torch.optim.AdamW

    config: GBTConfig
    encoder: GCN

    def __init__(self, config: GBTConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        self.encoder = GCN((info.num_features, *config.widths), "prelu", generator, norm=0.01)
        self.augment = Compose(DropEdges(config.edge_drop), MaskFeatures(config.feature_mask))

    def lr_schedule(self, progress: float) -> float:
        """Return the factor of the learning rate: warm-up, then cosine decay."""
        return warm_up_cosine(progress, self.config.warm_up)

    def forward(self, view: View, key: Key) -> Losses:
        """Return invariance + w * redundancy of two augmented views."""
        z1, z2, weight = self.encoder.factors_of_two(view, self.augment, key)
        return barlow(z1, z2, self.config.redundancy_weight, weight)
