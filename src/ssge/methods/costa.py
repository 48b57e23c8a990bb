"""COSTA: contrast random projections of the nodes, which preserve the covariance of the features."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ssge.methods._base import FeatureMasks, NodeBatchConfig, WeightDecay, Widths
from ssge.methods._infonce import InfoNCEConfig, InfoNCEMethod
from ssge.objectives import Losses
from ssge.objectives.infonce import infonce
from ssge.ops.random import Key
from ssge.ops.sketching import gaussian_sketch, sparse_sketch
from ssge.views import View, augmented

SKETCHES = {"gaussian": gaussian_sketch, "sparse": sparse_sketch}


class COSTAConfig(InfoNCEConfig, NodeBatchConfig):
    """Settings of COSTA."""

    weight_decay: WeightDecay = 0.0
    feature_masks: FeatureMasks = (0.3, 0.3)
    widths: Widths = (256, 256)
    ratio: float = Field(
        0.5, gt=0, le=1, description="Number of mixtures as a fraction of the number of nodes [k / n]."
    )
    sketch: Literal["gaussian", "sparse"] = Field(
        "gaussian", description="gaussian: mixtures of all nodes; sparse: each node is in 8 mixtures, much faster."
    )


class COSTA(InfoNCEMethod):
    """Covariance-preserving feature augmentation; see `ssge.objectives.infonce` and `ssge.ops.sketching`.

    With H1, H2 the encoder's outputs of two views and P a random k x n matrix, resampled in each step and shared by
    both views, the loss is the inter-view InfoNCE of the projections of the rows of P H1 and P H2.

    With ``batch_nodes`` an epoch has several steps, each on a random mini-batch. Without a recipe, this is the default
    on graphs of more than 16,384 nodes.

    Random: the initial weights, the dropped edges and masked columns of each view, and P. Cost of a step: two passes of
    the encoder, O(k n d) time for the products with P (sparse: O(n d)) and O(k^2 d) for the similarities, in O(n d)
    memory.

    Differences from the released code: P is never in memory as a whole; each view has its own rate of masked columns,
    whereas the code uses the first for both; weights of the projector are Xavier-uniform. The variant with a single
    view was not released and is not implemented.
    """

    name = "costa"
    title = "COSTA"
    reference = (
        "Zhang et al., COSTA: Covariance-Preserving Feature Augmentation for Graph Contrastive Learning, KDD 2022"
    )

    config: COSTAConfig

    def forward(self, view: View, key: Key) -> Losses:
        """Return the inter-view InfoNCE of random projections of two augmented views, over the seeds."""
        c, (h1, h2) = self.config, self.encoded(augmented(view, self.augmentations, key))
        size = max(1, int(c.ratio * h1.shape[0]))
        mixed1, mixed2 = SKETCHES[c.sketch]((h1, h2), size, key.fold_in("mixtures").generator(self.device))
        loss = infonce(self.projector(mixed1), self.projector(mixed2), c.temperature, intra=False)
        return Losses(loss, {"infonce": loss.detach()})
