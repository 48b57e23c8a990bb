"""AFGRL: no augmentation; a node predicts the target vectors of similar nodes, neighbors and cluster members."""

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
    momentum: float = Field(0.9, ge=0, le=1, description="Initial momentum of the target network; it increases to 1.")
    normalize_features: NormalizeFeatures = False
    neighbors: PositiveInt = Field(4, description="Candidate positives: the node and its nearest neighbors [top-k].")
    clusterings: PositiveInt = Field(5, description="Runs of k-means in each step.")
    centroids: PositiveInt = Field(100, description="Clusters of each run of k-means.")
    cluster_iterations: PositiveInt = Field(20, description="Iterations of each run of k-means.")
    released_bn: bool = Field(False, description="Train with batch normalization in evaluation mode, as released.")
    released_momentum: bool = Field(
        False,
        description="Advance the momentum schedule once per parameter tensor instead of once per step, as released.",
    )


class AFGRL(Bootstrap):
    """Augmentation-free learning; see `ssge.objectives.prediction.paired_cosine_regression` for the formula.

    In each step the candidates of a node are itself and the nodes whose target vectors have the largest cosines with
    its online vector. Its positives are the candidates that are its neighbors in the graph, or that share a cluster
    with it in any of several runs of k-means on the target's unit vectors (`ssge.ops.positives.positive_pairs`). The
    target starts as a copy. Its momentum rises to 1 on a cosine schedule.

    Random: the initial weights, and the initial centers of each run of k-means. Cost of a step: two passes of the
    encoder, one of them without gradient, O(n^2 d) time for the candidates in O(n) memory, in chunks, and
    O(c i k n d) for c runs of i iterations with k centers.

    Differences from the released code: its evaluation leaves batch normalization in evaluation mode, so that it uses
    the initial statistics 0 and 1 in all of training except the first step (``released_bn`` reproduces this from the
    first step on); its momentum schedule advances once per parameter tensor, so that it rises and falls again
    (``released_momentum`` reproduces this); no n x n matrix of candidates is formed; layers before a batch
    normalization have no bias; the epoch is never chosen by validation accuracy or labels.
    """

    name = "afgrl"
    title = "AFGRL"
    reference = "Lee et al., Augmentation-Free Self-Supervised Learning on Graphs, 2022"
    normed_predictor = True

    config: AFGRLConfig

    def forward(self, view: View, key: Key) -> Losses:
        """Return the cosine regression of predictions on target vectors, over positive pairs."""
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
        """Return the momentum of the target: a cosine schedule up to 1, or the released one."""
        start, epochs = self.config.momentum, self.config.epochs
        if not self.config.released_momentum:
            return momentum(progress, start)
        tensors = sum(1 for _ in self.target.parameters())
        done = (round(progress * epochs) - 1) * _RELEASED_TENSORS * self.encoder.hops
        return [momentum((done + tensor) / epochs, start) for tensor in range(tensors)]
