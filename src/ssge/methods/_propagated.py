"""What training-free methods share: features with few columns, propagated over the graph; nothing is trained."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from ssge.errors import TrainingError
from ssge.graph import GraphInfo
from ssge.methods._base import BaseConfig, Method
from ssge.nn.propagation import Propagation
from ssge.objectives import Losses
from ssge.ops.adjacency import Adjacency, Normalization
from ssge.ops.random import Key


class PropagatedConfig(BaseConfig):
    """Settings that training-free methods have in common."""

    hops: PositiveInt = Field(8, description="Hops that features travel along edges [K].")
    components: PositiveInt = Field(
        512, description="Columns of the embedding at most: wider features are reduced to their leading directions."
    )
    normalization: Normalization = Field("out-in", description="Degrees in the normalization of the adjacency.")


class Propagated(Method):
    """A method that propagates features and trains nothing: the embedding is S(X V).

    X (n x p) is reduced to X V first if it has more than ``columns`` columns, with V its leading right singular vectors
    (`ssge.ops.reduction`), found on the graph that is fitted and kept in the model. Sparse X stays sparse until then.
    The same S and V embed other graphs. Nothing is random. Cost: O(K m d) time, O(n d) memory.
    """

    family = "training-free"
    trained = False

    config: PropagatedConfig
    encoder: Propagation

    def __init__(self, config: PropagatedConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        self.normalization = config.normalization
        self.encoder = Propagation(info.num_features, config.components, config.hops, self.propagate)

    @abstractmethod
    def propagate(self, adjacency: Adjacency, h: Tensor, chunk: int) -> Tensor:
        """Return S(H), one of `ssge.ops.propagation`."""

    def forward(self, batch: Any, key: Key) -> Losses:
        """Refuse: there is nothing to train."""
        raise TrainingError(f"{self.title} has nothing to train.")

    @torch.no_grad()
    def calibrate(self, prepared: Any) -> Tensor:
        """Find V, beside what every method does at the end of training."""
        self.encoder.reduction.fit(prepared)
        return super().calibrate(prepared)
