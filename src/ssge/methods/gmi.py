"""GMI: maximize mutual information of a node with its own features, its neighbors' features and its edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import Field, PositiveInt

from ssge.graph import Graph, GraphInfo
from ssge.methods._base import Epochs, Method, MethodConfig, NormalizeFeatures, Prepared, WeightDecay, Widths
from ssge.nn.encoders import GCN, PReLU
from ssge.nn.heads import Bilinear
from ssge.objectives import Losses
from ssge.objectives.mutual_information import edge_information, paired_information, sample_others
from ssge.ops.edges import neighbor_mean, without_loops
from ssge.ops.random import Key
from ssge.ops.sampling import Pairs, sample_non_edges
from ssge.ops.sparse import SparseMatrix


class GMIConfig(MethodConfig):
    """Settings of GMI."""

    epochs: Epochs = 200
    weight_decay: WeightDecay = 0.0
    widths: Widths = (512,)
    feature_weight: float = Field(0.8, ge=0, description="Weight of the term on a node's own features [alpha].")
    neighbor_weight: float = Field(1.0, ge=0, description="Weight of the term on its neighbors' features [beta].")
    edge_weight: float = Field(1.0, ge=0, description="Weight of the term on edges [gamma].")
    negatives: PositiveInt = Field(5, description="Negative samples per node and step.")
    non_edges: float = Field(1.0, gt=0, description="Sampled non-edges per edge and step.")
    bounded: bool = Field(True, description="Apply a sigmoid to the scores of nodes before the loss, as released.")
    normalize_features: NormalizeFeatures = True


@dataclass(frozen=True)
class Averaging(Prepared):
    """The clean view, and the matrix that averages over neighbors."""

    neighbors: SparseMatrix


class GMI(Method):
    """Graphical mutual information with equal neighbor weights; see `ssge.objectives.mutual_information`.

    With H the encoder's output and U = PReLU(mean over the neighbors of X W), W of the encoder's first layer, the loss
    is ``alpha paired_information(H, X W1) + beta paired_information(U, H W2) + gamma edge_information(H)``. The
    encoder is a GCN with PReLU after every layer.

    Random: the initial weights, the other nodes of the negative pairs and the non-edges of each step. Cost of a step:
    one pass of the encoder, two products with X, and O(n k d + m d) for k other nodes and m edges.

    Differences from the released code: non-edges are a sample, whereas the code uses all n x n pairs; both terms on
    nodes have no bias; features are mapped once per node; the number of epochs is fixed, whereas the code stops after
    20 epochs without a lower training loss. Neighbors have equal weights, as in the code; the published figures that
    others quote come from the paper's second variant, which learns the weights.
    """

    name = "gmi"
    title = "GMI"
    family = "contrastive"
    reference = "Peng et al., Graph Representation Learning via Graphical Mutual Information Maximization, WWW 2020"

    config: GMIConfig
    encoder: GCN

    def __init__(self, config: GMIConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        first, last = config.widths[0], config.widths[-1]
        self.encoder = GCN((info.num_features, *config.widths), "prelu", generator, output_activation=True)
        self.activation = PReLU()
        self.own = Bilinear(info.num_features, last, generator, bias=False)
        self.near = Bilinear(last, first, generator, bias=False)

    def prepare(self, graph: Graph) -> Averaging:
        """Return the clean view and the matrix of its neighbors."""
        view = super().prepare(graph)
        return Averaging(view, neighbor_mean(without_loops(view.adjacency.entries[0])))

    def forward(self, batch: Averaging, key: Key) -> Losses:
        """Return the weighted sum of the terms on features, neighbors and edges."""
        view, c = batch.view, self.config
        h = self.encoder(view)
        u = self.activation(batch.neighbors @ (view.features @ self.encoder.affine[0].weight))
        first, second = (sample_others(view.num_nodes, c.negatives, key.fold_in("others", i).generator(self.device))
                         for i in range(2))  # fmt: skip
        own = paired_information(h, view.features @ self.own.weight, first, c.bounded)
        near = paired_information(u, h @ self.near.weight, second, c.bounded)
        edges = Pairs.of(view.adjacency)
        count = max(1, round(c.non_edges * view.adjacency.num_entries))
        non_edges = sample_non_edges(edges, count, key.fold_in("non-edges").generator(self.device))
        linked = edge_information(h, edges, non_edges)
        total = c.feature_weight * own + c.neighbor_weight * near + c.edge_weight * linked
        return Losses(total, {"features": own.detach(), "neighbors": near.detach(), "edges": linked.detach()})
