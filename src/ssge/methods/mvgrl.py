"""MVGRL: discriminate nodes of one view from nodes with shuffled features, by the summary of the other view."""

from __future__ import annotations

import torch

from ssge.graph import GraphInfo
from ssge.methods._base import Epochs
from ssge.methods._diffused import Diffused, DiffusedConfig, DiffusedMethod
from ssge.nn.encoders import GCN
from ssge.nn.heads import Bilinear
from ssge.objectives import Losses
from ssge.objectives.mutual_information import cross_view
from ssge.ops.adjacency import Adjacency, Pattern
from ssge.ops.random import Key
from ssge.views import ShuffleNodes, View


class MVGRLConfig(DiffusedConfig):
    """Settings of MVGRL."""

    epochs: Epochs = 200


class MVGRL(DiffusedMethod):
    """Contrastive multi-view representations; see `ssge.objectives.mutual_information.cross_view`.

    The views are the graph and its personalized PageRank diffusion S (`ssge.ops.diffusion`), each with its own
    encoder: a GCN with PReLU after every layer. The embedding is the sum of both outputs.

    Random: the initial weights and the order of the shuffled rows of X, one order for both views; with ``batch_nodes``
    the nodes of each step. Cost of a step: two passes of each encoder, for the diffusion with as many edges as S has
    entries. Once before training: O(n^3) time and O(n^2) memory for S, less in large graphs.

    Differences from the released code: entries of S below ``threshold`` are dropped on all graphs, in the code on
    CiteSeer only; a step uses all nodes, or a mini-batch drawn without replacement and normalized by the degrees inside
    it, as in DGL's example, whereas the code uses 4 windows of 2,000 nodes with consecutive ids and their degrees in
    the whole graph; the number of epochs is fixed, whereas the code stops after 20 epochs without a lower training
    loss; self-loops count once. Only the personalized PageRank diffusion is implemented, as in all its results on
    nodes.
    """

    name = "mvgrl"
    title = "MVGRL"
    reference = "Hassani and Khasahmadi, Contrastive Multi-View Representation Learning on Graphs, ICML 2020"

    config: MVGRLConfig

    def __init__(self, config: MVGRLConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        widths = (info.num_features, *config.widths)
        self.encoder = GCN(widths, "prelu", generator, output_activation=True)
        self.diffusion_encoder = GCN(widths, "prelu", generator, output_activation=True)
        self.discriminator = Bilinear(widths[-1], widths[-1], generator)
        self.corrupt = ShuffleNodes()

    @property
    def encoders(self) -> tuple[GCN, GCN]:
        """The encoders of the graph and of the diffusion."""
        return self.encoder, self.diffusion_encoder

    def forward(self, batch: Diffused, key: Key) -> Losses:
        """Return the cross-entropy of pairs of nodes with the summary of the other view."""
        views = list(zip((induced(batch.graph), batch.diffusion), self.encoders, strict=True))
        h1, h2 = (encoder(view) for view, encoder in views)
        corrupted1, corrupted2 = (encoder(self.corrupt(view, key)) for view, encoder in views)
        loss = cross_view(h1, h2, corrupted1, corrupted2, self.discriminator.weight, self.discriminator.bias)
        return Losses(loss, {"discrimination": loss.detach()})


def induced(view: View) -> View:
    """Return the view of a subgraph, normalized by the degrees inside it; a whole graph is returned as it is.

    A random mini-batch holds few of the neighbors of its nodes. With degrees in the whole graph the output of a node
    would be much smaller during training than in the embedding.
    """
    pattern = view.adjacency.pattern
    if pattern.incident is None:
        return view
    inside = Pattern(pattern.incoming, pattern.weighted, pattern.nodes)
    return view._replace(adjacency=Adjacency(inside, view.adjacency.normalization))
