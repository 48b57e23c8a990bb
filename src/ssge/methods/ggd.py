"""GGD: discriminate nodes of the graph from nodes with shuffled features, by one linear score."""

from __future__ import annotations

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor

from ssge.graph import GraphInfo
from ssge.methods._base import Epochs, FeatureMask, Method, NodeBatchConfig, NormalizeFeatures, WeightDecay, Widths
from ssge.nn.encoders import GCN, Affine
from ssge.objectives import Losses
from ssge.objectives.mutual_information import group_discrimination
from ssge.ops.random import Key
from ssge.views import MaskFeatures, ShuffleNodes, View


class GGDConfig(NodeBatchConfig):
    """Settings of GGD."""

    epochs: Epochs = 200
    weight_decay: WeightDecay = 0.0
    feature_mask: FeatureMask = 0.2
    widths: Widths = (512,)
    hops: NonNegativeInt = Field(
        5, description="The embedding is H + A^hops H, with H the encoder's output; 0: H alone [t]."
    )
    normalize_features: NormalizeFeatures = True


class GGD(Method):
    """Graph group discrimination; see `ssge.objectives.mutual_information.group_discrimination`.

    The encoder is a GCN with PReLU after every layer, the head a linear map of width d. Some columns of X are masked,
    then its rows are shuffled for the second group. The embedding is H + A^t H.

    Random: the initial weights, the masked columns and the order of the shuffled rows. Cost of a step: two passes of
    the encoder and O(n d + d^2) for the scores. With ``batch_nodes`` the rows are shuffled within the subgraph of a
    step. The embedding takes O(t m d) more, once.

    Differences from the released code: each column is masked independently, whereas the code masks a fixed number of
    columns; the weights of the head are summed before the product, which saves O(n d^2). Its batch normalizations and
    its second adjacency have no effect and are omitted.
    """

    name = "ggd"
    title = "GGD"
    family = "contrastive"
    reference = (
        "Zheng et al., Rethinking and Scaling Up Graph Contrastive Learning: An Extremely Efficient Approach with "
        "Group Discrimination, NeurIPS 2022"
    )

    config: GGDConfig
    encoder: GCN

    def __init__(self, config: GGDConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        d = config.widths[-1]
        self.encoder = GCN((info.num_features, *config.widths), "prelu", generator, output_activation=True)
        self.head = Affine(d, d, True, generator, by_inputs=True)
        self.mask, self.corrupt = MaskFeatures(config.feature_mask), ShuffleNodes()

    def forward(self, view: View, key: Key) -> Losses:
        """Return the cross-entropy of the two groups."""
        masked = self.mask(view, key)
        h, corrupted = (view.at_seeds(self.encoder(one)) for one in (masked, self.corrupt(masked, key)))
        loss = group_discrimination(h, corrupted, self.head.weight.t(), self.head.bias)
        return Losses(loss, {"discrimination": loss.detach()})

    def encode(self, prepared: View, nodes: Tensor | None = None) -> Tensor:
        """Return H + A^t H, n x d, or the rows of some nodes."""
        t = self.config.hops
        view = prepared if nodes is None else prepared.k_hop_subgraph(nodes, self.encoder.hops + t)
        h = far = self.encoder.embed(view)
        for _ in range(t):
            far = view.adjacency @ far
        return view.at_seeds(h + far if t else h)
