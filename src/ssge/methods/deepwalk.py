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
"""What a node counts at least in the Huffman tree, as a share of all."""


class DeepWalkConfig(WalkingConfig):
    """Settings of DeepWalk; the names in brackets are the paper's."""

    epochs: int = Field(10, ge=0, description="Walks that start at each node [gamma].")
    lr: float = Field(2.5e-3, gt=0, description="Adam's learning rate, which falls in a line to nothing.")
    walk_length: int = Field(40, ge=2, description="Nodes of a walk [t].")
    window: int = Field(10, ge=1, description="How far apart in a walk a node and its context are at most [w].")
    softmax: Literal["hierarchical", "negative"] = Field(
        "hierarchical", description="hierarchical: over a Huffman tree, as published; negative: negative sampling."
    )


class Batch(NamedTuple):
    """What a step with the hierarchical softmax takes: some walks, one per row, and the tree."""

    walks: Tensor
    tree: Tree


class TreeWalks(Walks):
    """Walks, and the Huffman tree over the nodes of the graph."""

    def __init__(self, walker: Walker, config: WalkingConfig, digest: Tensor) -> None:
        super().__init__(walker, config, digest)
        self.tree = huffman(walker.popularity.clamp_min(walker.popularity.sum() * _RAREST))

    def batches(self, key: Key) -> Iterator[Batch]:
        """Yield one walk from each node, some at a time."""
        return (Batch(walks, self.tree) for walks in self.walks(key))


class DeepWalk(Walking):
    """Uniform random walks and skip-gram with a hierarchical softmax, on the graph's edges alone.

    The formula is at `ssge.objectives.skipgram`, the walks at `ssge.ops.walks.Walker`; edge weights, if there are any,
    decide where they go.

    Random: the initial vectors, the order of the starts, and the walks. Cost of an epoch, with n walks of t nodes, a
    window w and ways of at most D inner nodes: O(n t w D d) time; O((n + m) + n t + n d) memory. D is near log2(m) on
    graphs without weights or isolated nodes, and some 44, 1.44 log2(2^30 + n), at most on any: no node counts for less
    in the tree than 2^-30 of the whole, since weights of all magnitudes would else make a chain of it.

    Differences from the released code: the Huffman tree is made of the nodes' degrees, to which their frequencies in
    long walks tend, and so is known before the first walk; every pair within the window once, where word2vec draws a
    smaller window for each center; Adam on many walks at once instead of gradient descent pair by pair; inner nodes
    begin with small vectors instead of zero. The released code starts the walk of node 0 anywhere, a slip that
    moves one walk of n and is not reproduced.
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
        """Return the walks along the edges of a graph, with the tree if there is to be one."""
        kind = Walks if self.config.softmax == "negative" else TreeWalks
        return kind(Walker(adjacency), self.config, digest)

    def forward(self, batch: Any, key: Key) -> Losses:
        """Return the loss of skip-gram on some walks."""
        if self.config.softmax == "negative":
            return super().forward(batch, key)
        cut = pieces(batch.walks, moved(batch.walks), self.config.window, self.dtype)
        path, side = self.contexts(batch.tree.path[cut.inner]), batch.tree.side[cut.inner].to(self.dtype)
        return Losses(hierarchical_softmax(self.encoder(cut.outer), path, side, cut.pairs), {})
