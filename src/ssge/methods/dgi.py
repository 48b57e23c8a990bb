"""DGI: discriminate nodes of the graph from nodes with shuffled features, by a summary of the graph."""

from __future__ import annotations

import torch
from pydantic import Field

from ssge.graph import GraphInfo
from ssge.methods._base import Epochs, Method, NodeBatchConfig, NormalizeFeatures, WeightDecay, Widths
from ssge.nn.encoders import GCN, Affine
from ssge.nn.heads import Bilinear
from ssge.objectives import Losses
from ssge.objectives.mutual_information import local_global, summary
from ssge.ops.random import Key
from ssge.views import ShuffleNodes, View


class DGIConfig(NodeBatchConfig):
    """Settings of DGI."""

    epochs: Epochs = 200
    weight_decay: WeightDecay = 0.0
    widths: Widths = (512,)
    linear_summary: bool = Field(
        False,
        description="Map the summary by a linear layer with a bias per column, as in PyGCL; else bilinear scores.",
    )
    normalize_features: NormalizeFeatures = True


class DGI(Method):
    """Deep graph infomax; see `ssge.objectives.mutual_information.local_global` for the formula.

    The encoder is a GCN with PReLU after every layer. Random: the initial weights and the order of the shuffled rows
    of X. Cost of a step: two passes of the encoder and O(n d + d^2) for the scores. With ``batch_nodes`` the rows are
    shuffled within the subgraph of a step, and the summary is that of its seeds.

    Differences from the released code: the number of epochs is fixed, whereas the code stops after 20 epochs without a
    lower training loss and restores the epoch with the lowest; self-loops count once; the product of the weights and
    the summary is computed once, which saves O(n d^2). PyGCL's variant, which the SSGE paper measures, has
    ``linear_summary`` and one slope of PReLU per column.
    """

    name = "dgi"
    title = "DGI"
    family = "contrastive"
    reference = "Velickovic et al., Deep Graph Infomax, ICLR 2019"

    config: DGIConfig
    encoder: GCN

    def __init__(self, config: DGIConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        self.encoder = GCN((info.num_features, *config.widths), "prelu", generator, output_activation=True)
        d = config.widths[-1]
        self.discriminator: Affine | Bilinear
        if config.linear_summary:
            self.discriminator = Affine(d, d, True, generator, by_inputs=True)
        else:
            self.discriminator = Bilinear(d, d, generator)
        self.corrupt = ShuffleNodes()

    def forward(self, view: View, key: Key) -> Losses:
        """Return the cross-entropy of pairs of nodes with the summary."""
        h, corrupted = (view.at_seeds(self.encoder(one)) for one in (view, self.corrupt(view, key)))
        s, score = summary(h), self.discriminator
        if isinstance(score, Affine):
            loss = local_global(h, corrupted, score.shifted(s @ score.weight))
        else:
            loss = local_global(h, corrupted, s, score.weight, score.bias)
        return Losses(loss, {"discrimination": loss.detach()})
