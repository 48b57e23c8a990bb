"""GRACE: contrast the two views of a node with all other nodes of both views."""

from __future__ import annotations

from ssge.methods._base import NodeBatchConfig
from ssge.methods._infonce import InfoNCEConfig, InfoNCEMethod
from ssge.objectives import Losses
from ssge.objectives.infonce import infonce
from ssge.ops.random import Key
from ssge.views import View, augmented


class GRACEConfig(InfoNCEConfig, NodeBatchConfig):
    """Settings of GRACE."""


class GRACE(InfoNCEMethod):
    """Deep graph contrastive representation learning; see `ssge.objectives.infonce` for the formula.

    The loss is InfoNCE of the projections of two views, with inter-view and intra-view negatives. The embedding is the
    encoder's output, before the projector.

    With ``batch_nodes`` an epoch has several steps, each on a random mini-batch. Representations are those in the whole
    views; negatives are the other nodes of the batch. Without a recipe, this is the default on graphs of more than
    16,384 nodes.

    Random: the initial weights, the dropped edges and the masked columns of each view. Cost of a step: two passes of
    the encoder and O(n^2 d) time for the similarities, in O(n d) memory.

    Differences from the released code: no n x n matrix is formed, whereas the code holds four in memory; weights of the
    projector are Xavier-uniform.
    """

    name = "grace"
    title = "GRACE"
    reference = "Zhu et al., Deep Graph Contrastive Representation Learning, 2020"

    config: GRACEConfig

    def forward(self, view: View, key: Key) -> Losses:
        """Return InfoNCE of the projections of two augmented views, over the seeds."""
        h1, h2 = self.encoded(augmented(view, self.augmentations, key))
        loss = infonce(self.projector(h1), self.projector(h2), self.config.temperature)
        return Losses(loss, {"infonce": loss.detach()})
