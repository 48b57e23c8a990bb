"""GCA: GRACE on views that drop central edges and features less often."""

from __future__ import annotations

from ssge.methods._adaptive import Adaptive, AdaptiveConfig, Batch
from ssge.methods._base import NodeBatchConfig
from ssge.objectives import Losses
from ssge.objectives.infonce import infonce
from ssge.ops.random import Key
from ssge.views import augmented


class GCAConfig(AdaptiveConfig, NodeBatchConfig):
    """Settings of GCA."""


class GCA(Adaptive):
    """Graph contrastive learning with adaptive augmentation; see `ssge.objectives.infonce`, `ssge.ops.centrality`.

    The loss is that of GRACE. The drop rate of an edge falls with the centrality of its target, that of a feature
    column with the centrality of the nodes that have it. No rate exceeds 0.7. Mini-batches are as in GRACE, with the
    rates of the whole graph.

    Random: the initial weights, the dropped edges and the masked columns of each view. Cost of a step: two passes of
    the encoder and O(n^2 d) time for the similarities, in O(n d) memory; once before training O(m) per iteration of
    the centrality.

    Differences from the released code: equal centralities give equal rates, whereas the code divides 0 by 0; an empty
    column has the rate of the least central one, whereas the code takes the logarithm of 0; PageRank teleports, whereas
    the code has a lazy walk (``lazy_pagerank``); degrees are in-degrees, which differs on directed graphs only; no
    n x n matrix is formed; weights of the projector are Xavier-uniform. ``leaky_relu`` equals the rrelu of the code,
    which never draws a random slope.
    """

    name = "gca"
    title = "GCA"
    reference = "Zhu et al., Graph Contrastive Learning with Adaptive Augmentation, WWW 2021"

    config: GCAConfig

    def forward(self, batch: Batch, key: Key) -> Losses:
        """Return InfoNCE of the projections of two adaptively augmented views, over the seeds."""
        h1, h2 = self.encoded(augmented(batch.view, batch.augmentations, key))
        loss = infonce(self.projector(h1), self.projector(h2), self.config.temperature)
        return Losses(loss, {"infonce": loss.detach()})
