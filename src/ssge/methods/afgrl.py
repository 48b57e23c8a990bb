"""AFGRL: no augmentation; a node predicts the target's vectors of nodes that are alike, near or of one cluster."""

from __future__ import annotations

import torch
from pydantic import Field, PositiveInt
from torch import Tensor
from torch.nn import functional

from ssge.methods._base import Epochs, NormalizeFeatures, Widths
from ssge.methods._bootstrap import Bootstrap, BootstrapConfig
from ssge.nn.schedules import momentum
from ssge.objectives import Losses
from ssge.objectives.prediction import paired_cosine_regression
from ssge.ops.positives import k_means, nearest_targets, positive_pairs
from ssge.ops.random import Key
from ssge.views import View

_RELEASED_TENSORS = 5
"""Parameter tensors of a layer in the released code: weight, bias, two of the normalization, slope."""


class AFGRLConfig(BootstrapConfig):
    """Settings of AFGRL."""

    epochs: Epochs = 100
    widths: Widths = (512,)
    predictor_width: PositiveInt = Field(1024, description="Width of the predictor's hidden layer.")
    momentum: float = Field(0.9, ge=0, le=1, description="Momentum of the target at the start; it rises to 1.")
    normalize_features: NormalizeFeatures = False
    neighbors: PositiveInt = Field(4, description="Candidates for positives: itself and those most alike [top-k].")
    clusterings: PositiveInt = Field(5, description="Runs of k-means in each step.")
    centroids: PositiveInt = Field(100, description="Clusters of each run of k-means.")
    cluster_iterations: PositiveInt = Field(20, description="Rounds of each run of k-means.")
    released_bn: bool = Field(False, description="Train with batch normalization in evaluation mode, as released.")
    released_momentum: bool = Field(
        False, description="Let the momentum's schedule advance with each parameter tensor instead of each step."
    )


class AFGRL(Bootstrap):
    """Augmentation-free learning; the formula stands at `ssge.objectives.prediction.paired_cosine_regression`.

    In each step the candidates of a node are itself and the nodes whose target vectors have the largest cosines with
    its own online vector; of these it keeps as positives its neighbors in the graph and those that share a cluster
    with it in any of several runs of k-means on the target's unit vectors: `ssge.ops.positives.positive_pairs`. The
    target begins as a copy and follows at a momentum that rises to 1 along half a cosine.

    Random: the initial weights, and the rows from which each run of k-means begins. Cost of a step: two passes of the
    encoder, one of them without gradient, O(n^2 d) time for the candidates in O(n) memory, by chunks, and
    O(c i k n d) for c runs of i rounds with k centers.

    Differences from the released code: its evaluation leaves batch normalization in evaluation mode, so that it takes
    the initial figures 0 and 1 in all of training but the first step, which ``released_bn`` reproduces from the first
    step on; its schedule of the momentum advances once a parameter tensor, so that it goes up and down again, which
    ``released_momentum`` reproduces; candidates never fill an n x n matrix; layers before a batch normalization have no
    bias; the epoch is never chosen by validation accuracy or labels.
    """

    name = "afgrl"
    title = "AFGRL"
    reference = "Lee et al., Augmentation-Free Self-Supervised Learning on Graphs, 2022"
    normed_predictor = True

    config: AFGRLConfig

    def forward(self, view: View, key: Key) -> Losses:
        """Return the regression of predictions on the target's vectors, over positive pairs."""
        h, t = self.encoder(view), self.target(view)
        pairs = self.positives(h, t, view, key.fold_in("clusters").generator(h.device))
        total = paired_cosine_regression(self.predictor(h), t, pairs)
        a_node = pairs.new_tensor(pairs.shape[1], dtype=t.dtype) / view.num_nodes
        return Losses(total, {"positives": a_node})

    def positives(self, h: Tensor, t: Tensor, view: View, generator: torch.Generator) -> Tensor:
        """Return the positive pairs of this step, 2 x pairs."""
        c, unit = self.config, functional.normalize(t)
        runs = [k_means(unit, c.centroids, c.cluster_iterations, generator) for _ in range(c.clusterings)]
        return positive_pairs(nearest_targets(h, t, c.neighbors), view.adjacency, torch.stack(runs, 1))

    def momentum_at(self, progress: float) -> float | list[float]:
        """Let the target's momentum rise to 1, or go up and down as released."""
        start, epochs = self.config.momentum, self.config.epochs
        if not self.config.released_momentum:
            return momentum(progress, start)
        tensors = sum(1 for _ in self.target.parameters())
        done = (round(progress * epochs) - 1) * _RELEASED_TENSORS * self.encoder.hops
        return [momentum((done + tensor) / epochs, start) for tensor in range(tensors)]
