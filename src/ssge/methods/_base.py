"""The base class of all methods: class attributes, a configuration, and the functions that training calls."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError
from torch import Tensor, nn

from ssge.errors import InputError
from ssge.graph import Graph, GraphInfo
from ssge.objectives import Losses
from ssge.ops.adjacency import Normalization
from ssge.ops.random import Key
from ssge.registry import Registry
from ssge.views import View

METHODS: Registry[type[Method]] = Registry("method")

Rate: TypeAlias = Annotated[float, Field(ge=0, le=1)]
"""A probability in a configuration."""

# Settings of several methods: a configuration gives the default.
Epochs: TypeAlias = Annotated[
    int, Field(ge=0, description="Number of epochs. More is not better: it is a hyper-parameter, not a limit.")
]
LearningRate: TypeAlias = Annotated[float, Field(gt=0, description="Learning rate of Adam.")]
WeightDecay: TypeAlias = Annotated[float, Field(ge=0, description="L2 penalty, added to the gradient as in Adam.")]
Widths: TypeAlias = Annotated[
    tuple[PositiveInt, ...], Field(min_length=1, description="Width of each layer, the embedding last.")
]
EdgeDrop: TypeAlias = Annotated[Rate, Field(description="Probability of dropping an edge of a view.")]
FeatureMask: TypeAlias = Annotated[Rate, Field(description="Probability of masking a feature column of a view.")]
EdgeDrops: TypeAlias = Annotated[
    tuple[Rate, Rate], Field(description="Probability of dropping an edge, one for each view.")
]
FeatureMasks: TypeAlias = Annotated[
    tuple[Rate, Rate], Field(description="Probability of masking a feature column, one for each view.")
]
NormalizeFeatures: TypeAlias = Annotated[bool, Field(description="Divide each row of X by its L1 norm.")]


class BaseConfig(BaseModel):
    """Settings of every method; without more of them nothing is trained."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    epochs: int = Field(0, ge=0, le=0, description="Always 0: nothing is trained.")


class MethodConfig(BaseConfig):
    """Settings of every trained method."""

    epochs: Epochs = 100
    lr: LearningRate = 1e-3
    weight_decay: WeightDecay = 1e-5


class NodeBatchConfig(MethodConfig):
    """Settings of methods whose steps can take some of the nodes, with all their in-neighbors."""

    batch_nodes: PositiveInt | None = Field(
        None, description="Nodes per step (mini-batch), several times the width of the embedding; default: all nodes."
    )
    fanouts: tuple[PositiveInt, ...] | None = Field(
        None,
        min_length=1,
        description="With batch_nodes: sampled neighbors per node for each hop, as in 10 10; default: all neighbors.",
    )

    @field_validator("fanouts")
    @classmethod
    def _of_batches(cls, fanouts: tuple[int, ...] | None, given: ValidationInfo) -> tuple[int, ...] | None:
        if fanouts is not None and given.data.get("batch_nodes") is None:
            raise PydanticCustomError("fanouts", "must come with batch_nodes, the number of nodes per step")
        return fanouts


@dataclass(frozen=True)
class Prepared:
    """The clean view of a graph. Subclasses add what else a method needs. A step uses all of it."""

    view: View

    def batches(self, key: Key) -> Iterator[Any]:
        """Yield the batches of one epoch."""
        yield self


