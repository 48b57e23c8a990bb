"""Supervised methods: networks whose output is class scores, trained on the labels of some nodes."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from pydantic import Field, PositiveInt

from ssge.graph import Graph, GraphInfo
from ssge.methods._base import LearningRate, Method, MethodConfig, WeightDecay
from ssge.nn.encoders import ENCODERS
from ssge.objectives import Losses
from ssge.objectives.classification import cross_entropy
from ssge.ops.dropout import dropout
from ssge.ops.random import Key
from ssge.views import View


class SupervisedConfig(MethodConfig):
    """Settings of all supervised methods; the defaults are those of GCN on citation graphs."""

    epochs: int = Field(200, ge=0, description="Number of epochs; there is no early stopping.")
    keep: Literal["last", "best", "loss"] = Field(
        "last",
        description="Which weights to keep: those of the last epoch, or of the epoch with the best accuracy or the "
        "lowest loss on validation nodes.",
    )
    lr: LearningRate = 0.01
    weight_decay: WeightDecay = 5e-4
    decay_layers: Literal["first", "all"] = Field("first", description="Layers with an L2 penalty: the first, or all.")
    widths: tuple[PositiveInt, ...] = Field(
        (16,), description="Width of each hidden layer; the output layer has one column per class."
    )
    input_dropout: float = Field(0.5, ge=0, lt=1, description="Probability of dropping an entry of X in training.")
    dropout: float = Field(0.5, ge=0, lt=1, description="Probability of dropping an input of a later layer.")


class Supervised(Method):
    """A network trained by cross entropy over the labeled nodes (`ssge.objectives.classification`).

    Its embedding is the class scores (logits), n x k. Training always runs the given number of epochs, and gradients
    come from the labels of training nodes only. With ``keep="last"`` no other label is used: where a published code
    stops early, the recipe fixes a number of epochs, chosen once on validation nodes. With ``best`` and ``loss``,
    validation nodes choose the epoch, by accuracy or cross entropy without dropout (`ssge.training.best.Best`).

    Subclasses build ``encoder`` with the number of classes as last width. Its ``forward`` takes a view and a dropout
    function.
    """

    family = "supervised"
    supervised = True

    config: SupervisedConfig

    def prepare(self, graph: Graph) -> View:
        """Move a graph to the method's device, with its labels: in training, those of training nodes only."""
        view: View = super().prepare(graph)
        if graph.labels is None:
            return view
        return view._replace(labels=torch.from_numpy(graph.labels).to(self.device))

    def optimizer(self) -> torch.optim.Optimizer:
        """Return Adam with the L2 penalty on the layers of ``decay_layers``."""
        layers = list(self.encoder.layers)  # type: ignore[arg-type]
        count = 1 if self.config.decay_layers == "first" else len(layers)
        chosen = [parameter for layer in layers[:count] for parameter in layer.parameters()]
        others = [parameter for parameter in self.parameters() if all(parameter is not other for other in chosen)]
        groups = [{"params": chosen, "weight_decay": self.config.weight_decay}]
        groups += [{"params": others, "weight_decay": 0.0}] if others else []
        return torch.optim.Adam(groups, lr=self.config.lr, fused=True)

    def forward(self, view: View, key: Key) -> Losses:
        """Return the cross entropy of the labeled nodes, with dropout on X and on the inputs of later layers."""
        assert view.labels is not None
        c, generator = self.config, key.fold_in("dropout").generator(self.device)
        dropped = view._replace(features=view.features.dropout(c.input_dropout, generator))
        return cross_entropy(self.encoder(dropped, partial(dropout, rate=c.dropout, generator=generator)), view.labels)


class LayeredConfig(SupervisedConfig):
    """Settings of a network of the encoders that self-supervised methods have too."""

    batch_norm: bool = Field(False, description="Batch normalization before each activation, for large graphs.")


class Layered(Supervised):
    """The encoder of the same name, with ReLU between layers and a bias in each."""

    config: LayeredConfig

    def __init__(self, config: LayeredConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        widths = (info.num_features, *config.widths, info.num_classes)
        norm = 0.1 if config.batch_norm else None
        self.encoder = ENCODERS[self.name](widths, "relu", generator, output_bias=True, norm=norm)
