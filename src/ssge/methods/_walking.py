"""Base of the random-walk methods: walks, two embedding tables, and skip-gram with negative sampling."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from ssge.errors import InputError
from ssge.graph import Graph, GraphInfo
from ssge.methods._base import Method, MethodConfig, WeightDecay
from ssge.objectives import Losses
from ssge.objectives.skipgram import negative_sampling, pieces
from ssge.ops.adjacency import Adjacency
from ssge.ops.random import Key
from ssge.ops.walks import Walker, moved


class WalkingConfig(MethodConfig):
    """Settings that methods on random walks have in common."""

    epochs: int = Field(10, ge=0, description="Walks that start at each node.")
    lr: float = Field(5e-3, gt=0, description="Initial learning rate of Adam; it decays linearly to zero.")
    weight_decay: WeightDecay = 0.0
    width: int = Field(128, ge=1, description="Width of the embedding.")
    walk_length: int = Field(80, ge=2, description="Length of a walk in nodes.")
    window: int = Field(10, ge=1, description="Context window of the skip-gram.")
    batch: int = Field(128, ge=1, description="Walks per training step.")
    noise: int = Field(200, ge=1, description="Negative samples per step, shared by all its pairs.")
    negatives: float = Field(5.0, gt=0, description="Total weight of the negative samples relative to one pair.")


def vectors(count: int, width: int, generator: torch.Generator) -> nn.Embedding:
    """Return an embedding table with small uniform weights within +-1/(2 d), as in word2vec."""
    start = (torch.rand(count, width, generator=generator) - 0.5) / width
    return nn.Embedding.from_pretrained(start, freeze=False)  # type: ignore[no-untyped-call, no-any-return]


class Batch(NamedTuple):
    """Input of a step with negative sampling: some walks, one per row, and noise nodes."""

    walks: Tensor
    noise: Tensor


class Walks:
    """The walks of a graph, the training input instead of views.

    Parameters
    ----------
    walker
        Walks on the graph.
    config
        Length of the walks, walks per step, noise nodes per step.
    digest
        Fingerprint of the graph, 32 bytes.
    """

    def __init__(self, walker: Walker, config: WalkingConfig, digest: Tensor) -> None:
        self.walker, self.config, self.digest = walker, config, digest
        self.num_nodes = walker.popularity.numel()

    def walks(self, key: Key) -> tuple[Tensor, ...]:
        """Return one walk from each node, in random order, split into the walks of each step."""
        starts = key.fold_in("starts").permutation(self.num_nodes, self.digest.device)
        walks = self.walker(starts, self.config.walk_length, key.fold_in("walks").generator(self.digest.device))
        return torch.split(walks, self.config.batch)

    def batches(self, key: Key) -> Iterator[Any]:
        """Yield walks with noise nodes, sampled by their frequency in the walks to the power of 3/4."""
        walks = self.walks(key)
        counts = sum(torch.bincount(part[moved(part)], minlength=self.num_nodes) for part in walks)
        limits = torch.as_tensor(counts).double().pow(0.75).cumsum(0)
        generator = key.fold_in("noise").generator(limits.device)
        for part in walks:
            count = min(self.config.noise, self.num_nodes)
            draw = torch.rand(count, generator=generator, device=limits.device, dtype=torch.float64)
            noise = torch.searchsorted(limits, draw * limits[-1], right=True).clamp_max(self.num_nodes - 1)
            yield Batch(part, noise)


class Walking(Method):
    """A transductive method: it learns one vector per node, so it can embed only the training graph.

    The base class trains by skip-gram with negative sampling (`ssge.objectives.skipgram`).
    """

    family = "traditional"
    inputs = "A"
    inductive = False

    config: WalkingConfig
    encoder: nn.Embedding
    digest: Tensor

    def __init__(self, config: WalkingConfig, info: GraphInfo, generator: torch.Generator) -> None:
        super().__init__(config, info)
        self.encoder = vectors(info.num_nodes, config.width, generator)
        self.contexts = vectors(self.num_contexts, config.width, generator)
        self.register_buffer("digest", torch.zeros(32, dtype=torch.uint8))  # of the training graph, or zero

    @property
    def num_contexts(self) -> int:
        """Number of context vectors."""
        return self.info.num_nodes

    @classmethod
    def default_config(cls, info: GraphInfo) -> dict[str, Any]:
        """Use about twenty steps per epoch, so that Adam takes as many steps on large graphs as on small ones."""
        return {"batch": min(max(info.num_nodes // 20, 16), 1024)}

    def prepare(self, graph: Graph) -> Walks:
        """Return the walks of a graph; its features are not read."""
        if graph.num_nodes != self.info.num_nodes:
            raise InputError(
                f"{graph.name} has {graph.num_nodes} nodes, and the model has one vector for each of "
                f"{self.info.num_nodes}."
            )
        edges = Adjacency.of(graph.edges, graph.num_nodes, graph.weights, device=self.device, dtype=self.dtype)
        return self.walks(edges, _digest(edges))

    def walks(self, adjacency: Adjacency, digest: Tensor) -> Walks:
        """Return the walks along the edges of a graph."""
        return Walks(Walker(adjacency), self.config, digest)

    def lr_schedule(self, progress: float) -> float:
        """Decay the learning rate linearly to zero."""
        return 1 - progress

    def forward(self, batch: Any, key: Key) -> Losses:
        """Return the loss of skip-gram with negative sampling on some walks."""
        cut = pieces(batch.walks, moved(batch.walks), self.config.window, self.dtype)
        center, context, noise = self.encoder(cut.inner), self.contexts(cut.outer), self.contexts(batch.noise)
        return Losses(negative_sampling(center, context, cut.pairs, noise, self.config.negatives), {})

    def calibrate(self, prepared: Walks) -> Tensor:
        """Store the fingerprint of the graph, then calibrate as every method does."""
        self.digest.copy_(prepared.digest)
        return super().calibrate(prepared)

    def encode(self, prepared: Walks, nodes: Tensor | None = None) -> Tensor:
        """Return the vectors of all or some nodes; the graph must be the training graph."""
        if bool(self.digest.any()) and not torch.equal(self.digest, prepared.digest):
            raise InputError(
                f"{self.title} can embed only the graph that it was trained on, and this one has other edges; "
                "train on this graph."
            )
        return self.encoder.weight if nodes is None else self.encoder(nodes)


def _digest(adjacency: Adjacency) -> Tensor:
    """Return a fingerprint of the edges and their weights."""
    found = hashlib.sha256()
    for part in adjacency.pattern.incoming:
        found.update(part.cpu().numpy().tobytes())
    return torch.tensor(list(found.digest()), dtype=torch.uint8, device=adjacency.device)
