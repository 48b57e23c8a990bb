"""What every method is: facts, a configuration, and four functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from ssge.errors import InputError
from ssge.graph import Graph, GraphInfo
from ssge.objectives import Losses
from ssge.ops.adjacency import Normalization
from ssge.registry import Registry
from ssge.views import View

METHODS: Registry[type[Method]] = Registry("method")

CHUNK = 1 << 16
"""Nodes that are encoded at once when a graph is embedded."""

LOGISTIC = 300
"""Multiply-adds that take as long as the logistic loss of one score, forth and back: for `Method.step_cost`."""


class MethodConfig(BaseModel):
    """Settings that every trained method has."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    epochs: int = Field(100, ge=0, description="Passes over the graph; part of the method, not 'until convergence'.")
    lr: float = Field(1e-3, gt=0, description="Adam's learning rate.")
    weight_decay: float = Field(1e-5, ge=0, description="L2 penalty added to the gradient, as Adam has it.")


class Method(nn.Module, ABC):
    """A way to learn embeddings, built from its configuration and the sizes of a graph.

    Subclasses give the class facts, build their parts in ``__init__``, and write `forward`; the rest has defaults.
    Training goes through `forward` because distributed training synchronizes only what goes through it.

    Attributes
    ----------
    name, title
        Identifier for commands and files, and the name as papers print it.
    family, inputs
        As in the tables of the paper: for example ``non-contrastive``, ``A, X``.
    reference
        Where the method was published.
    modes
        What a step of training can take: ``full`` (the whole graph), ``nodes`` (some nodes and those they hear from) or
        ``walks`` (pieces of random walks).
    supervised
        Whether it learns from the labels of training nodes; it is then scored by its own class scores.
    inductive
        Whether a trained model embeds other graphs than the one it was trained on.
    normalization
        Degrees by which views are normalized, `ssge.ops.adjacency.Adjacency`: as the library of the released code does.
    offset
        Added to every number of an embedding.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    family: ClassVar[str]
    inputs: ClassVar[str]
    reference: ClassVar[str]
    modes: ClassVar[tuple[str, ...]] = ("full",)
    supervised: ClassVar[bool] = False
    inductive: ClassVar[bool] = True
    normalization: Normalization = "out-in"
    offset: float = 0.0
    Config: ClassVar[type[MethodConfig]]

    encoder: nn.Module
    scale: Tensor

    def __init__(self, config: MethodConfig, info: GraphInfo) -> None:
        super().__init__()
        self.config = config
        self.info = info
        self.register_buffer("scale", torch.ones(()))

    @property
    def weight(self) -> Tensor:
        """Any parameter: it tells device and dtype."""
        return next(self.parameters())

    @classmethod
    def suited(cls, info: GraphInfo) -> dict[str, Any]:
        """Return settings that suit a graph of some size better than the defaults do, where no recipe is at hand."""
        return {}

    @classmethod
    def sizes(cls, graph: Graph) -> GraphInfo:
        """Return what the method is told of a graph to be built for it."""
        return graph.info

    @classmethod
    def further_memory(cls, config: Any, info: GraphInfo, number: int) -> int:
        """Return the bytes that training takes beside encoder and views, in numbers of so many bytes each.

        Above all arrays of n x n: a training that would not fit is refused with this figure before it begins.
        """
        return 0

    @classmethod
    def step_cost(cls, config: Any, info: GraphInfo) -> float:
        """Return, roughly, the multiply-adds of one epoch for each node of a graph of this size.

        Estimates of time take small graphs of as many as they can afford, and continue in proportion to n times this:
        it must grow with n where an epoch compares all nodes with each other.
        """
        widths = (min(info.num_features, 512), *getattr(config, "widths", ()))
        return float(10 * sum(a * b for a, b in pairwise(widths)) + 10 * widths[-1] ** 2)

    @classmethod
    def require_inductive(cls, otherwise: str) -> None:
        """Refuse what takes a method that embeds other graphs than its own; ``otherwise`` says what is left to do."""
        if not cls.inductive:
            raise InputError(f"{cls.title} has vectors only for the nodes of the graph it was trained on: {otherwise}.")

    def begin_with(self, other: Method) -> None:
        """Take over the weights of a trained model of the same method and the same widths."""
        self.require_inductive("it cannot start from another run; train anew")
        own, theirs = self.state_dict(), other.state_dict()
        for name, tensor in own.items():
            if name not in theirs or theirs[name].shape != tensor.shape:
                found = tuple(theirs[name].shape) if name in theirs else "none"
                raise InputError(
                    f"The model to start from does not fit: {name} must have shape {tuple(tensor.shape)}; "
                    f"received {found}."
                )
        self.load_state_dict(theirs)

    def prepare(self, graph: Graph) -> View:
        """Bring a graph to the method's device, once before training or embedding."""
        if graph.num_features != self.info.num_features:
            raise InputError(
                f"{graph.name} has {graph.num_features} features, the model was built for {self.info.num_features}."
            )
        return View.of(graph, self.normalization, self.weight.device, self.weight.dtype)

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer of what is trained; its rates are multiplied by `pace`."""
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        rate, decay = self.config.lr, self.config.weight_decay
        return torch.optim.Adam(trained, lr=rate, weight_decay=decay, fused=True)

    def pace(self, progress: float) -> float:
        """Return the factor of the learning rate; ``progress`` goes from 0 to 1."""
        return 1.0

    def batches(self, view: View, generator: torch.Generator) -> Iterable[Any]:
        """Yield what the steps of one epoch are given: the whole graph, once."""
        yield view

    @abstractmethod
    def forward(self, batch: Any, generator: torch.Generator) -> Losses:
        """Return the losses of one training step, on a batch: by default the clean view of a graph."""

    def after_step(self, progress: float) -> None:
        """Do what follows the optimizer's step, for example a moving average; ``progress`` goes from 0 to 1."""

    def encode(self, view: View, chunk: int) -> Tensor:
        """Return the encoder's raw output on a view, n x d, in chunks of nodes."""
        output: Tensor = self.encoder.embed(view, chunk)  # type: ignore[operator]
        return output

    @torch.no_grad()
    def calibrate(self, graph: Graph) -> None:
        """Choose the one factor that gives the embeddings of ``graph`` unit root mean square."""
        self.eval()
        size = self.encode(self.prepare(graph), _chunk(graph)).square().mean().sqrt()
        self.scale.copy_(torch.where(size > 0, 1 / size, 1.0))

    @torch.no_grad()
    def embed(self, graph: Graph, chunk: int | None = None, nodes: NDArray[np.int64] | None = None) -> Tensor:
        """Return the embeddings of a graph with the same features, n x d, or only those of some nodes.

        They are the encoder's output on the clean graph times one number, `scale`, fixed after training. The output
        itself can be tiny, which misleads whatever assumes unit scale (a classifier's default penalty, a
        tolerance); one factor repairs that and changes no angle, ratio of distances or neighbor. `offset` is added,
        which is 0 unless a method has a setting for it.
        """
        self.eval()
        view, chunk = self.prepare(graph), chunk or _chunk(graph)
        if nodes is None:
            return self.encode(view, chunk) * self.scale + self.offset
        part, places = view.around(torch.from_numpy(nodes).to(self.weight.device), int(self.encoder.hops))  # type: ignore[arg-type]
        return self.encode(part, chunk)[places] * self.scale + self.offset


def _chunk(graph: Graph) -> int:
    """Return how many nodes to encode at once: all of a small graph, a bounded block of a large one."""
    return min(graph.num_nodes, CHUNK)
