"""Every method as a scikit-learn estimator: ``fit``, ``transform``, ``embedding_``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ssge.errors import InputError
from ssge.foreign import is_graph
from ssge.graph import Graph, GraphInfo
from ssge.io.embeddings import as_table, column_names
from ssge.io.inputs import is_table, read_given, refuse_edges, refuse_table_of_nodes
from ssge.io.sources import errors_of, explained
from ssge.methods import METHODS
from ssge.methods.ssge import SSGEConfig
from ssge.runs.fit import Run, fit
from ssge.runs.folder import RunFolder
from ssge.runs.names import Names
from ssge.runs.plan import Plan, Start, plan
from ssge.runs.select import select
from ssge.schema import FeatureSchema
from ssge.training.device import Precision, choose_device
from ssge.uses import Uses, frame

log = logging.getLogger(__name__)

LARGEST = 1e150
"""Squares of larger numbers leave the range of float64."""


class GraphEmbedder(Uses, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Any method of the package as an estimator.

    The same settings and seed give the same bytes as ``ssge fit``.

    Parameters
    ----------
    method
        Name of the method, such as ``"ssge"`` or ``"bgrl"``; ``ssge ls methods`` lists them.
    recipe
        Name of a recipe (``"bgrl/cora"``) or path of a TOML file whose settings to take.
    warm_start
        Start each `fit` with the weights of the one before, as for a graph that has grown.
    select
        Method ssge: try nine settings of epochs and uniformity weight first, and take the one that agrees best with
        held-out features and edges (`ssge.runs.select`).
    n_neighbors
        When a matrix is given without ``adjacency``: neighbors per row in the graph made of the rows.
    device, precision
        Where and in which precision to train: ``float32``, ``float64``, ``bf16`` (products in bfloat16, all else in
        float32), or ``auto`` (bf16 where the processor or GPU has it).
    random_state
        Seed of the weights and of every random draw.
    verbose
        Show progress on standard error.
    **settings
        Settings of the method, such as ``epochs=50``. Those not given follow the size of the graph.

    Attributes
    ----------
    embedding_
        n x d array, one row per training node.
    node_ids_
        The ids of these nodes.
    n_features_in_, feature_names_in_
        Number of feature columns, and their names if X was a data frame.
    history_
        One dict per epoch: the loss, its terms, seconds.
    schema_
        How the feature columns were made, if the graph came from `ssge.read_graph`: give the model to that function as
        ``like`` to read another graph in the same way. None otherwise.
    encoder_
        The trained encoder, a ``torch.nn.Module``.

    Notes
    -----
    A graph is not a matrix of rows that could be divided into folds: embed first, then cross-validate what is learned
    from the embedding, ``cross_val_score(classifier, SSGE().fit_transform(graph), labels)``.

    Examples
    --------
    >>> import ssge
    >>> graph = ssge.load_dataset("karate")
    >>> model = ssge.GraphEmbedder("cca_ssg", widths=(16, 8), epochs=5, random_state=0).fit(graph)
    >>> model.embedding_.shape
    (34, 8)
    """

    def __init__(
        self,
        method: str = "ssge",
        *,
        recipe: str | None = None,
        warm_start: bool = False,
        select: bool = False,
        n_neighbors: int = 10,
        device: str = "cpu",
        precision: Precision = "float32",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        **settings: Any,
    ) -> None:
        self.method = method
        self.recipe = recipe
        self.warm_start = warm_start
        self.select = select
        self.n_neighbors = n_neighbors
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose
        self._settings = settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, settings of the method among them."""
        params: dict[str, Any] = super().get_params(deep)
        return params | self._settings

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name."""
        named = self._get_param_names()
        self._settings |= {key: value for key, value in params.items() if key not in named}
        super().set_params(**{key: value for key, value in params.items() if key in named})
        return self

    def fit(self, X: Any, y: Any = None, *, nodes: Any = None, adjacency: Any = None) -> Self:
        """Learn an embedding of a graph.

        Parameters
        ----------
        X
            A `Graph`, a PyTorch Geometric, DGL or NetworkX graph with features, or a matrix of node features. Or what
            `ssge.read_graph` reads: a path, or a table of edges together with ``nodes``.
        y
            Ignored. Supervised methods learn from the labels of a `Graph`.
        nodes
            Table of nodes, a data frame or a path, when X is a table of edges.
        adjacency
            n x n matrix of edges, when X is a matrix of features. Without it the graph of nearest neighbors of the
            rows of X is used.
        """
        self._plan(GraphInfo(2, 0, 1), seed=0)  # refuses mistakes before any work
        refuse_table_of_nodes(X, y)
        X = read_given(X, nodes, self.schema_ if self._start else None)
        graph = self._graph(X, adjacency, reset=True)
        if self._start is not None:
            self._check_schema(graph)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31)
        reading = {} if adjacency is not None or isinstance(X, Graph) else {"n_neighbors": self.n_neighbors}
        planned = self._plan(graph.info, int(seed))
        if self.select:
            planned = select(graph, planned, quiet=not self.verbose)
        self._run = fit(graph, planned, reading=reading, quiet=not self.verbose)
        self._set_fitted()
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, nodes: Any = None, adjacency: Any = None
    ) -> NDArray[np.floating[Any]]:
        """Learn an embedding and return it, one row per node."""
        return self.fit(X, y, nodes=nodes, adjacency=adjacency).embedding_

    def transform(self, X: Any, *, adjacency: Any = None, nodes: Any = None) -> NDArray[np.floating[Any]]:
        """Embed the nodes of another graph with the same features, without training.

        Parameters
        ----------
        X, adjacency
            As in `fit`, with as many feature columns. A matrix without ``adjacency`` gets the graph of its own nearest
            neighbors. Paths and tables are read as those that the model was fitted on.
        nodes
            Ids of the nodes to embed, at the cost of their neighborhood alone; rows are in this order. Default: all.
            Or, when X is a table of edges, the table of all nodes.
        """
        check_is_fitted(self)
        tables = is_table(nodes) and is_table(X)
        X = read_given(X, nodes if tables else None, self.schema_)
        nodes = None if tables else nodes
        graph = self._graph(X, adjacency, reset=False)
        self._check_schema(graph)
        rows = None if nodes is None else _positions(graph, nodes)
        embedding: NDArray[np.floating[Any]] = self._run.method.embed(graph, rows).cpu().numpy()
        return embedding

    def to_frame(self) -> Any:
        """Return the embedding as a table with the columns id, e000, e001, ...

        A pandas data frame if pandas is installed, else a pyarrow table.
        """
        check_is_fitted(self)
        return frame(as_table(self.node_ids_, self.embedding_))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the embedding columns: e000, e001, ..."""
        check_is_fitted(self)
        return np.array(column_names(self.embedding_.shape[1]), dtype=object)

    @property
    def encoder_(self) -> torch.nn.Module:
        """The trained encoder."""
        check_is_fitted(self)
        return self._run.method.encoder

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write the fitted model into a folder, with the same files as ``ssge fit``; no pickle.

        Parameters
        ----------
        path
            A folder, new or without a run in it.
        force
            Replace the run in the folder.
        """
        check_is_fitted(self)
        folder = RunFolder(Path(path))
        with folder.claim(force):
            folder.write(self._run)

    @classmethod
    def load(cls, path: str | Path, device: str = "cpu") -> Self:
        """Read what `save` or ``ssge fit`` wrote into a folder, and bring it to a device.

        The settings of the estimator are those of the run, so that fitting the same graph again reproduces it.
        """
        folder = RunFolder(Path(path))
        record = folder.read_record()
        settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.config.items()}
        settings |= {"random_state": record.seed, "precision": record.precision, "device": device}
        settings["n_neighbors"] = record.reading.get("n_neighbors", 10)
        fixed: str | None = getattr(cls, "method", None)  # of SSGE
        if fixed not in (None, record.method):
            title = METHODS[record.method].title
            raise InputError(f"The folder holds a model of {title}: ssge.GraphEmbedder.load reads it.")
        model = cls(**settings) if fixed else cls(record.method, **settings)
        method = folder.read_model(str(choose_device(device)))
        model._run = Run(record, folder.read_history(), folder.read_embedding(), method, folder.read_schema())
        model.n_features_in_ = method.info.num_features
        if record.feature_names and model._run.schema is None:
            model.feature_names_in_ = np.array(record.feature_names, dtype=object)
        model._set_fitted()
        return model

    def _set_fitted(self) -> None:
        run = self._run
        if (names := getattr(self, "feature_names_in_", None)) is not None:
            run.record.feature_names = [str(name) for name in names]
        self.embedding_ = run.embedding.vectors
        self.node_ids_ = run.embedding.node_ids
        self.history_ = run.history
        self.schema_: FeatureSchema | None = run.schema

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_run")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # the parameter precision decides
        return tags

    @property
    def _start(self) -> Start | None:
        if not self.warm_start or not hasattr(self, "_run"):
            return None
        return Start(self._run.method, "the fit before")

    def _plan(self, info: GraphInfo, seed: int) -> Plan:
        if not isinstance(self.n_neighbors, Integral) or self.n_neighbors < 1:
            raise InputError(f"n_neighbors must be an integer of 1 or more; received {self.n_neighbors!r}.")
        settings = {name: _plain(value) for name, value in self._settings.items()}
        return plan(
            info, self.method, recipe=self.recipe, settings=settings, start=self._start, seed=seed,
            device=self.device, precision=self.precision,
        )  # fmt: skip

    def _check_schema(self, graph: Graph) -> None:
        """Refuse features that were made in another way than those of the last fit, even if they are as many."""
        mine, theirs = self.schema_, graph.schema
        if mine is None or theirs is None or (mine.columns, mine.names) == (theirs.columns, theirs.names):
            return
        raise InputError(
            f"The features of {graph.name} were made in another way than those the model has learned from: "
            "read it with ssge.read_graph(..., like=model)."
        )

    def _graph(self, X: Any, adjacency: Any, reset: bool) -> Graph:
        """Make a graph of what was given; matrices go through scikit-learn's own check first."""
        dtype = np.float64 if self.precision == "float64" else np.float32
        if isinstance(X, Graph) or is_graph(X):
            if adjacency is not None:
                raise InputError("adjacency goes with a matrix of features; X is a graph already.")
            graph = X if isinstance(X, Graph) else Graph.of(X, dtype=dtype)
            if reset:
                self.n_features_in_ = graph.num_features
                if hasattr(self, "feature_names_in_"):  # of an earlier fit
                    del self.feature_names_in_
            return graph
        if adjacency is None and (reset or getattr(X, "shape", ())[1:] != (self.n_features_in_,)):
            refuse_edges(X)
        how: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
        X = validate_data(self, X, reset=reset, ensure_min_samples=2 if reset else 1, **how)
        if adjacency is None:
            adjacency = _nearest(X, self.n_neighbors)
        return Graph.of(features=X, adjacency=adjacency, dtype=dtype)


