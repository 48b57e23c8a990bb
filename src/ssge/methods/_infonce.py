"""Base of the methods that contrast two views by InfoNCE after a projector: GRACE, GCA, gCooL, COSTA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from ssge.graph import GraphInfo
from ssge.methods._base import (
    EdgeDrops,
    Epochs,
    FeatureMasks,
    LearningRate,
    Method,
    MethodConfig,
    NormalizeFeatures,
    Widths,
)
from ssge.nn.encoders import GCN
from ssge.nn.heads import Head
from ssge.views import View, drop_and_mask

BATCH_NODES = 2048
"""Default mini-batch size on graphs of more than eight times as many nodes."""


class InfoNCEConfig(MethodConfig):
    """Settings of two views, an encoder with an activation after every layer, a projector and InfoNCE."""

    epochs: Epochs = 200
    lr: LearningRate = 5e-4
    edge_drops: EdgeDrops = (0.2, 0.4)
    feature_masks: FeatureMasks = (0.3, 0.4)
    widths: Widths = (512, 256)
    projector_width: PositiveInt | None = Field(
        None, description="Width of the projector's hidden layer; default: the width of the embedding."
    )
    activation: Literal["relu", "prelu", "elu", "leaky_relu"] = Field(
        "relu", description="Activation after every layer; leaky_relu has slope 0.229 (rrelu in released codes)."
    )
    temperature: float = Field(0.4, ge=1 / 600, description="Temperature of InfoNCE [tau].")
    normalize_features: NormalizeFeatures = True


class InfoNCEMethod(Method):
    """A GCN with an activation after every layer, and a projector of one hidden layer (ELU) for training only.

    Difference from the released codes: weights of the projector are Xavier-uniform, like those of the encoder.
    """

    family = "contrastive"
    normalization = "in"
    config: InfoNCEConfig
    encoder: GCN

    def __init__(self, config: InfoNCEConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        d = config.widths[-1]
        self.encoder = GCN((info.num_features, *config.widths), config.activation, generator, output_activation=True)
        self.projector = Head((d, config.projector_width or d, d), "elu", generator)
        self.augmentations = drop_and_mask(config.edge_drops, config.feature_masks)

    @classmethod
    def default_config(cls, info: GraphInfo) -> dict[str, Any]:
        """Train large graphs in mini-batches with the same number of steps, because a step takes O(nodes^2) time."""
        if "batch_nodes" not in cls.Config.model_fields or info.num_nodes <= 8 * BATCH_NODES:
            return {}
        epochs = cls.Config.model_fields["epochs"].default * BATCH_NODES / info.num_nodes
        return {"batch_nodes": BATCH_NODES, "epochs": max(1, round(epochs))}

    def encoded(self, views: Sequence[View]) -> list[Tensor]:
        """Return the encoder's output for the seeds of each view."""
        return [view.at_seeds(self.encoder(view)) for view in views]
