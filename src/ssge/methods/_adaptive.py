"""Base of GCA and gCooL: adaptive augmentation, which drops central edges and features less often."""

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
        "degree", description="Node centrality that determines the drop rates of edges and feature columns."
    )
    binary_features: bool = Field(
        True, description="Binarize features for the centrality of columns; released: not on WikiCS."
    )
    lazy_pagerank: bool = Field(
        False,
        description="PageRank as released: a lazy walk without teleports, 200 steps for edges, 10 for columns.",
    )


class Batch(NamedTuple):
    """Input of a step: a clean view of the graph or of a mini-batch, and the augmentations of the whole graph."""

    view: View
    augmentations: Sequence[Augmentation]


@dataclass(frozen=True)
class Central(Prepared):
    """The clean view, and the augmentations with rates by centrality; computed on first use."""

    config: AdaptiveConfig
    hops: int

    def batches(self, key: Key) -> Iterator[Batch]:
        """Yield the whole graph, or its mini-batches of nodes."""
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
    """A method with adaptive augmentation; see `ssge.ops.centrality` for the formula."""

    config: AdaptiveConfig

    def prepare(self, graph: Graph) -> Central:
        """Return the clean view with its augmentations."""
        return Central(super().prepare(graph), self.config, self.encoder.hops)


def centralities(edges: CSR, kind: str, lazy: bool) -> tuple[Tensor, Tensor]:
    """Return two centralities per node: for the drop rates of edges, and for those of feature columns."""
    if kind == "pagerank" and lazy:
        of_edges, of_columns = (pagerank_centrality(edges, iterations=k, tolerance=0, lazy=True) for k in (200, 10))
        return of_edges, of_columns
    measure = {
        "degree": degree_centrality,
        "pagerank": pagerank_centrality,
        "eigenvector": eigenvector_centrality,
    }[kind]
    return (measure(edges),) * 2
