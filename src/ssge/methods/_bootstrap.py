"""What the methods share that learn from a moving average of themselves: BGRL, AFGRL, RGRL."""

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

    lr: float = Field(1e-3, gt=0, description="AdamW's learning rate, at its highest.")
    weight_decay: float = Field(1e-5, ge=0, description="AdamW's weight decay, apart from the gradient.")
    widths: Widths = (512, 256)
    predictor_width: PositiveInt = Field(512, description="Width of the predictor's hidden layer.")
    momentum: float = Field(0.99, ge=0, le=1, description="Momentum of the target's moving average.")
    norm_momentum: float = Field(
        0.1, gt=0, le=1, description="Share of each pass in the running figures of batch normalization; released: 0.01."
    )
    normalize_features: NormalizeFeatures = True


class Bootstrap(Method):
    """An online encoder with a predictor, and a target encoder that is its moving average and gets no gradient.

    The encoder is a GCN with batch normalization and PReLU after every layer, the last one too. A training step runs
    in training mode always, as the trainer sees to, unless ``released_bn`` asks for what happened in released code.
    """

    family = "non-contrastive"
    Optimizer = torch.optim.AdamW
    fresh_target = False
    """Whether the target begins with weights of its own instead of a copy of the online ones."""
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
        """Return an encoder with fresh weights."""
        widths = (self.info.num_features, *self.config.widths)
        return GCN(widths, "prelu", generator, norm=self.config.norm_momentum, output_activation=True)

    def train(self, mode: bool = True) -> Bootstrap:
        """Set the mode of training, in which batch normalization takes part unless ``released_bn`` leaves it out."""
        super().train(mode)
        if getattr(self.config, "released_bn", False):
            for module in self.modules():
                if isinstance(module, nn.BatchNorm1d):
                    module.eval()
        return self

    def crossed(self, first: View, second: View) -> tuple[tuple[Tensor, Tensor], ...]:
        """Return predictions from each view with the target's vectors of the other one."""
        q1, q2 = (self.predictor(view.at_seeds(self.encoder(view))) for view in (first, second))
        t1, t2 = (view.at_seeds(self.target(view)) for view in (first, second))
        return (q1, t2), (q2, t1)

    def after_step(self, progress: float) -> None:
        """Let the target follow, at the momentum of this moment."""
        self.target.update(self.encoder, self.momentum_at(progress))

    def momentum_at(self, progress: float) -> float | list[float]:
        """Return the target's momentum: constant, unless a method has a schedule."""
        return self.config.momentum
