"""SSGE: align two views and match an isotropic Gaussian; no negatives, no projector, no momentum encoder."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveInt, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from torch import Tensor

from ssge.graph import GraphInfo
from ssge.methods._base import Method, NodeBatchConfig
from ssge.nn.blocks import ALL, LEARNED, Block, Blocks
from ssge.nn.chunked import ChunkedGCN
from ssge.nn.encoders import ENCODERS, GCN, MLP
from ssge.nn.running import RunningCovariance
from ssge.objectives import Losses
from ssge.objectives.gaussian import EIGENVALUE_FLOOR, gaussian
from ssge.objectives.infonce import direct_infonce
from ssge.objectives.whitening import w_mse
from ssge.ops.adjacency import Normalization
from ssge.ops.propagation import HOPS
from ssge.ops.random import Key
from ssge.views import Compose, DropEdges, MaskFeatures, View

DIRECT_SHARE = 360 / 2048
"""Share of the columns that DirectCLR contrasts, as in its paper."""


class SSGEConfig(NodeBatchConfig):
    """Settings of SSGE; the names in brackets are the paper's."""

    epochs: int = Field(
        40, ge=0, description="Number of epochs. More is not better: it is a hyper-parameter, not a limit."
    )
    edge_drop: float = Field(0.3, ge=0, le=1, description="Probability of dropping an edge of a view [p_d].")
    feature_mask: float = Field(0.2, ge=0, le=1, description="Probability of masking a feature column of a view [p_m].")
    objective: Literal["gaussian", "w-mse", "directclr"] = Field(
        "gaussian",
        description="gaussian: SSGE. For comparison: w-mse (alignment after whitening) or directclr (InfoNCE of the "
        "leading columns).",
    )
    uniformity_weight: float = Field(0.1, ge=0, description="Weight of the uniformity term [lambda].")
    alignment_weight: float = Field(1.0, ge=0, description="Weight of the alignment term; 0 for the ablation.")
    widths: tuple[PositiveInt, ...] = Field(
        (256, 256), min_length=1, description="Width of each layer, the embedding last."
    )
    encoder: Literal["gcn", "mlp"] = Field("gcn", description="gcn, or mlp: features alone, with batch normalization.")
    activation: Literal["elu", "relu", "none"] = Field("elu", description="Activation between layers.")
    blocks: tuple[Block, ...] = Field(
        LEARNED,
        min_length=1,
        description="Concatenated blocks of the embedding: learned (the paper's embedding), propagated (filtered "
        "features), features.",
    )
    block_weights: tuple[NonNegativeFloat, ...] | None = Field(
        None, description="Weight of each block, in the order of blocks; default: chosen without labels."
    )
    block_hops: int | None = Field(
        None,
        ge=0,
        le=HOPS,
        description="Number of hops k of the propagated block A^k X; default: a mixture chosen without labels.",
    )
    components: PositiveInt = Field(
        512,
        description="Maximum width of the other blocks; wider features are reduced to their leading singular "
        "directions.",
    )
    output_bias: bool = Field(
        False, description="Add a bias to the last layer, as released. It has no useful gradient and drifts."
    )
    offset: float = Field(
        0.0,
        ge=0,
        description="Constant added to every entry of the embedding after scaling it to unit root mean square. The "
        "objective does not depend on it; k-means on rows of unit norm does.",
    )
    normalization: Normalization = Field("out-in", description="Degrees in the GCN normalization.")
    eigenvalue_floor: float = Field(
        EIGENVALUE_FLOOR, gt=0, description="Floor of the eigenvalues under the square root."
    )
    floor_mode: Literal["tangent", "clamp"] = Field(
        "tangent",
        description="Below the floor: tangent (linear extension) or clamp (released code: clamp, floor 1e-8).",
    )
    covariance_momentum: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="With batch_nodes: momentum of a running covariance, so that mini-batches may be smaller than the "
        "width; 0: each step uses its own covariance.",
    )
    shrinkage: float = Field(
        1e-3, gt=0, le=1, description="For w-mse: shrinkage of the covariance toward its diagonal."
    )
    direct_width: PositiveInt | None = Field(
        None,
        description="For directclr: number of leading columns; default: about a sixth of all, as in its paper.",
    )
    temperature: float = Field(0.1, ge=1 / 600, description="For directclr: temperature of InfoNCE.")

    @field_validator("blocks")
    @classmethod
    def _distinct(cls, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        if len(set(blocks)) < len(blocks) or "learned" not in blocks:
            raise PydanticCustomError("blocks", "each block must be named once, and learned must be among them")
        return blocks

    @field_validator("block_weights")
    @classmethod
    def _one_per_block(cls, weights: tuple[float, ...] | None, given: ValidationInfo) -> tuple[float, ...] | None:
        blocks = given.data.get("blocks", ())
        if weights is not None and blocks and (len(weights) != len(blocks) or not any(weights)):
            raise PydanticCustomError(
                "block_weights",
                "must be one number for each of blocks ({blocks}), not all of them 0",
                {"blocks": ", ".join(blocks)},
            )
        return weights

    @field_validator("direct_width")
    @classmethod
    def _within(cls, width: int | None, given: ValidationInfo) -> int | None:
        widths = given.data.get("widths", ())
        if width is not None and given.data.get("objective") == "directclr" and widths and width > widths[-1]:
            raise PydanticCustomError(
                "direct_width", "must be at most {width}, the last of widths", {"width": widths[-1]}
            )
        return width


class SSGE(Method):
    """Self-supervised Gaussian embedding of graphs; see `ssge.objectives.gaussian` for the formula.

    Random: the initial weights, the dropped edges and the masked columns of each view. Cost of a step, for m edges and
    width d: two passes of the encoder, O(n d^2) for the moments and O(d^3) for two eigendecompositions.

    With another ``objective`` the same views and encoder minimize `ssge.objectives.whitening.w_mse` or
    `ssge.objectives.infonce.direct_infonce`; the weights of the terms and the eigenvalue floor are then ignored.

    With ``batch_nodes`` an epoch has several steps, each on a mini-batch of nodes (`ssge.training.batches`). The
    objective uses their representations in the whole views, or with ``fanouts`` unbiased estimates of these.

    With ``blocks`` the embedding concatenates features, propagated features and the encoder's output, to compensate
    over-smoothing (`ssge.nn.blocks.Blocks`). Training does not change.
    """

    name = "ssge"
    title = "SSGE"
    family = "non-contrastive"
    reference = "Liu et al., Negative-Free Self-Supervised Gaussian Embedding of Graphs, 2024"

    config: SSGEConfig
    encoder: GCN | MLP
    blocks: Blocks | None

    def __init__(self, config: SSGEConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        self.normalization, self.offset = config.normalization, config.offset
        self.of_moments = config.objective == "gaussian"  # the others compare pairs of nodes
        widths = (info.num_features, *config.widths)
        encoder = ChunkedGCN if config.encoder == "gcn" else ENCODERS[config.encoder]
        self.encoder = encoder(widths, config.activation, generator, config.output_bias)
        momentum = config.covariance_momentum
        self.running = RunningCovariance(config.widths[-1], momentum) if momentum else None
        self.blocks = None
        if config.blocks != LEARNED:
            sizes = info.num_features, config.components, config.widths[-1]
            self.blocks = Blocks(config.blocks, *sizes, weights=config.block_weights, power=config.block_hops)
        self.augment = Compose(DropEdges(config.edge_drop), MaskFeatures(config.feature_mask))

    @classmethod
    def default_config(cls, info: GraphInfo) -> dict[str, Any]:
        """Choose widths, uniformity weight and epochs for the size of a graph; docs/defaults.md explains the rules.

        The width is a power of two near the smallest of 512, the number of features and a quarter of the number of
        nodes, because uniformity needs d x d correlations over n nodes. The uniformity weight falls with the number of
        features and rises with the root of the mean degree, roughly like the paper's choices: more neighbors make the
        outputs of the untrained encoder more similar, so they need a larger weight and more epochs to spread.
        """
        degree = info.num_edges / info.num_nodes
        room = min(512, info.num_features, info.num_nodes // 4)
        width = 2 ** round(math.log2(max(room, 2)))
        weight = min(max(140 * degree**0.5 / info.num_features, 0.03), 3.0)
        epochs = min(20 + int(2 * degree), 100)
        return {
            "widths": (width, width),
            "uniformity_weight": round(weight, 3),
            "epochs": epochs,
            "blocks": ALL,
        }

    def forward(self, view: View, key: Key) -> Losses:
        """Return alignment + lambda * uniformity of two augmented views, over the seeds, or the other objective."""
        z1, z2, weight = self.encoder.factors_of_two(view, self.augment, key)
        c = self.config
        if c.objective == "gaussian":
            return gaussian(
                z1, z2, c.uniformity_weight, c.alignment_weight, c.eigenvalue_floor, c.floor_mode, weight, self.running
            )
        z1, z2 = (z if weight is None else z @ weight for z in (z1, z2))
        if c.objective == "w-mse":
            loss = w_mse(z1, z2, c.shrinkage)
        else:
            loss = direct_infonce(z1, z2, c.direct_width or math.ceil(DIRECT_SHARE * z1.shape[1]), c.temperature)
        return Losses(loss, {c.objective: loss.detach()})

    @torch.no_grad()
    def calibrate(self, prepared: View) -> Tensor:
        """Choose the filter and the weights of the blocks, then calibrate as every method does."""
        self.eval()
        if self.blocks is not None:
            self.blocks.fit(prepared, self.encoder.embed)
        return super().calibrate(prepared)

    def encode(self, prepared: View, nodes: Tensor | None = None) -> Tensor:
        """Return the encoder's raw output, n x d, or the concatenated blocks, of all or some nodes."""
        if self.blocks is None:
            return super().encode(prepared, nodes)
        hops = max(self.encoder.hops, self.blocks.hops)
        view = prepared if nodes is None else prepared.k_hop_subgraph(nodes, hops)
        return view.at_seeds(self.blocks(view, self.encoder.embed(view)))
