"""BGRL: predict the target representations of one view from the other view; no negatives."""

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

    epochs: int = Field(300, ge=0, description="Number of epochs; the learning rate decays to zero over them.")
    edge_drops: EdgeDrops = (0.3, 0.2)
    feature_masks: FeatureMasks = (0.3, 0.4)
    encoder: Literal["gcn", "gat"] = Field("gcn", description="gcn, or gat: attention over neighbors.")
    heads: PositiveInt = Field(
        8, description="Attention heads of each GAT layer; they share its width.", validate_default=True
    )
    momentum: float = Field(0.99, ge=0, le=1, description="Initial momentum of the target network; it increases to 1.")
    warm_up: float = Field(0.1, ge=0, lt=1, description="Fraction of the epochs for the warm-up of the learning rate.")

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
    """Bootstrapped graph latents; see `ssge.objectives.prediction` for the formula.

    With views 1 and 2, predictions Q of the online network and vectors T of the target, the loss is
    ``cosine_regression(Q1, T2) + cosine_regression(Q2, T1)``. The target starts from its own random weights. Its
    momentum rises to 1 on a cosine schedule. The learning rate has a linear warm-up and a cosine decay.

    With ``encoder="gat"`` both networks have attention layers with concatenated heads, like those behind the widely
    quoted figures on citation graphs, which come from a re-run by the authors of GraphMAE.

    Random: the initial weights of both networks and the predictor, the dropped edges and masked columns of each view.
    Cost of a step: four passes of the encoder, two of them without gradient, and O(n d h) for a predictor of width h.

    Differences from the released code: layers before a batch normalization have no bias, which it cancels; weights of
    the predictor are Xavier-uniform, like those of the encoder; the momentum of the running statistics of batch
    normalization is a tenth (``norm_momentum``). The code's 0.99 keeps only the last pass, although the paper's decay
    of 0.99 means 0.01, the value of the recipes with 10,000 epochs. In some hundred epochs, statistics with 0.01 still
    contain their initial values.
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
        """Return the cosine regression of each view's predictions on the target representations of the other view."""
        views = augmented(view, self.augmentations, key)
        one, other = (cosine_regression(q, t) for q, t in self.crossed(*views))
        return Losses(one + other, {"first": one.detach(), "second": other.detach()})

    def lr_schedule(self, progress: float) -> float:
        """Return the factor of the learning rate: warm-up, then cosine decay to zero."""
        return warm_up_cosine(progress, self.config.warm_up)

    def momentum_at(self, progress: float) -> float:
        """Return the momentum of the target, which rises to 1."""
        return momentum(progress, self.config.momentum)
