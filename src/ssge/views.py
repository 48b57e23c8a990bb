"""Views: the input of encoders, and random augmentations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from ssge.errors import InputError
from ssge.graph import Graph
from ssge.ops.adjacency import Adjacency, Normalization
from ssge.ops.collective import own_rows
from ssge.ops.features import Features
from ssge.ops.neighbor_sampling import NeighborSampler
from ssge.ops.random import Key
from ssge.ops.sharded import ShardedAdjacency, ShardedFeatures


class View(NamedTuple):
    """Features and adjacency over the same nodes; the clean graph is the view without any drop.

    Attributes
    ----------
    features, adjacency
        Of all nodes.
    labels
        For supervised methods only: the class of a training node, -1 for every other node.
    seeds
        Positions of the nodes of a mini-batch, whose representations a step computes; None: all nodes.
    """

    features: Features
    adjacency: Adjacency
    labels: Tensor | None = None
    seeds: Tensor | None = None

    @classmethod
    def of(
        cls,
        graph: Graph,
        normalization: Normalization = "out-in",
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> View:
        """Return the clean view of a graph on a device."""
        return cls(
            Features.of(graph.features, device, dtype),
            Adjacency.of(graph.edges, graph.num_nodes, graph.weights, normalization, device, dtype),
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes, n."""
        return int(self.features.shape[0])

    def k_hop_subgraph(self, seeds: Tensor, hops: int) -> View:
        """Return the k-hop subgraph of some nodes, the receptive field of an encoder of ``hops`` layers.

        The seeds have the same representations as in the whole view, because degrees are those of the whole view.
        """
        nodes = self.adjacency.in_neighbors(seeds, hops)
        labels = None if self.labels is None else self.labels[nodes]
        part = View(self.features.select(nodes), self.adjacency.subgraph(nodes), labels)
        return part._replace(seeds=torch.searchsorted(nodes, seeds))

    def node_batches(
        self, size: int | None, hops: int, key: Key, fanouts: Sequence[int] | None = None
    ) -> Iterator[View]:
        """Yield mini-batches in which each node is a seed once, in random order; None: the whole view.

        A batch is the k-hop subgraph of its seeds, so that their representations are those in the whole view. In
        distributed training, each process gets some of the seeds. With ``fanouts`` a batch is a sample of that subgraph
        (`ssge.ops.neighbor_sampling`), and representations are unbiased layer by layer.
        """
        if size is None or (size >= self.num_nodes and fanouts is None):
            yield self
            return
        if fanouts is not None and len(fanouts) != hops > 0:
            raise InputError(
                f"fanouts must be {hops} numbers, one for each hop of the encoder; received {len(fanouts)}."
            )
        sampler = NeighborSampler(self.adjacency, fanouts) if fanouts is not None and hops else None
        order = key.fold_in("order").permutation(self.num_nodes, self.features.device)
        for step, part in enumerate(order.tensor_split(math.ceil(self.num_nodes / size))):
            seeds = part.sort().values[own_rows(part.numel())]
            if sampler is None:
                yield self.k_hop_subgraph(seeds, hops)
            else:
                yield self.sampled(sampler, seeds, key.at_step(step))

    def sampled(self, sampler: NeighborSampler, seeds: Tensor, key: Key) -> View:
        """Return a sampled neighborhood of some nodes as a view, the seeds first."""
        part = sampler.sample(seeds, key)
        first = torch.arange(seeds.numel(), device=seeds.device)
        return View(self.features.select(part.nodes), sampler.adjacency(part), seeds=first)

    def shard(self) -> View:
        """Return the rows of the view that belong to this process in distributed training.

        Representations depend on all nodes, as in the whole view; see `ssge.ops.sharded.ShardedAdjacency`.
        """
        adjacency = ShardedAdjacency(self.adjacency.pattern, self.adjacency.normalization, self.adjacency.drops)
        return View(ShardedFeatures(self.features, own_rows(self.num_nodes)), adjacency)

    @property
    def whole(self) -> View | None:
        """The view of all nodes, if this view has the rows of one process; else None."""
        if isinstance(self.features, ShardedFeatures) and isinstance(self.adjacency, ShardedAdjacency):
            return View(self.features.whole, self.adjacency.whole)
        return None

    def at_seeds(self, rows: Tensor) -> Tensor:
        """Select the rows of the seeds from a matrix with one row per node."""
        return rows if self.seeds is None else rows[self.seeds]


Augmentation: TypeAlias = Callable[[View, Key], View]


class DropEdges:
    """Drop each directed edge with probability ``rate``, independently; self-loops stay.

    The rate is one number, or one per entry of the whole graph's pattern, including self-loops. All steps of an epoch
    drop the same edges, because they use parts of the same views.
    """

    def __init__(self, rate: float | Tensor) -> None:
        self.rate = _checked_rate("edge_drop", rate)

    def __call__(self, view: View, key: Key) -> View:
        """Return the view with fewer edges."""
        if not torch.is_tensor(self.rate) and self.rate == 0:
            return view
        return view._replace(adjacency=view.adjacency.drop_edges(key.fold_in("edges").at_step(0), self.rate))


class MaskFeatures:
    """Set each feature column to zero with probability ``rate``, the same columns for all nodes.

    The rate is one number, or one per column.
    """

    def __init__(self, rate: float | Tensor) -> None:
        self.rate = _checked_rate("feature_mask", rate)

    def __call__(self, view: View, key: Key) -> View:
        """Return the view with fewer feature columns."""
        if not torch.is_tensor(self.rate) and self.rate == 0:
            return view
        columns = torch.arange(view.features.shape[1], device=view.features.device)
        return view._replace(features=view.features.mask(key.fold_in("columns").keep(columns, self.rate)))


class ShuffleNodes:
    """Shuffle the rows of X: each node gets the features of another. The edges do not change."""

    def __call__(self, view: View, key: Key) -> View:
        """Return the view with shuffled features."""
        order = key.fold_in("shuffle").permutation(view.num_nodes, view.features.device)
        return view._replace(features=view.features.permute(order))


class Compose:
    """Apply augmentations one after another."""

    def __init__(self, *augmentations: Augmentation) -> None:
        self.augmentations = augmentations

    def __call__(self, view: View, key: Key) -> View:
        """Return the view after all of them."""
        for augmentation in self.augmentations:
            view = augmentation(view, key)
        return view


def drop_and_mask(edge_drops: Sequence[float], feature_masks: Sequence[float]) -> tuple[Augmentation, ...]:
    """Return one augmentation per pair of rates: one rate for all edges and one for all columns of a view."""
    rates = zip(edge_drops, feature_masks, strict=True)
    return tuple(Compose(DropEdges(drop), MaskFeatures(mask)) for drop, mask in rates)


def augmented(view: View, augmentations: Sequence[Augmentation], key: Key) -> list[View]:
    """Return one view per augmentation, drawn independently."""
    return [augment(view, key.fold_in(i)) for i, augment in enumerate(augmentations)]


def _checked_rate(name: str, rate: float | Tensor) -> float | Tensor:
    values = torch.as_tensor(rate, dtype=torch.float64)
    wrong = values[~((values >= 0) & (values <= 1))]
    if wrong.numel():
        raise InputError(f"{name} must be a probability from 0 to 1; received {float(wrong[0])}.")
    return rate