@dataclass(eq=False, repr=False)  # the constructor only stores, as scikit-learn asks
class SSGE(GraphEmbedder):
    """Self-supervised Gaussian embedding of the nodes of a graph: `GraphEmbedder` with its settings by name.

    Parameters
    ----------
    widths
        Width of each layer, the embedding last. Where it is given, the embedding has that width: blocks are ``learned``
        alone unless they are given too.
    epochs
        Passes over the graph; trained to convergence the objective gives worse embeddings.
    uniformity_weight
        Lambda: weight of the Wasserstein distance to the isotropic Gaussian against alignment of the views.
    edge_drop, feature_mask
        Probabilities of dropping an edge and of masking a feature column in each view.
    encoder
        ``gcn``, or ``mlp`` for features alone with batch normalization.
    lr, weight_decay
        Of Adam.
    blocks, block_weights, block_hops, components
        Blocks of columns beside the learned ones: see `ssge.nn.blocks.Blocks`.
    batch_nodes
        Nodes per training step, several times the embedding width. Bounds the memory on a large graph.
    fanouts
        With ``batch_nodes``: how many neighbors of a node are drawn, by hops from the nodes of a step.
    alignment_weight, activation, output_bias, offset, normalization, eigenvalue_floor, floor_mode, objective, \
    covariance_momentum, shrinkage, direct_width, temperature
        See `ssge.methods.ssge.SSGEConfig`.
    warm_start, select, n_neighbors, device, precision, random_state, verbose
        See `GraphEmbedder`.

    Notes
    -----
    None stands for the default of `ssge.methods.ssge.SSGEConfig`, or for what `ssge.methods.ssge.SSGE.default_config`
    chooses for the size of the graph.

    Examples
    --------
    >>> import ssge
    >>> graph = ssge.load_dataset("karate")
    >>> model = ssge.SSGE(widths=(16, 8), epochs=5, random_state=0).fit(graph)
    >>> model.embedding_.shape
    (34, 8)
    """

    method: ClassVar[str] = "ssge"  # type: ignore[misc]
    recipe: ClassVar[str | None] = None  # type: ignore[misc]

    widths: Sequence[int] | None = None
    _: KW_ONLY
    epochs: int | None = None
    uniformity_weight: float | None = None
    edge_drop: float | None = None
    feature_mask: float | None = None
    encoder: Literal["gcn", "mlp"] | None = None
    lr: float | None = None
    weight_decay: float | None = None
    batch_nodes: int | None = None
    fanouts: Sequence[int] | None = None
    alignment_weight: float | None = None
    activation: Literal["elu", "relu", "none"] | None = None
    blocks: Sequence[Literal["features", "propagated", "learned"]] | None = None
    block_weights: Sequence[float] | None = None
    block_hops: int | None = None
    components: int | None = None
    output_bias: bool | None = None
    offset: float | None = None
    normalization: Literal["out-in", "in"] | None = None
    eigenvalue_floor: float | None = None
    floor_mode: Literal["tangent", "clamp"] | None = None
    objective: Literal["gaussian", "w-mse", "directclr"] | None = None
    covariance_momentum: float | None = None
    shrinkage: float | None = None
    direct_width: int | None = None
    temperature: float | None = None
    warm_start: bool = False
    select: bool = False
    n_neighbors: int = 10
    device: str = "cpu"
    precision: Precision = "float32"
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    get_params, set_params = BaseEstimator.get_params, BaseEstimator.set_params

    @property
    def _settings(self) -> dict[str, Any]:  # type: ignore[override]
        return {name: getattr(self, name) for name in SSGEConfig.model_fields}


def _nearest(X: Any, n_neighbors: int) -> Any:
    from sklearn.neighbors import kneighbors_graph

    largest = max(abs(float(X.max())), abs(float(X.min())))
    if largest > LARGEST:
        raise InputError(f"X must hold numbers up to {LARGEST:g}, whose distances are finite; received {largest:.3g}.")
    n, neighbors = X.shape[0], min(n_neighbors, X.shape[0] - 1)
    log.info("No adjacency given: the graph of %d nearest neighbors is used.", neighbors)
    return kneighbors_graph(X, neighbors) if neighbors else np.zeros((n, n))


def _plain(value: Any) -> Any:
    """Return what NumPy holds as Python's own numbers."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _positions(graph: Graph, nodes: Sequence[Any]) -> NDArray[np.int64]:
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        raise InputError(f"nodes must be a sequence of ids of {graph.name}; received {nodes!r}.")
    with explained(f"nodes must be ids of {graph.name}"), errors_of(f"nodes must be ids of {graph.name}"):
        return Names(graph.node_ids).positions(nodes if isinstance(nodes, np.ndarray) else list(nodes))
