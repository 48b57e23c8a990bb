"""What methods that learn from random walks share: two tables of vectors, walks, and skip-gram with negatives."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from ssge.errors import InputError
from ssge.graph import Graph, GraphInfo
from ssge.methods._base import LOGISTIC, Method, MethodConfig
from ssge.objectives import Losses
from ssge.objectives.skipgram import negative_sampling, pieces
from ssge.ops.adjacency import Adjacency
from ssge.ops.features import Features
from ssge.ops.walks import Walker, moved
from ssge.views import View

_ADAM = 4
"""Multiply-adds that take as long as Adam on one number."""


class WalkingConfig(MethodConfig):
    """Settings that methods on random walks have in common."""

    epochs: int = Field(10, ge=0, description="Walks that start at each node.")
    lr: float = Field(5e-3, gt=0, description="Adam's learning rate, which falls in a line to nothing.")
    weight_decay: float = Field(0.0, ge=0, description="L2 penalty added to the gradient, as Adam has it.")
    width: int = Field(128, ge=1, description="Width of the embedding.")
    walk_length: int = Field(80, ge=2, description="Nodes of a walk.")
    window: int = Field(10, ge=1, description="How far apart in a walk a node and its context are at most.")
    batch: int = Field(128, ge=1, description="Walks that a step of training takes.")
    noise: int = Field(200, ge=1, description="Noise nodes of a step, which all its pairs share (negative sampling).")
    negatives: float = Field(5.0, gt=0, description="What the noise nodes together weigh beside one pair.")


class Vectors(nn.Module):
    """A table with one vector for each of some things, at first uniform and small: in +-1/(2 d), as in word2vec."""

    def __init__(self, count: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter((torch.rand(count, width, generator=generator) - 0.5) / width)

    def forward(self, index: Tensor) -> Tensor:
        """Return the vectors of some things."""
        return functional.embedding(index, self.weight)


class Batch(NamedTuple):
    """What a step with negative sampling takes: some walks, one a row, and noise nodes."""

    walks: Tensor
    noise: Tensor


class Walking(Method):
    """A method that learns one vector per node, and so can embed only the graph that it was trained on.

    The base class trains by skip-gram with negative sampling; the formula stands at `ssge.objectives.skipgram`.
    """

    family: ClassVar[str] = "traditional"
    inputs: ClassVar[str] = "A"
    modes: ClassVar[tuple[str, ...]] = ("walks",)
    inductive: ClassVar[bool] = False

    config: WalkingConfig
    encoder: Vectors
    digest: Tensor

    def __init__(self, config: WalkingConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        self.encoder = Vectors(info.num_nodes, config.width, generator)
        self.contexts = Vectors(self.num_contexts, config.width, generator)
        self.register_buffer("digest", torch.zeros(32, dtype=torch.uint8))  # of the graph trained on; zero: of none

    @property
    def num_contexts(self) -> int:
        """Number of vectors that those of the nodes are multiplied with: as contexts, nodes have others."""
        return self.info.num_nodes

    @classmethod
    def suited(cls, info: GraphInfo) -> dict[str, Any]:
        """Let an epoch have about twenty steps, so that Adam takes as many on a large graph as on a small one."""
        return {"batch": min(max(info.num_nodes // 20, 16), 1024)}

    @classmethod
    def further_memory(cls, config: Any, info: GraphInfo, number: int) -> int:
        """Count two tables with gradient and Adam's state, the walks of an epoch, and a walker."""
        tables = 4 * number * 2 * info.num_nodes * int(config.width)
        walks = 2 * 8 * info.num_nodes * int(config.walk_length)
        return tables + walks + 60 * (info.num_nodes + info.num_edges) + cls.step_memory(config, info, number)

    @classmethod
    def step_memory(cls, config: Any, info: GraphInfo, number: int) -> int:
        """Count what a step takes: vectors at inner and outer places, scores, and their gradients."""
        places = int(config.batch * (config.walk_length + 2 * config.window))
        return number * places * int(6 * config.width + 4 * (4 * config.window + config.noise))

    @classmethod
    def step_cost(cls, config: Any, info: GraphInfo) -> float:
        """Count the scores of a walk's places, forth and back, and Adam on both tables, once a step."""
        adam = info.num_nodes / config.batch * 2 * config.width * _ADAM
        return float(config.walk_length * cls.scores(config, info) * (3 * config.width + LOGISTIC) + adam)

    @classmethod
    def scores(cls, config: Any, info: GraphInfo) -> int:
        """Count the products of two vectors for each place of a walk: with outer places and noise nodes."""
        return int(4 * config.window + config.noise)

    def prepare(self, graph: Graph) -> View:
        """Bring the edges of a graph to the method's device; its features stay where they are, nobody reads them."""
        if graph.num_nodes != self.info.num_nodes:
            raise InputError(
                f"{graph.name} is another graph: it has {graph.num_nodes} nodes, and the model has one vector for each "
                f"of {self.info.num_nodes}."
            )
        device, dtype = self.weight.device, self.weight.dtype
        adjacency = Adjacency.of(graph.edges, graph.num_nodes, graph.weights, device=device, dtype=dtype)
        return View(Features(self.weight.new_empty(graph.num_nodes, 0)), adjacency)

    def pace(self, progress: float) -> float:
        """Let the learning rate fall in a line."""
        return 1 - progress

    def walker(self, view: View) -> Walker:
        """Return what walks on the graph."""
        return Walker(view.adjacency)

    def walks(self, view: View, generator: torch.Generator) -> Iterable[Tensor]:
        """Return one walk from each node, in random order, as many at a time as a step takes."""
        self.digest.copy_(_digest(view))
        starts = torch.randperm(view.num_nodes, generator=generator, device=self.weight.device)
        return torch.split(self.walker(view)(starts, self.config.walk_length, generator), self.config.batch)

    def batches(self, view: View, generator: torch.Generator) -> Iterable[Any]:
        """Yield one walk from each node, and noise nodes as frequent as the epoch's nodes to the power of 3/4."""
        walks = list(self.walks(view, generator))
        counts = sum(torch.bincount(part[moved(part)], minlength=view.num_nodes) for part in walks)
        limits = torch.as_tensor(counts).double().pow(0.75).cumsum(0)
        for part in walks:
            count = min(self.config.noise, view.num_nodes)
            draw = torch.rand(count, generator=generator, device=limits.device, dtype=torch.float64)
            noise = torch.searchsorted(limits, draw * limits[-1], right=True).clamp_max(view.num_nodes - 1)
            yield Batch(part, noise)

    def forward(self, batch: Any, generator: torch.Generator) -> Losses:
        """Return the loss of skip-gram with negative sampling on some walks."""
        cut = pieces(batch.walks, moved(batch.walks), self.config.window, self.weight.dtype)
        center, context, noise = self.encoder(cut.inner), self.contexts(cut.outer), self.contexts(batch.noise)
        return Losses(negative_sampling(center, context, cut.pairs, noise, self.config.negatives), {})

    def encode(self, view: View, chunk: int) -> Tensor:
        """Return the table, if it is of this graph."""
        if bool(self.digest.any()) and not torch.equal(self.digest, _digest(view)):
            raise InputError(
                f"The graph is another graph than the one it was trained on, and {self.title} has vectors only for the "
                "nodes of that one; train on this graph."
            )
        return self.encoder.weight

    @torch.no_grad()
    def embed(self, graph: Graph, chunk: int | None = None, nodes: NDArray[np.int64] | None = None) -> Tensor:
        """Return the vectors of all nodes, n x d, or of some, times `scale`; the graph must be that of the training."""
        vectors = self.encode(self.prepare(graph), graph.num_nodes)
        return (vectors if nodes is None else vectors[torch.from_numpy(nodes).to(vectors.device)]) * self.scale


def _digest(view: View) -> Tensor:
    """Return a fingerprint of the edges and their weights."""
    found = hashlib.sha256()
    for part in view.adjacency.pattern.incoming:
        found.update(part.cpu().numpy().tobytes())
    return torch.tensor(list(found.digest()), dtype=torch.uint8, device=view.adjacency.device)
