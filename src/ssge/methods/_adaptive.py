"""What GCA and gCooL share: views that drop what is central to the graph less often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from pydantic import Field
from torch import Tensor

from ssge.graph import Graph
from ssge.methods._base import Prepared
from ssge.methods._infonce import InfoNCEConfig, InfoNCEMethod
from ssge.ops.centrality import (
    degree_centrality,
    edge_drop_probabilities,
    eigenvector_centrality,
    feature_drop_probabilities,
    pagerank_centrality,
)
from ssge.ops.random import Key
from ssge.ops.sparse import CSR
from ssge.views import Augmentation, Compose, DropEdges, MaskFeatures, View


class AdaptiveConfig(InfoNCEConfig):
    """Settings of views by centrality; rates of edges and columns are means over all of them."""

    centrality: Literal["degree", "pagerank", "eigenvector"] = Field(
        "degree", description="Centrality of nodes, which decides the rates of edges and feature columns."
    )
    binary_features: bool = Field(
        True, description="Count a feature other than 0 as 1 in the centrality of its column; released: not on WikiCS."
    )
    lazy_pagerank: bool = Field(
        False,
        description="PageRank as released: a lazy walk that never teleports, 200 steps for edges, 10 for columns.",
    )


class Batch(NamedTuple):
    """What a step takes: a clean view, whole or in part, and the augmentations of the whole graph."""

    view: View
    augmentations: Sequence[Augmentation]


@dataclass(frozen=True)
class Central(Prepared):
    """The clean view, and the augmentations whose rates follow from its centralities; made on first use."""

    config: AdaptiveConfig
    hops: int

    def batches(self, key: Key) -> Iterator[Batch]:
        """Yield the whole graph, or its batches of nodes."""
        size, fanouts = (getattr(self.config, name, None) for name in ("batch_nodes", "fanouts"))
        for part in self.view.node_batches(size, self.hops, key, fanouts):
            yield Batch(part, self.augmentations)

    @cached_property
    def augmentations(self) -> tuple[Augmentation, ...]:
        """The augmentation of each view, with a rate per edge and per feature column."""
        c, edges = self.config, self.view.adjacency.pattern.incoming
        of_edges, of_columns = centralities(edges, c.centrality, c.lazy_pagerank)
        return tuple(
            Compose(
                DropEdges(edge_drop_probabilities(edges, of_edges, drop)),
                MaskFeatures(
                    feature_drop_probabilities(self.view.features.matrix, of_columns, mask, binary=c.binary_features)
                ),
            )
            for drop, mask in zip(c.edge_drops, c.feature_masks, strict=True)
        )


class Adaptive(InfoNCEMethod):
    """A method that draws its views by centrality; the formula stands at `ssge.ops.centrality`."""

    config: AdaptiveConfig

    def prepare(self, graph: Graph) -> Central:
        """Return the clean view with its augmentations."""
        return Central(super().prepare(graph), self.config, self.encoder.hops)


def centralities(edges: CSR, kind: str, lazy: bool) -> tuple[Tensor, Tensor]:
    """Return the centrality of each node for the rates of edges, and that for the rates of columns."""
    if kind == "pagerank" and lazy:
        of_edges, of_columns = (pagerank_centrality(edges, iterations=k, tolerance=0, lazy=True) for k in (200, 10))
        return of_edges, of_columns
    measure = {
        "degree": degree_centrality,
        "pagerank": pagerank_centrality,
        "eigenvector": eigenvector_centrality,
    }[kind]
    return (measure(edges),) * 2
