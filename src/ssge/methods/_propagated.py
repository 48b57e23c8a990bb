"""Base of the training-free methods: reduced features, propagated over the graph."""

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

    hops: PositiveInt = Field(8, description="Number of propagation steps [K].")
    components: PositiveInt = Field(
        512,
        description="Maximum width of the embedding; wider features are reduced to their leading singular directions.",
    )
    normalization: Normalization = Field("out-in", description="Degrees in the normalization of the adjacency.")


class Propagated(Method):
    """A training-free method: the embedding is S(X V), the propagated features.

    If X (n x p) has more than ``components`` columns, it is first reduced to X V, with V its leading right singular
    vectors (`ssge.ops.reduction`) on the fitted graph. The model stores V. Sparse X stays sparse until then. The same S
    and V embed other graphs. Nothing is random. Cost: O(K m d) time, O(n d) memory.
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
        """Return S(H), a filter of `ssge.ops.propagation`."""

    def forward(self, batch: Any, key: Key) -> Losses:
        """Raise an error: there is nothing to train."""
        raise TrainingError(f"{self.title} has nothing to train.")

    @torch.no_grad()
    def calibrate(self, prepared: Any) -> Tensor:
        """Compute V, then calibrate as every method does."""
        self.encoder.reduction.fit(prepared)
        return super().calibrate(prepared)
