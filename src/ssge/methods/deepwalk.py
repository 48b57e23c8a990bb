"""DeepWalk: skip-gram on uniform random walks, with a hierarchical softmax over the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from pydantic import Field
from torch import Tensor

from ssge.methods._walking import Walking, WalkingConfig, Walks
from ssge.objectives import Losses
from ssge.objectives.skipgram import Tree, hierarchical_softmax, huffman, pieces
from ssge.ops.adjacency import Adjacency
from ssge.ops.random import Key
from ssge.ops.walks import Walker, moved

_RAREST = 2.0**-30
"""Smallest relative frequency of a node in the Huffman tree."""


class DeepWalkConfig(WalkingConfig):
    """Settings of DeepWalk; the names in brackets are the paper's."""

    epochs: int = Field(10, ge=0, description="Walks that start at each node [gamma].")
    lr: float = Field(2.5e-3, gt=0, description="Initial learning rate of Adam; it decays linearly to zero.")
    walk_length: int = Field(40, ge=2, description="Length of a walk in nodes [t].")
    window: int = Field(10, ge=1, description="Context window of the skip-gram [w].")
    softmax: Literal["hierarchical", "negative"] = Field(
        "hierarchical", description="hierarchical: hierarchical softmax, as published; negative: negative sampling."
    )


class Batch(NamedTuple):
    """Input of a step with the hierarchical softmax: some walks, one per row, and the tree."""

    walks: Tensor
    tree: Tree


class TreeWalks(Walks):
    """Walks, and the Huffman tree over the nodes of the graph."""

    def __init__(self, walker: Walker, config: WalkingConfig, digest: Tensor) -> None:
        super().__init__(walker, config, digest)
        self.tree = huffman(walker.popularity.clamp_min(walker.popularity.sum() * _RAREST))

    def batches(self, key: Key) -> Iterator[Batch]:
        """Yield one walk from each node, in batches."""
        return (Batch(walks, self.tree) for walks in self.walks(key))


class DeepWalk(Walking):
    """Uniform random walks and skip-gram with a hierarchical softmax, on the graph's edges alone.

    See `ssge.objectives.skipgram` for the formula and `ssge.ops.walks.Walker` for the walks. Edge weights, if any, are
    transition weights.

    Random: the initial vectors, the order of the starts, and the walks. Cost of an epoch, with n walks of t nodes, a
    window w and tree paths of at most D inner nodes: O(n t w D d) time; O((n + m) + n t + n d) memory. D is near
    log2(m) on graphs without weights or isolated nodes, and at most about 44, 1.44 log2(2^30 + n), on any graph: the
    relative frequency of a node in the tree is at least 2^-30, because weights of all magnitudes could otherwise turn
    the tree into a chain.

    Differences from the released code: the Huffman tree uses the degrees of the nodes, the limit of their frequencies
    in long walks, so it is known before the first walk; every pair within the window counts once, whereas word2vec
    draws a smaller window for each center; Adam on many walks at once instead of gradient descent pair by pair; inner
    nodes start with small vectors instead of zero. The released code starts the walk of node 0 at a random node, a bug
    that affects one of n walks and is not reproduced.
    """

    name = "deepwalk"
    title = "DeepWalk"
    reference = "Perozzi et al., DeepWalk: Online Learning of Social Representations, 2014"

    config: DeepWalkConfig

    @property
    def num_contexts(self) -> int:
        """Number of context vectors: one per node, or one per inner node of the tree."""
        n = self.info.num_nodes
        return n if self.config.softmax == "negative" else max(n - 1, 1)

    def walks(self, adjacency: Adjacency, digest: Tensor) -> Walks:
        """Return the walks along the edges of a graph, with the Huffman tree if it is used."""
        kind = Walks if self.config.softmax == "negative" else TreeWalks
        return kind(Walker(adjacency), self.config, digest)

    def forward(self, batch: Any, key: Key) -> Losses:
        """Return the loss of skip-gram on some walks."""
        if self.config.softmax == "negative":
            return super().forward(batch, key)
        cut = pieces(batch.walks, moved(batch.walks), self.config.window, self.dtype)
        path, side = self.contexts(batch.tree.path[cut.inner]), batch.tree.side[cut.inner].to(self.dtype)
        return Losses(hierarchical_softmax(self.encoder(cut.outer), path, side, cut.pairs), {})
