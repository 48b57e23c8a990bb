"""What the methods share that contrast two views by InfoNCE behind a projector: GRACE, GCA, gCooL, COSTA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from ssge.graph import GraphInfo
from ssge.methods._base import Method, MethodConfig, Rate
from ssge.nn.encoders import GCN
from ssge.nn.heads import Head
from ssge.ops.random import Key
from ssge.views import Augmentation, Compose, DropEdges, MaskFeatures, View

BATCH_NODES = 2048
"""Nodes per step by default on graphs of more than eight times as many."""


class InfoNCEConfig(MethodConfig):
    """Settings of two views, an encoder with an activation after every layer, a projector and InfoNCE."""

    epochs: int = Field(200, ge=0, description="Passes over the graph; part of the method, not 'until convergence'.")
    lr: float = Field(5e-4, gt=0, description="Learning rate of Adam.")
    edge_drops: tuple[Rate, Rate] = Field((0.2, 0.4), description="Probability of dropping an edge, one for each view.")
    feature_masks: tuple[Rate, Rate] = Field(
        (0.3, 0.4), description="Probability of masking a feature column, one for each view."
    )
    widths: tuple[PositiveInt, ...] = Field(
        (512, 256), min_length=1, description="Width of each layer, the embedding last."
    )
    projector_width: PositiveInt | None = Field(
        None, description="Width of the projector's hidden layer. That of the embedding if not given."
    )
    activation: Literal["relu", "prelu", "elu", "leaky_relu"] = Field(
        "relu", description="Activation after every layer; leaky_relu has slope 0.229 (rrelu in released codes)."
    )
    temperature: float = Field(0.4, ge=1 / 600, description="Temperature of InfoNCE [tau].")
    normalize_features: bool = Field(True, description="Divide each row of X by its sum of absolute values.")


class InfoNCEMethod(Method):
    """A GCN with an activation after every layer, and a projector of one hidden layer (ELU) that is not embedded.

    Differences from the released codes: weights of the projector are Xavier-uniform as those of the encoder.
    """

    normalization = "in"
    config: InfoNCEConfig
    encoder: GCN

    def __init__(self, config: InfoNCEConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        d = config.widths[-1]
        self.encoder = GCN((info.num_features, *config.widths), config.activation, generator, output_activation=True)
        self.projector = Head((d, config.projector_width or d, d), "elu", generator)

    @classmethod
    def default_config(cls, info: GraphInfo) -> dict[str, Any]:
        """Train large graphs in batches of nodes, in as many steps, because a step takes O(nodes^2) time."""
        if "batch_nodes" not in cls.Config.model_fields or info.num_nodes <= 8 * BATCH_NODES:
            return {}
        epochs = cls.Config.model_fields["epochs"].default * BATCH_NODES / info.num_nodes
        return {"batch_nodes": BATCH_NODES, "epochs": max(1, round(epochs))}

    def encoded(self, views: Sequence[View]) -> list[Tensor]:
        """Return the encoder's output at the seeds of some views."""
        return [view.at_seeds(self.encoder(view)) for view in views]


def uniform(config: InfoNCEConfig) -> tuple[Augmentation, ...]:
    """Return the augmentation of each view, with one rate for all edges and one for all columns."""
    rates = zip(config.edge_drops, config.feature_masks, strict=True)
    return tuple(Compose(DropEdges(drop), MaskFeatures(mask)) for drop, mask in rates)


def augmented(view: View, augmentations: Sequence[Augmentation], key: Key) -> list[View]:
    """Return a view per augmentation, drawn independently."""
    return [augment(view, key.fold_in(i)) for i, augment in enumerate(augmentations)]
