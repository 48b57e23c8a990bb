"""Node2Vec: skip-gram with negative sampling on biased second-order random walks."""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from ssge.methods._walking import Walking, WalkingConfig, Walks
from ssge.ops.adjacency import Adjacency
from ssge.ops.walks import Walker


class Node2VecConfig(WalkingConfig):
    """Settings of Node2Vec; p and q are the paper's names."""

    p: float = Field(
        1.0, gt=0, description="Return parameter [p]: larger values make a walk return to its previous node less often."
    )
    q: float = Field(
        1.0, gt=0, description="In-out parameter [q]: larger values keep a walk close to its previous node."
    )


class Node2Vec(Walking):
    """Second-order random walks and skip-gram with negative sampling, on edges only.

    See `ssge.ops.walks.Walker` for the walks and `ssge.objectives.skipgram.negative_sampling` for the formula.

    Random: the initial vectors, the order of the starts, the walks, and the noise nodes. Cost of an epoch, with n walks
    of t nodes, a window w and K noise nodes: O(n t (w + K) d) time; O((n + m) + n t + n d) memory.

    Differences from the released code: rejection sampling instead of alias tables for each pair of edges, which take
    O(sum of squared degrees) memory; noise nodes shared by a step instead of five per pair, with the same total weight;
    every pair within the window counts once, whereas word2vec draws a smaller window for each center; Adam instead of
    plain gradient descent; noise that equals a pair's own context is not removed. In a directed graph x is near t if
    there is an edge from t to x, as in the paper.
    """

    name = "node2vec"
    title = "Node2Vec"
    reference = "Grover and Leskovec, node2vec: Scalable Feature Learning for Networks, 2016"

    config: Node2VecConfig

    def walks(self, adjacency: Adjacency, digest: Tensor) -> Walks:
        """Return the walks along the edges of a graph, with p and q."""
        return Walks(Walker(adjacency, self.config.p, self.config.q), self.config, digest)
