"""CCA-SSG: alignment of two views while the columns of each are decorrelated; no negatives, no projector."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field, PositiveInt

from ssge.graph import GraphInfo
from ssge.methods._base import METHODS, Method, MethodConfig, NodeBatchConfig
from ssge.nn.encoders import ENCODERS, GCN, MLP
from ssge.objectives import Losses
from ssge.objectives.decorrelation import cca
from ssge.ops.random import Key
from ssge.views import Compose, DropEdges, MaskFeatures, View


class CCASSGConfig(NodeBatchConfig):
    """Settings of CCA-SSG."""

    epochs: int = Field(50, ge=0, description="Passes over the graph; part of the method, not 'until convergence'.")
    weight_decay: float = Field(0.0, ge=0, description="L2 penalty added to the gradient, as Adam has it.")
    edge_drop: float = Field(0.4, ge=0, le=1, description="Probability of dropping an edge of a view.")
    feature_mask: float = Field(0.1, ge=0, le=1, description="Probability of masking a feature column of a view.")
    decorrelation_weight: float = Field(1e-3, ge=0, description="Weight of the decorrelation term [lambda].")
    widths: tuple[PositiveInt, ...] = Field(
        (512, 512), min_length=1, description="Width of each layer, the embedding last."
    )
    encoder: Literal["gcn", "mlp"] = Field("gcn", description="gcn, or mlp: features alone, with batch normalization.")
    activation: Literal["elu", "relu", "none"] = Field("relu", description="Activation between layers.")
    output_bias: bool = Field(False, description="A bias in the last layer, which drifts at random; as released.")


@METHODS.register("cca_ssg")
class CCASSG(Method):
    """From canonical correlation analysis to self-supervised graphs; formula at `ssge.objectives.decorrelation.cca`.

    Random: the initial weights, the dropped edges and the masked columns of each view. Cost of a step, for m edges and
    width d: two passes of the encoder, O(m d + n d^2), and O(n d^2) for the moments, in O(d^2) memory.

    Differences from the released code: the last layer has no bias, because standardization cancels it and Adam turns
    the rounding of its gradient into a random shift of all embeddings (``output_bias`` brings it back); every random
    choice follows the seed, where the released code has none; a constant column warns instead of giving NaN.
    """

    name: ClassVar[str] = "cca_ssg"
    title: ClassVar[str] = "CCA-SSG"
    family: ClassVar[str] = "non-contrastive"
    inputs: ClassVar[str] = "A, X"
    reference: ClassVar[str] = (
        "Zhang et al., From Canonical Correlation Analysis to Self-supervised Graph Neural Networks, NeurIPS 2021"
    )
    Config: ClassVar[type[MethodConfig]] = CCASSGConfig

    config: CCASSGConfig
    encoder: GCN | MLP

    def __init__(self, config: CCASSGConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        widths = (info.num_features, *config.widths)
        self.encoder = ENCODERS[config.encoder](widths, config.activation, generator, config.output_bias)
        self.augment = Compose(DropEdges(config.edge_drop), MaskFeatures(config.feature_mask))

    @property
    def of_moments(self) -> bool:
        """Whether the loss is made of moments: it is."""
        return True

    def forward(self, view: View, key: Key) -> Losses:
        """Return alignment + lambda * decorrelation of two augmented views."""
        (u1, weight), (u2, _) = (self.encoder.factors(self.augment(view, key.fold_in(i))) for i in range(2))
        return cca(view.at_seeds(u1), view.at_seeds(u2), self.config.decorrelation_weight, weight)
