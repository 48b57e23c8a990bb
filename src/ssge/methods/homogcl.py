"""HomoGCL: neighbors are soft positives, weighted by the agreement of their clusters."""

from __future__ import annotations

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from ssge.graph import GraphInfo
from ssge.methods._base import EdgeDrop, Epochs, FeatureMask, Method, NodeBatchConfig, WeightDecay, Widths
from ssge.nn.encoders import GCN
from ssge.nn.heads import Head
from ssge.objectives import Losses
from ssge.objectives.homophily import homophily, saliency
from ssge.objectives.infonce import infonce
from ssge.ops.communities import community_means, distance_assignments
from ssge.ops.edges import edges_among
from ssge.ops.positives import k_means
from ssge.ops.random import Key
from ssge.views import Compose, DropEdges, MaskFeatures, View


class HomoGCLConfig(NodeBatchConfig):
    """Settings of HomoGCL."""

    epochs: Epochs = 50
    weight_decay: WeightDecay = 0.0
    edge_drop: EdgeDrop = 0.4
    feature_mask: FeatureMask = 0.1
    widths: Widths = (512, 256)
    projector_width: PositiveInt | None = Field(
        None, description="Width of the projector's hidden layer; default: no projector."
    )
    temperature: float = Field(0.5, ge=1 / 600, description="Temperature of InfoNCE [tau].")
    clusters: PositiveInt = Field(10, description="Clusters of k-means [k].")
    cluster_iterations: PositiveInt = Field(20, description="Iterations of k-means per step.")
    cluster_variance: float = Field(
        1e-3, gt=0, description="Bandwidth of the soft cluster assignments [sigma, or 2 sigma^2]."
    )
    homophily_weight: float = Field(1.0, ge=0, description="Weight of the homophily term [alpha].")
    mean_neighbors: bool = Field(
        False, description="Normalize the weights of a node's neighbors to sum to one positive."
    )


class HomoGCL(Method):
    """Homophily in contrastive learning; see `ssge.objectives.infonce` and `ssge.objectives.homophily`.

    In each step, k-means on the representations of the clean view gives soft clusters. The loss is InfoNCE of two
    augmented views plus alpha times the disagreement of clusters along the edges of the clean view. In InfoNCE,
    neighbors are soft positives, weighted by the agreement of their clusters, and never negatives.

    With ``batch_nodes`` an epoch has several steps, each on a random mini-batch. Representations are those in the whole
    views; clusters, neighbors and negatives are those within the batch.

    Random: the initial weights, the dropped edges and masked columns of each view, the initial centers of k-means.
    Cost of a step: three passes of the encoder, O(n^2 d) time for the similarities and O(n k d) for each iteration of
    k-means, in O(n d + m) memory.

    Differences from the released code: no n x n matrix is formed, whereas the code holds about ten; the code counts the
    other view of a node among the negatives as well, and its mean over neighbors adds 0.01 to their number; neighbors
    are in-neighbors, from which a node aggregates, instead of out-neighbors; an empty cluster of k-means is dropped,
    whereas the code splits another one; weights of a projector are Xavier-uniform.
    """

    name = "homogcl"
    title = "HomoGCL"
    family = "contrastive"
    reference = "Li et al., HomoGCL: Rethinking Homophily in Graph Contrastive Learning, KDD 2023"

    config: HomoGCLConfig
    encoder: GCN

    def __init__(self, config: HomoGCLConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        d, hidden = config.widths[-1], config.projector_width
        # The loss depends on directions from the origin, so the bias of the last layer matters.
        self.encoder = GCN((info.num_features, *config.widths), "relu", generator, output_bias=True)
        self.projector = nn.Identity() if hidden is None else Head((d, hidden, d), "elu", generator)
        self.augment = Compose(DropEdges(config.edge_drop), MaskFeatures(config.feature_mask))

    def forward(self, view: View, key: Key) -> Losses:
        """Return InfoNCE of two augmented views with neighbors as soft positives, and the homophily of clusters."""
        c, views = self.config, [self.augment(view, key.fold_in(i)) for i in range(2)]
        z, h1, h2 = (view.at_seeds(self.encoder(one)) for one in (view, *views))
        edges, edges1, edges2 = (edges_among(one.adjacency, view.seeds) for one in (view, *views))
        r = self.soft_clusters(z, key.fold_in("clusters").generator(self.device))
        pairs = saliency(r, edges1, c.mean_neighbors), saliency(r, edges2, c.mean_neighbors)
        contrast = infonce(self.projector(h1), self.projector(h2), c.temperature, pairs=pairs)
        along = homophily(r, edges)
        total = contrast + c.homophily_weight * along
        return Losses(total, {"infonce": contrast.detach(), "homophily": along.detach()})

    def soft_clusters(self, z: Tensor, generator: torch.Generator) -> Tensor:
        """Return the soft assignment of each node to the non-empty clusters of k-means."""
        c = self.config
        labels = k_means(z.detach(), c.clusters, c.cluster_iterations, generator)
        filled = torch.bincount(labels, minlength=c.clusters) > 0
        centers = community_means(z, labels, c.clusters)[filled]
        return distance_assignments(z, centers, c.cluster_variance)
