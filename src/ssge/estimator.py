"""SSGE in the manner of scikit-learn: ``fit``, ``transform``, ``embedding_``."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ssge.errors import InputError
from ssge.files import atomic
from ssge.foreign import is_graph
from ssge.graph import Graph, GraphInfo
from ssge.io.embeddings import as_table, find_ids, read_embedding, write_embedding
from ssge.io.history import read_history
from ssge.methods import METHODS, Method
from ssge.methods.ssge import SSGEConfig
from ssge.objectives.gaussian import EIGENVALUE_FLOOR
from ssge.schema import FeatureSchema
from ssge.training.checkpoint import build, load_model, save_model
from ssge.training.device import choose_device
from ssge.training.progress import ProgressBar
from ssge.training.trainer import train

log = logging.getLogger(__name__)


class SSGE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Self-supervised Gaussian embedding of the nodes of a graph.

    Parameters
    ----------
    n_components
        Width of the embedding, d; None lets it follow the graph (see `ssge.methods.ssge.SSGE.suited`).
    hidden
        Widths of the layers before it; ``()`` makes a one-layer encoder, None one layer that follows the graph.
    encoder
        ``gcn``, or ``mlp`` for features alone with batch normalization.
    edge_drop, feature_mask
        Probabilities of dropping an edge and of masking a feature column in each view.
    uniformity_weight
        Lambda: weight of the Wasserstein distance to the isotropic Gaussian against alignment of the views; None lets
        it follow the graph.
    epochs
        Passes over the graph; trained to convergence the objective gives worse embeddings. None lets them follow the
        graph.
    lr, weight_decay
        Of Adam.
    activation, offset, normalization, eigenvalue_floor, floor_mode
        See `ssge.methods.ssge.SSGEConfig`.
    batch_nodes
        Nodes of a step of training, several times ``n_components``; None takes them all. Bounds the memory of training
        on a large graph, and can be faster.
    warm_start
        Begin each `fit` with the weights of the one before, as for a graph that has grown.
    n_neighbors
        When a matrix is given without ``adjacency``: neighbors of each row in the graph made of the rows.
    device, dtype
        Where and in which precision to train.
    random_state
        Seed of the weights and of the views.
    verbose
        Show progress on standard error.

    Attributes
    ----------
    embedding_
        n x d array, one row a training node: the encoder's output on the whole graph, scaled as one to unit
        root mean square, with ``offset`` added.
    node_ids_
        The ids of these nodes.
    n_features_in_, feature_names_in_
        Number of feature columns, and their names if X was a data frame.
    history_
        One dict per epoch: total, alignment, uniformity, effective_rank, seconds.
    schema_
        How the feature columns were made, if the graph came from `ssge.read_graph`: give the model to that function as
        ``like`` to read another graph in the same way. None otherwise.
    encoder_
        The trained encoder, a plain ``torch.nn.Module``.

    Examples
    --------
    >>> import ssge
    >>> graph = ssge.load_dataset("karate")
    >>> model = ssge.SSGE(n_components=8, hidden=(16,), epochs=5, random_state=0).fit(graph)
    >>> model.embedding_.shape
    (34, 8)
    """

    _method: Method

    def __init__(
        self,
        n_components: int | None = None,
        *,
        hidden: Sequence[int] | None = None,
        encoder: Literal["gcn", "mlp"] = "gcn",
        edge_drop: float = 0.3,
        feature_mask: float = 0.2,
        uniformity_weight: float | None = None,
        epochs: int | None = None,
        lr: float = 1e-3,
        weight_decay: float = 1e-5,
        activation: Literal["elu", "relu", "none"] = "elu",
        offset: float = 0.0,
        normalization: Literal["out-in", "in"] = "out-in",
        eigenvalue_floor: float = EIGENVALUE_FLOOR,
        floor_mode: Literal["tangent", "clamp"] = "tangent",
        batch_nodes: int | None = None,
        warm_start: bool = False,
        n_neighbors: int = 10,
        device: str = "cpu",
        dtype: Literal["float32", "float64"] = "float32",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.hidden = hidden
        self.encoder = encoder
        self.edge_drop = edge_drop
        self.feature_mask = feature_mask
        self.uniformity_weight = uniformity_weight
        self.epochs = epochs
        self.lr = lr
        self.weight_decay = weight_decay
        self.activation = activation
        self.offset = offset
        self.normalization = normalization
        self.eigenvalue_floor = eigenvalue_floor
        self.floor_mode = floor_mode
        self.batch_nodes = batch_nodes
        self.warm_start = warm_start
        self.n_neighbors = n_neighbors
        self.device = device
        self.dtype = dtype
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, adjacency: Any = None) -> Self:
        """Learn an embedding of a graph.

        Parameters
        ----------
        X
            A `Graph`, a PyTorch Geometric, DGL or NetworkX graph with features, or a matrix of node features.
        y
            Ignored: no label is ever used.
        adjacency
            n x n matrix of edges, when X is a matrix of features. Without it the graph of nearest neighbors
            of the rows of X is used.
        """
        self._config(GraphInfo(2, 0, 1))  # so that a mistake is told before any work
        graph = self._graph(X, adjacency, reset=True).without_labels()
        if self._warm:
            self._check_schema(graph)
        config = self._config(graph.info)
        if graph.num_nodes < 2:
            raise InputError(f"X must have at least 2 nodes to learn from; received {graph.num_nodes}.")
        seed = int(check_random_state(self.random_state).randint(2**31))
        method = build("ssge", config, graph.info, seed, getattr(torch, self.dtype), choose_device(self.device))
        if self._warm:
            method.begin_with(self._method)
        with ProgressBar(method.config.epochs, f"SSGE on {graph.name}") if self.verbose else nullcontext() as bar:
            trained = train(method, graph, seed=seed, observers=[bar] if bar else [])
        self.embedding_ = method.embed(graph).cpu().numpy()
        self._method = method
        self.history_ = trained.history
        self.node_ids_ = graph.node_ids
        self.schema_ = graph.schema
        return self

    def fit_transform(self, X: Any, y: Any = None, *, adjacency: Any = None) -> NDArray[np.floating[Any]]:
        """Learn an embedding and return it, one row per node."""
        embedding: NDArray[np.floating[Any]] = self.fit(X, y, adjacency=adjacency).embedding_
        return embedding

    def transform(
        self, X: Any, *, adjacency: Any = None, nodes: Sequence[Any] | None = None
    ) -> NDArray[np.floating[Any]]:
        """Embed the nodes of another graph with the same features, without training.

        Parameters
        ----------
        X, adjacency
            As in `fit`; as many feature columns. A matrix without ``adjacency`` gets the graph of its own
            nearest neighbors.
        nodes
            Ids of the nodes to embed, at the cost of their neighborhood alone; rows are in this order. Default: all.
        """
        check_is_fitted(self)
        graph = self._graph(X, adjacency, reset=False)
        self._check_schema(graph)
        rows = None if nodes is None else _positions(graph, nodes)
        embedding: NDArray[np.floating[Any]] = self._method.embed(graph, nodes=rows).cpu().numpy()
        return embedding

    def to_frame(self) -> Any:
        """Return the embedding as a table with the columns id, e000, e001, ...

        A pandas data frame if pandas is there, else a pyarrow table.
        """
        check_is_fitted(self)
        table = as_table(self.node_ids_, self.embedding_)
        try:
            return table.to_pandas()
        except ImportError:
            return table

    @property
    def encoder_(self) -> torch.nn.Module:
        """The trained encoder."""
        check_is_fitted(self)
        return self._method.encoder

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator into a folder: safetensors, JSON and Parquet, no pickle.

        Node ids that are neither integers nor strings are written as their ``str``, and a ``random_state``
        that is a generator is not written.
        """
        check_is_fitted(self)
        folder = Path(path)
        if folder.exists() and not folder.is_dir():
            raise InputError(f"path must be a folder, new or old; {folder} is a file.")
        if (folder / "record.json").exists():
            raise InputError(f"{folder} holds a run of the command line (record.json); choose another folder.")
        save_model(folder / "model.safetensors", self._method)
        write_embedding(folder / "embedding.parquet", self.node_ids_, self.embedding_)
        if self.schema_ is not None:
            self.schema_.write(folder / "features.json")
        else:  # of an estimator saved here before
            (folder / "features.json").unlink(missing_ok=True)
        seed = self.random_state if isinstance(self.random_state, Integral) else None
        state = {
            "params": self.get_params() | {"hidden": self.hidden and list(self.hidden), "random_state": seed},
            "history": self.history_,
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
        }
        with atomic(folder / "estimator.json") as temporary:  # last: without it the folder is no estimator
            temporary.write_text(json.dumps(state, indent=1, default=np.generic.item) + "\n", "utf-8")

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu") -> Self:
        """Read what `save` or the command ``ssge fit`` wrote into a folder, and bring it to a device."""
        folder = Path(path)
        file = folder / "estimator.json"
        if not folder.is_dir():
            raise InputError(f"No such folder: {folder}.")
        method, facts = load_model(folder / "model.safetensors", choose_device(device))
        if method.name != "ssge":
            raise InputError(f"{folder} holds a model of {method.title}; `ssge embed` applies it.")
        if file.is_file():
            try:
                state = json.loads(file.read_text("utf-8"))
                params, history, names = state["params"], state["history"], state["feature_names"]
                estimator = cls(**(params | {"hidden": _widths(params["hidden"]), "device": device}))
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{file} is not an estimator of ssge: {type(error).__name__} {error}.") from None
        else:
            estimator, names = cls._of_run(facts, device), []
            lines = folder / "history.jsonl"
            history = read_history(lines) if lines.is_file() else []
        estimator._method = method
        estimator.history_ = history
        estimator.schema_ = FeatureSchema.read(folder / "features.json")
        estimator.node_ids_, estimator.embedding_ = read_embedding(folder / "embedding.parquet")
        estimator.n_features_in_ = method.info.num_features
        if names:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return estimator

    @classmethod
    def _of_run(cls, facts: dict[str, Any], device: str) -> Self:
        """Return the estimator that would make a run of the command line."""
        *hidden, width = facts["config"]["widths"]
        shared = {key: value for key, value in facts["config"].items() if key in cls._get_param_names()}
        return cls(width, **(shared | {"hidden": tuple(hidden), "random_state": facts.get("seed"), "device": device}))

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "embedding_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # the embedding has the dtype that was asked for
        return tags

    @property
    def _warm(self) -> bool:
        return self.warm_start and hasattr(self, "_method")

    def _check_schema(self, graph: Graph) -> None:
        """Refuse features that were made in another way than those of the last fit, even if they are as many."""
        mine, theirs = self.schema_, graph.schema
        if mine is None or theirs is None or (mine.columns, mine.names) == (theirs.columns, theirs.names):
            return
        raise InputError(
            f"The features of {graph.name} were made in another way than those the model has learned from: "
            "read it with ssge.read_graph(..., like=model)."
        )

    def _config(self, info: GraphInfo) -> dict[str, Any]:
        """Return the settings of the method for a graph of this size, checked, under the names they have there."""
        for name, value in {"n_components": self.n_components, "n_neighbors": self.n_neighbors}.items():
            if value is not None and (not isinstance(value, Integral) or value < 1):
                raise InputError(f"{name} must be an integer of 1 or more; received {value!r}.")
        try:
            hidden = None if self.hidden is None else tuple(int(width) for width in self.hidden)
        except (TypeError, ValueError):
            hidden = (0,)
        if hidden and min(hidden) < 1:
            raise InputError(f"hidden must be a sequence of widths of 1 or more; received {self.hidden!r}.")
        if self.dtype not in ("float32", "float64"):
            raise InputError(f"dtype must be 'float32' or 'float64'; received {self.dtype!r}.")
        config = {key: value for key, value in self.get_params().items() if key in SSGEConfig.model_fields}
        suited = self._method.config.model_dump() if self._warm else METHODS["ssge"].suited(info)
        *before, last = suited["widths"]
        config["widths"] = (*(before if hidden is None else hidden), int(self.n_components or last))
        for name in ("uniformity_weight", "epochs"):
            config[name] = suited[name] if config[name] is None else config[name]
        try:
            SSGEConfig(**config)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"{first['loc'][0]}: {first['msg']}; received {first['input']!r}.") from None
        return config

    def _graph(self, X: Any, adjacency: Any, reset: bool) -> Graph:
        """Make a graph of what was given; matrices go through scikit-learn's own check first."""
        dtype = np.float64 if self.dtype == "float64" else np.float32
        if isinstance(X, Graph) or is_graph(X):
            if adjacency is not None:
                raise InputError("adjacency goes with a matrix of features; X is a graph already.")
            graph = X if isinstance(X, Graph) else Graph.of(X, dtype=dtype)
            if reset:
                self.n_features_in_ = graph.num_features
                if hasattr(self, "feature_names_in_"):  # of an earlier fit
                    del self.feature_names_in_
            return graph
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset else 1,
        )
        if adjacency is None:
            adjacency = _nearest(X, self.n_neighbors)
        return Graph.of(features=X, adjacency=adjacency, dtype=dtype)


def _nearest(X: Any, n_neighbors: int) -> Any:
    from sklearn.neighbors import kneighbors_graph

    n = X.shape[0]
    neighbors = min(n_neighbors, n - 1)
    log.info("No adjacency given: the graph of %d nearest neighbors is used.", neighbors)
    return kneighbors_graph(X, neighbors) if neighbors else np.zeros((n, n))


def _widths(saved: list[int] | None) -> tuple[int, ...] | None:
    return None if saved is None else tuple(saved)


def _positions(graph: Graph, nodes: Sequence[Any]) -> NDArray[np.int64]:
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        raise InputError(f"nodes must be a sequence of ids of {graph.name}; received {nodes!r}.")
    asked = nodes if isinstance(nodes, np.ndarray) else list(nodes)
    try:
        rows = find_ids(graph.node_ids, asked)
    except TypeError as error:
        raise InputError(f"nodes must be ids of {graph.name}; {error}.") from None
    if (rows < 0).any():
        raise InputError(f"nodes must be ids of {graph.name}; it has no {asked[int(np.argmin(rows))]!r}.")
    return rows
