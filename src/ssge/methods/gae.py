"""GAE: a GCN whose output reconstructs the edges by inner products."""

from __future__ import annotations

import torch

from ssge.graph import GraphInfo
from ssge.methods._autoencoder import Autoencoder, AutoencoderConfig
from ssge.nn.encoders import GCN
from ssge.objectives import Losses
from ssge.ops.random import Key
from ssge.views import View


class GAE(Autoencoder):
    """Graph autoencoder; see `ssge.objectives.reconstruction` for the formula.

    Random: the initial weights and the sampled non-edges. Cost of a step: one pass of the encoder and O(m d) for the
    scores of m edges and as many non-edges; with ``dense`` O(n^2 d), in blocks, so that no n x n array is formed.

    Differences from the released code: it uses all n x n pairs (``dense``), of which the sample is an unbiased
    estimate; its hidden layer has no bias; and it holds out 15 % of the edges for link prediction, with widths 32-16.
    For classification, we train on all edges with a wider latent code. As in the released code, self-loops are
    positive pairs.
    """

    name = "gae"
    title = "GAE"
    reference = "Kipf and Welling, Variational Graph Auto-Encoders, 2016"

    def __init__(self, config: AutoencoderConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        self.encoder = GCN((info.num_features, *config.widths), "relu", generator)

    def forward(self, view: View, key: Key) -> Losses:
        """Return the reconstruction loss of the clean view."""
        loss = self.reconstruction(self.encoder(view), view, key)
        return Losses(loss, {"reconstruction": loss.detach()})