class Method(nn.Module, ABC):
    """An embedding method, built from its configuration and the sizes of a graph.

    A subclass sets the class attributes, builds its components in ``__init__(config, info, generator)`` and implements
    `forward`. Setting ``name`` registers it in `METHODS`. Everything else has a default:

    ============== ===================================================================================
    function       called
    ============== ===================================================================================
    default_config without a recipe, to choose hyper-parameters for the size of the graph
    dense_memory   before training, to reject n x n arrays that do not fit into memory
    prepare        once per graph, before training or embedding
    optimizer      once, before training
    lr_schedule    at the start of each epoch
    forward        in each step; in distributed training, each process has some rows of the batch
    after_step     after each step of the optimizer
    encode         at the end of training, and for each graph that the trained model embeds
    ============== ===================================================================================

    Attributes
    ----------
    name, title
        Identifier for commands and files, and the name as papers print it.
    config, Config
        The settings, and their class: the annotation of ``config`` in the subclass.
    family, inputs
        As in the tables of the paper, for example ``non-contrastive`` and ``A, X``.
    reference
        Publication.
    supervised
        Whether it learns from the labels of training nodes. Its own class predictions are then scored.
    trained
        Whether the method is trained. A training-free method has no parameters and 0 epochs.
    of_moments
        Whether the loss depends only on moments of columns. These are sums over nodes, so training can be distributed.
    Optimizer
        Class of the optimizer.
    inductive
        Whether a trained model can embed other graphs than the training graph.
    normalization
        Degrees that normalize the adjacency of a view; see `ssge.ops.adjacency.Adjacency`.
    bf16
        Whether a training step computes products in bfloat16, within the context `products`.
    scale, offset
        An embedding is ``scale * output + offset``. Training sets the scale so that the root mean square is 1.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    family: ClassVar[str]
    inputs: ClassVar[str] = "A, X"
    reference: ClassVar[str]
    supervised: ClassVar[bool] = False
    trained: ClassVar[bool] = True
    of_moments: bool = False
    inductive: ClassVar[bool] = True
    normalization: Normalization = "out-in"
    offset: float = 0.0
    bf16: bool = False
    Config: ClassVar[type[BaseConfig]]
    Optimizer: ClassVar[type[torch.optim.Adam]] = torch.optim.Adam

    encoder: nn.Module
    scale: Tensor

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.Config = inspect.get_annotations(cls, eval_str=True).get("config", getattr(cls, "Config", BaseConfig))
        if "name" in vars(cls):
            METHODS.add(cls.name, cls)

    def __init__(self, config: BaseConfig, info: GraphInfo) -> None:
        super().__init__()
        self.config = config
        self.info = info
        self.register_buffer("scale", torch.ones(()))

    @property
    def device(self) -> torch.device:
        """Device of parameters and buffers."""
        return self.scale.device

    @property
    def dtype(self) -> torch.dtype:
        """Precision of parameters and buffers."""
        return self.scale.dtype

    @property
    def num_parameters(self) -> int:
        """Number of trainable parameters."""
        return sum(parameter.numel() for parameter in self.parameters() if parameter.requires_grad)

    def products(self) -> torch.autocast:
        """Return the autocast context of `forward` in training, which sets the precision of products."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16)

    @classmethod
    def default_config(cls, info: GraphInfo) -> dict[str, Any]:
        """Return default settings for a graph of this size."""
        return {}

    @classmethod
    def dense_memory(cls, config: Any, info: GraphInfo, itemsize: int) -> int:
        """Return the size in bytes of all arrays that grow with n^2, for numbers of ``itemsize`` bytes."""
        return 0

    def prepare(self, graph: Graph) -> Any:
        """Move a graph to the method's device and return what `forward` and `encode` take: by default the clean view.

        Training makes mini-batches of a `View`. Any other object must have ``batches(key)``, which yields the batches
        of one epoch.
        """
        if graph.num_features != self.info.num_features:
            raise InputError(
                f"{graph.name} has {graph.num_features} features, the model was built for {self.info.num_features}."
            )
        view = View.of(graph, self.normalization, self.device, self.dtype)
        if getattr(self.config, "normalize_features", False):
            view = view._replace(features=view.features.normalize_rows())
        return view

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer of the trained parameters."""
        assert isinstance(self.config, MethodConfig)
        trained = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return self.Optimizer(trained, lr=self.config.lr, weight_decay=self.config.weight_decay, fused=True)

    def lr_schedule(self, progress: float) -> float:
        """Return the factor of the learning rate at ``progress``, from 0 to 1 over the epochs."""
        return 1.0

    @abstractmethod
    def forward(self, batch: Any, key: Key) -> Losses:
        """Return the losses of one training step on a batch, by default the clean view of a graph."""

    def after_step(self, progress: float) -> None:
        """Update state that has no gradient, for example a moving average."""

    def encode(self, prepared: Any, nodes: Tensor | None = None) -> Tensor:
        """Return the encoder's raw output, n x d, or the rows of some nodes."""
        view: View = prepared.view if isinstance(prepared, Prepared) else prepared
        view = view if nodes is None else view.k_hop_subgraph(nodes, self.encoder.hops)  # type: ignore[arg-type]
        return view.at_seeds(self.encoder.embed(view))  # type: ignore[operator]

    @torch.no_grad()
    def calibrate(self, prepared: Any) -> Tensor:
        """Set the scale so that the embedding of a prepared graph has root mean square 1, and return that embedding.

        The raw output can be tiny, which misleads tools that assume unit scale, such as the default penalty of a
        classifier. One common factor changes no angle, no ratio of distances and no nearest neighbor.
        """
        self.eval()
        output = self.encode(prepared)
        size = output.square().mean().sqrt()
        self.scale.copy_(torch.where(size > 0, 1 / size, 1.0))
        return output * self.scale + self.offset

    @torch.no_grad()
    def embed(self, graph: Graph, nodes: NDArray[np.int64] | None = None) -> Tensor:
        """Return the embedding of a graph with the same features, n x d, or the rows of some nodes."""
        self.eval()
        chosen = None if nodes is None else torch.from_numpy(nodes).to(self.device)
        return self.encode(self.prepare(graph), chosen) * self.scale + self.offset
