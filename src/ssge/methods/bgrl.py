"""BGRL: predict the target network's vectors of one view from the other view; no negatives."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, PositiveInt, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from ssge.graph import GraphInfo
from ssge.methods._base import EdgeDrops, FeatureMasks, NodeBatchConfig
from ssge.methods._bootstrap import Bootstrap, BootstrapConfig
from ssge.nn.attention import GAT
from ssge.nn.encoders import GCN
from ssge.nn.schedules import momentum, warm_up_cosine
from ssge.objectives import Losses
from ssge.objectives.prediction import cosine_regression
from ssge.ops.random import Key
from ssge.views import View, augmented, drop_and_mask


class BGRLConfig(BootstrapConfig, NodeBatchConfig):
    """Settings of BGRL."""

    epochs: int = Field(300, ge=0, description="Passes over the graph; the learning rate ends at zero with them.")
    edge_drops: EdgeDrops = (0.3, 0.2)
    feature_masks: FeatureMasks = (0.3, 0.4)
    encoder: Literal["gcn", "gat"] = Field("gcn", description="gcn, or gat: attention over neighbors.")
    heads: PositiveInt = Field(
        8, description="Attention heads of each layer of gat, which share its width.", validate_default=True
    )
    momentum: float = Field(0.99, ge=0, le=1, description="Momentum of the target at the start; it rises to 1.")
    warm_up: float = Field(0.1, ge=0, lt=1, description="Share of the epochs in which the learning rate rises.")

    @field_validator("encoder")
    @classmethod
    def _sampled(cls, encoder: str, given: ValidationInfo) -> str:
        if encoder == "gat" and given.data.get("fanouts") is not None:
            raise PydanticCustomError("encoder", "must be gcn with fanouts: attention over a sample is another one")
        return encoder

    @field_validator("heads")
    @classmethod
    def _share(cls, heads: int, given: ValidationInfo) -> int:
        widths = given.data.get("widths", ())
        if given.data.get("encoder") == "gat" and any(width % heads for width in widths):
            listed = ", ".join(map(str, widths))
            raise PydanticCustomError(
                "heads", "must divide every one of widths, which are {widths}", {"widths": listed}
            )
        return heads


class BGRL(Bootstrap):
    """Bootstrapped graph latents; the formula stands at `ssge.objectives.prediction`.

    With views 1 and 2, predictions Q of the online network and vectors T of the target, the loss is
    ``cosine_regression(Q1, T2) + cosine_regression(Q2, T1)``. The target begins with weights of its own and follows
    at a momentum that rises to 1 along half a cosine; the learning rate rises linearly and falls along another.

    With ``encoder`` at ``gat`` both networks are layers of attention, heads side by side, as were those of the widely
    quoted figures on citation graphs, which are of a re-run by the authors of GraphMAE.

    Random: the initial weights of both networks and the predictor, the dropped edges and masked columns of each view.
    Cost of a step: four passes of the encoder, two of them without gradient, and O(n d h) for a predictor of width h.

    Differences from the released code: layers before a batch normalization have no bias, which it cancels; weights of
    the predictor are Xavier-uniform as the encoder's are; the running figures of batch normalization take a tenth of
    each pass (``norm_momentum``). The code's 0.99 takes the last pass alone, though the paper's decay of 0.99 means
    0.01, which the recipes with 10,000 epochs have; in some hundred epochs such figures still hold their start.
    """

    name = "bgrl"
    title = "BGRL"
    reference = "Thakoor et al., Large-Scale Representation Learning on Graphs via Bootstrapping, 2022"
    normalization = "in"
    fresh_target = True

    config: BGRLConfig

    def __init__(self, config: BGRLConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info, generator)
        self.augmentations = drop_and_mask(config.edge_drops, config.feature_masks)

    def _network(self, generator: torch.Generator) -> GCN | GAT:
        c = self.config
        if c.encoder == "gcn":
            return super()._network(generator)
        widths = (self.info.num_features, *(width // c.heads for width in c.widths))
        return GAT(widths, c.heads, c.heads, "prelu", generator, norm=c.norm_momentum, output_activation=True)

    def forward(self, view: View, key: Key) -> Losses:
        """Return the regression of each view's prediction on the target's vectors of the other view."""
        views = augmented(view, self.augmentations, key)
        one, other = (cosine_regression(q, t) for q, t in self.crossed(*views))
        return Losses(one + other, {"first": one.detach(), "second": other.detach()})

    def lr_schedule(self, progress: float) -> float:
        """Let the learning rate rise, then fall to zero."""
        return warm_up_cosine(progress, self.config.warm_up)

    def momentum_at(self, progress: float) -> float:
        """Let the target's momentum rise to 1."""
        return momentum(progress, self.config.momentum)
