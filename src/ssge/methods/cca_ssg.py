"""CCA-SSG: align two views and decorrelate the columns of each; no negatives, no projector."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from ssge.graph import GraphInfo
from ssge.methods._base import EdgeDrop, Epochs, FeatureMask, Method, NodeBatchConfig, WeightDecay, Widths
from ssge.nn.encoders import ENCODERS, GCN, MLP
from ssge.objectives import Losses
from ssge.objectives.decorrelation import cca
from ssge.ops.random import Key
from ssge.views import Compose, DropEdges, MaskFeatures, View


class CCASSGConfig(NodeBatchConfig):
    """Settings of CCA-SSG."""

    epochs: Epochs = 50
    weight_decay: WeightDecay = 0.0
    edge_drop: EdgeDrop = 0.4
    feature_mask: FeatureMask = 0.1
    decorrelation_weight: float = Field(1e-3, ge=0, description="Weight of the decorrelation term [lambda].")
    widths: Widths = (512, 512)
    encoder: Literal["gcn", "mlp"] = Field("gcn", description="gcn, or mlp: features alone, with batch normalization.")
    activation: Literal["elu", "relu", "none"] = Field("relu", description="Activation between layers.")
    output_bias: bool = Field(
        False, description="Add a bias to the last layer, as released. It has no useful gradient and drifts."
    )


class CCASSG(Method):
    """Canonical correlation analysis of two views; see `ssge.objectives.decorrelation.cca` for the formula.

    Random: the initial weights, the dropped edges and the masked columns of each view. Cost of a step, for m edges and
    width d: two passes of the encoder, O(m d + n d^2), and O(n d^2) for the moments, in O(d^2) memory.

    Differences from the released code: the last layer has no bias, because standardization cancels it and Adam turns
    the rounding of its gradient into a random shift of all embeddings (``output_bias`` restores it); the seed
    determines every random choice, whereas the released code has no seed; a constant column warns instead of
    giving NaN.
    """

    name = "cca_ssg"
    title = "CCA-SSG"
    family = "non-contrastive"
    of_moments = True
    reference = (
        "Zhang et al., From Canonical Correlation Analysis to Self-supervised Graph Neural Networks, NeurIPS 2021"
    )

    config: CCASSGConfig
    encoder: GCN | MLP

    def __init__(self, config: CCASSGConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        widths = (info.num_features, *config.widths)
        self.encoder = ENCODERS[config.encoder](widths, config.activation, generator, config.output_bias)
        self.augment = Compose(DropEdges(config.edge_drop), MaskFeatures(config.feature_mask))

    def forward(self, view: View, key: Key) -> Losses:
        """Return alignment + lambda * decorrelation of two augmented views."""
        z1, z2, weight = self.encoder.factors_of_two(view, self.augment, key)
        return cca(z1, z2, self.config.decorrelation_weight, weight)
