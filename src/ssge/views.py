"""Views: a graph as an encoder takes it, and the random augmentations that make one view of another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.graph import Graph
from ssge.ops.adjacency import Adjacency, Normalization
from ssge.ops.features import Features


class View(NamedTuple):
    """Features and adjacency over the same nodes; the clean graph is the view in which nothing was dropped.

    Attributes
    ----------
    features, adjacency
        Of all nodes.
    labels
        For supervised methods alone: the class of a training node, -1 for every other node.
    focus
        The nodes whose representations a step of training looks at, in ascending order; None: all.
    """

    features: Features
    adjacency: Adjacency
    labels: Tensor | None = None
    focus: Tensor | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        normalization: Normalization = "out-in",
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> View:
        """Bring a graph to a device as its own clean view."""
        return cls(
            Features.of(graph.features, device, dtype),
            Adjacency.of(graph.edges, graph.num_nodes, graph.weights, normalization, device, dtype),
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes, n."""
        return int(self.features.shape[0])

    def around(self, nodes: Tensor, hops: int) -> tuple[View, Tensor]:
        """Return the part of the view that an encoder of so many hops needs for some nodes, and where they are in it.

        The nodes' representations are those of the whole view, because degrees are those of the whole view.
        """
        needed = self.adjacency.upstream(nodes, hops)
        part = View(self.features.part(needed), self.adjacency.part(needed))
        return part, torch.searchsorted(needed, nodes)

    def alone(self) -> View:
        """Return the nodes in focus and the edges among them, for an encoder that hears no others."""
        return self if self.focus is None else self.around(self.focus, 0)[0]

    def focused(self, size: int, generator: torch.Generator) -> Iterator[View]:
        """Yield the view with a focus on each node once, on ``size`` random ones at a time or evenly a few less."""
        order = torch.randperm(self.num_nodes, generator=generator, device=self.features.device)
        for nodes in order.tensor_split(math.ceil(self.num_nodes / size)):
            yield self._replace(focus=nodes.sort().values)


Augmentation: TypeAlias = Callable[[View, torch.Generator], View]


class DropEdges:
    """Drop each directed edge with probability ``rate``, independently; self-loops stay."""

    def __init__(self, rate: float) -> None:
        self.rate = _checked_rate("edge_drop", rate)

    def __call__(self, view: View, generator: torch.Generator) -> View:
        """Return the view with fewer edges."""
        if self.rate == 0:
            return view
        draw = torch.rand(view.adjacency.num_entries, generator=generator, device=view.adjacency.device)
        return view._replace(adjacency=view.adjacency.keep(draw >= self.rate))


class MaskFeatures:
    """Set each feature column to zero with probability ``rate``, for all nodes alike."""

    def __init__(self, rate: float) -> None:
        self.rate = _checked_rate("feature_mask", rate)

    def __call__(self, view: View, generator: torch.Generator) -> View:
        """Return the view with fewer feature columns."""
        if self.rate == 0:
            return view
        draw = torch.rand(view.features.shape[1], generator=generator, device=view.features.device)
        return view._replace(features=view.features.mask(draw >= self.rate))


class Compose:
    """Apply augmentations one after another."""

    def __init__(self, *augmentations: Augmentation) -> None:
        self.augmentations = augmentations

    def __call__(self, view: View, generator: torch.Generator) -> View:
        """Return the view after all of them."""
        for augmentation in self.augmentations:
            view = augmentation(view, generator)
        return view


def _checked_rate(name: str, rate: float) -> float:
    if not 0 <= rate <= 1:
        raise InputError(f"{name} must be a probability from 0 to 1; received {rate}.")
    return rate
