"""Base of the bootstrap methods with a momentum target network: BGRL, AFGRL, RGRL."""

from __future__ import annotations

import copy

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from ssge.graph import GraphInfo
from ssge.methods._base import Method, MethodConfig, NormalizeFeatures, Widths
from ssge.nn.attention import GAT
from ssge.nn.encoders import GCN
from ssge.nn.heads import Head
from ssge.nn.momentum import MovingAverage
from ssge.views import View


class BootstrapConfig(MethodConfig):
    """Settings of an online network, its predictor, and the target that follows it."""

    lr: float = Field(1e-3, gt=0, description="Peak learning rate of AdamW.")
    weight_decay: float = Field(1e-5, ge=0, description="Decoupled weight decay of AdamW.")
    widths: Widths = (512, 256)
    predictor_width: PositiveInt = Field(512, description="Width of the predictor's hidden layer.")
    momentum: float = Field(0.99, ge=0, le=1, description="Momentum of the target's moving average.")
    norm_momentum: float = Field(
        0.1, gt=0, le=1, description="Momentum of the running statistics of batch normalization; released: 0.01."
    )
    normalize_features: NormalizeFeatures = True


class Bootstrap(Method):
    """An online encoder with a predictor, and a target encoder: its moving average, without gradient.

    The encoder is a GCN with batch normalization and PReLU after every layer, including the last. A training step runs
    in training mode, unless ``released_bn`` reproduces the released code.
    """

    family = "non-contrastive"
    Optimizer = torch.optim.AdamW
    fresh_target = False
    """Whether the target starts from its own random weights instead of a copy of the online weights."""
    normed_predictor = False
    """Whether the predictor's hidden layer has batch normalization."""

    config: BootstrapConfig
    encoder: GCN | GAT

    def __init__(self, config: BootstrapConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        d = config.widths[-1]
        self.encoder = self._network(generator)
        self.target = MovingAverage(self._network(generator) if self.fresh_target else copy.deepcopy(self.encoder))
        norm = config.norm_momentum if self.normed_predictor else None
        self.predictor = Head((d, config.predictor_width, d), "prelu", generator, norm)

    def _network(self, generator: torch.Generator) -> GCN | GAT:
        """Return an encoder with new random weights."""
        widths = (self.info.num_features, *self.config.widths)
        return GCN(widths, "prelu", generator, norm=self.config.norm_momentum, output_activation=True)

    def train(self, mode: bool = True) -> Bootstrap:
        """Set training mode; with ``released_bn``, batch normalization stays in evaluation mode."""
        super().train(mode)
        if getattr(self.config, "released_bn", False):
            for module in self.modules():
                if isinstance(module, nn.BatchNorm1d):
                    module.eval()
        return self

    def crossed(self, first: View, second: View) -> tuple[tuple[Tensor, Tensor], ...]:
        """Return the predictions of each view with the target representations of the other view."""
        q1, q2 = (self.predictor(view.at_seeds(self.encoder(view))) for view in (first, second))
        t1, t2 = (view.at_seeds(self.target(view)) for view in (first, second))
        return (q1, t2), (q2, t1)

    def after_step(self, progress: float) -> None:
        """Update the target with the current momentum."""
        self.target.update(self.encoder, self.momentum_at(progress))

    def momentum_at(self, progress: float) -> float | list[float]:
        """Return the momentum of the target, constant by default."""
        return self.config.momentum
