"""GAT: a supervised graph attention network."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field, PositiveInt

from ssge.graph import GraphInfo
from ssge.methods._base import LearningRate
from ssge.methods._supervised import Supervised, SupervisedConfig
from ssge.nn import attention


class GATConfig(SupervisedConfig):
    """Settings of GAT; the defaults are those of citation graphs."""

    lr: LearningRate = 0.005
    decay_layers: Literal["first", "all"] = Field("all", description="Layers with an L2 penalty: the first, or all.")
    widths: tuple[PositiveInt, ...] = Field((8,), description="Width of each head of the hidden layers.")
    heads: PositiveInt = Field(8, description="Attention heads of the hidden layers, concatenated.")
    output_heads: PositiveInt = Field(1, description="Attention heads of the last layer, averaged.")
    input_dropout: float = Field(0.6, ge=0, lt=1, description="Probability of dropping an entry of X in training.")
    dropout: float = Field(
        0.6, ge=0, lt=1, description="Probability of dropping an input of a later layer, or attention."
    )
    drop_products: bool = Field(False, description="Apply dropout again after the linear map of a layer, as released.")


class GAT(Supervised):
    """Attention over neighbors, ELU between layers; see `ssge.nn.attention.Attention` for the formula.

    Random: the initial weights, and the dropped inputs and attention of each step. Cost of a step, for m edges,
    features with s non-zero entries and K heads of width d: O(s K d + m K d), memory O(m K + n K d).

    Differences from the released code: dropout on the inputs of a layer is shared by all heads, whereas each head of
    the code has its own; the code applies dropout again after the product with W, which the paper does not mention and
    ``drop_products`` restores; the code trains until neither loss nor accuracy on validation nodes has reached its best
    for 100 epochs, and keeps the last epoch that reached both, whereas here the number of epochs is fixed and ``keep``
    selects the rule.
    """

    name = "gat"
    title = "GAT"
    inputs = "A, X, Y"
    reference = "Velickovic et al., Graph Attention Networks, 2018"

    config: GATConfig

    def __init__(self, config: GATConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        widths = (info.num_features, *config.widths, info.num_classes)
        heads = config.heads, config.output_heads
        self.encoder = attention.GAT(widths, *heads, "elu", generator, config.drop_products)
