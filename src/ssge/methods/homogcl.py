"""HomoGCL: neighbors in one cluster are positives, too, as far as the clusters agree."""

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
        None, description="Width of the projector's hidden layer. No projector if not given."
    )
    temperature: float = Field(0.5, ge=1 / 600, description="Temperature of InfoNCE [tau].")
    clusters: PositiveInt = Field(10, description="Clusters of k-means [k].")
    cluster_iterations: PositiveInt = Field(20, description="Rounds of k-means in each step.")
    cluster_variance: float = Field(1e-3, gt=0, description="How soft the clusters are [sigma, or 2 sigma^2].")
    homophily_weight: float = Field(1.0, ge=0, description="Weight of the homophily term [alpha].")
    mean_neighbors: bool = Field(False, description="Let all neighbors of a node count as much as one positive.")


class HomoGCL(Method):
    """Homophily in contrastive learning; formulas at `ssge.objectives.infonce` and `ssge.objectives.homophily`.

    In each step k-means of the representations of the clean view gives soft clusters. The loss is InfoNCE of two
    augmented views, in which neighbors are soft positives by the agreement of their clusters and never negatives, plus
    alpha times the disagreement of clusters along the edges of the clean view.

    With ``batch_nodes`` an epoch is several steps, each on some nodes, drawn anew. Their representations are those in
    whole views; clusters, neighbors and negatives are those among the nodes of the step.

    Random: the initial weights, the dropped edges and masked columns of each view, the rows at which k-means begins.
    Cost of a step: three passes of the encoder, O(n^2 d) time for the similarities and O(n k d) for each round of
    k-means, in O(n d + m) memory.

    Differences from the released code: it holds about ten n x n matrices, where here none is formed; it counts the
    other view of a node among the negatives as well; the mean over neighbors adds 0.01 to their number; neighbors are
    in-neighbors, from which a node aggregates, instead of out-neighbors; a cluster that k-means left empty is dropped,
    where it splits another one; weights of a projector are Xavier-uniform.
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
        # Directions from the origin count here, so that the bias of the last layer matters.
        self.encoder = GCN((info.num_features, *config.widths), "relu", generator, output_bias=True)
        self.projector = nn.Identity() if hidden is None else Head((d, hidden, d), "elu", generator)
        self.augment = Compose(DropEdges(config.edge_drop), MaskFeatures(config.feature_mask))

    def forward(self, view: View, key: Key) -> Losses:
        """Return InfoNCE of two augmented views with neighbors as positives, and the homophily of clusters."""
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
        """Return the soft assignment of each node to the clusters of k-means that are not empty."""
        c = self.config
        labels = k_means(z.detach(), c.clusters, c.cluster_iterations, generator)
        filled = torch.bincount(labels, minlength=c.clusters) > 0
        centers = community_means(z, labels, c.clusters)[filled]
        return distance_assignments(z, centers, c.cluster_variance)
