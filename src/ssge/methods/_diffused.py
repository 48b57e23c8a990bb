"""Base of MVGRL and MERIT: the graph and its diffusion as two views, full-batch or as subgraphs of random nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import Field, PositiveInt
from torch import Tensor

from ssge.graph import Graph, GraphInfo
from ssge.methods._base import Method, MethodConfig, NormalizeFeatures, WeightDecay, Widths
from ssge.nn.encoders import GCN
from ssge.ops.diffusion import EXACT_NODES, ColumnScale, Diffusion, ppr_diffusion
from ssge.ops.random import Key
from ssge.views import View


class DiffusedConfig(MethodConfig):
    """Settings of the diffusion and of the steps."""

    weight_decay: WeightDecay = 0.0
    widths: Widths = (512,)
    teleport: float = Field(0.2, gt=0, le=1, description="Teleport probability of personalized PageRank [alpha].")
    threshold: float = Field(1e-4, ge=0, description="Drop entries of the diffusion below this value.")
    diffusion_neighbors: PositiveInt | None = Field(
        None,
        description="Keep this many of the largest entries of the diffusion per node; default: all above the "
        "threshold.",
    )
    column_scale: ColumnScale = Field("none", description="Divide columns of the diffusion by their sum or maximum.")
    batch_nodes: PositiveInt | None = Field(
        None, description="Random nodes per step, with the subgraph they induce; default: all nodes."
    )
    normalize_features: NormalizeFeatures = True


class Diffused(NamedTuple):
    """Two views with the same features: the graph and its diffusion.

    Attributes
    ----------
    graph, diffusion
        The two views.
    batch_nodes
        Nodes per step; None: all.
    """

    graph: View
    diffusion: View
    batch_nodes: int | None = None

    def batches(self, key: Key) -> Iterator[Diffused]:
        """Yield the whole graph, or mini-batches of both views; each node occurs once, in random order."""
        n = self.graph.num_nodes
        if self.batch_nodes is None or self.batch_nodes >= n:
            yield self
            return
        order = key.fold_in("order").permutation(n, self.graph.features.device)
        for part in order.tensor_split(math.ceil(n / self.batch_nodes)):
            nodes = part.sort().values
            features = self.graph.features.select(nodes)
            graph, diffusion = (View(features, view.adjacency.subgraph(nodes)) for view in (self.graph, self.diffusion))
            yield Diffused(graph, diffusion)


class DiffusedMethod(Method):
    """A method whose embedding is the sum of the representations in the graph and in its diffusion."""

    family = "contrastive"
    config: DiffusedConfig
    encoder: GCN

    @property
    def encoders(self) -> tuple[GCN, GCN]:
        """The encoders of the graph and of the diffusion."""
        return self.encoder, self.encoder

    @classmethod
    def dense_memory(cls, config: Any, info: GraphInfo, itemsize: int) -> int:
        """Return the size in bytes of the factorization for the exact diffusion, or of the entries that are kept."""
        n = info.num_nodes
        if n <= EXACT_NODES:
            return 2 * itemsize * n * n
        return n * (config.diffusion_neighbors or 0) * (2 * itemsize + 16)

    def prepare(self, graph: Graph) -> Diffused:
        """Return the clean view and its diffusion."""
        c, view = self.config, super().prepare(graph)
        rows = ppr_diffusion(view.adjacency, c.teleport, c.threshold, c.diffusion_neighbors, c.column_scale)
        return Diffused(view, view._replace(adjacency=Diffusion.of_rows(rows)), c.batch_nodes)

    def encode(self, prepared: Diffused, nodes: Tensor | None = None) -> Tensor:
        """Return the sum of both views' representations, n x d, or the rows of some nodes."""
        outputs = []
        for view, encoder in zip((prepared.graph, prepared.diffusion), self.encoders, strict=True):
            part = view if nodes is None else view.k_hop_subgraph(nodes, encoder.hops)
            outputs.append(part.at_seeds(encoder.embed(part)))
        return outputs[0] + outputs[1]
