"""The contract of every method in the registry; a new method is covered by being registered."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import numpy as np
import pytest
import torch
from pydantic import PositiveInt
from pydantic.fields import FieldInfo
from torch import Tensor

from graphs import random_graph
from ssge.errors import InputError
from ssge.graph import Graph, Split
from ssge.methods import METHODS, Method
from ssge.nn.blocks import Block
from ssge.ops.random import Key
from ssge.runs.fit import fit
from ssge.runs.plan import Plan, info_for
from ssge.training.batches import batches
from ssge.training.best import Best
from ssge.training.checkpoint import Checkpoint, build, describe_run, load_model, save_model
from ssge.training.trainer import Trained, train

SPLIT = Split(np.arange(40), np.arange(40, 60), np.arange(60, 80))
GRAPHS: dict[str, Graph] = {
    # Precision, sparse X, weights, direction: each two of them in all four combinations. All have an isolated node.
    name: replace(
        random_graph(n=80, p=12, m=300, sparse=sparse, weighted=weighted, directed=directed, dtype=dtype),
        splits=(SPLIT,),
    )
    for name, dtype, sparse, weighted, directed in (
        ("plain", np.float64, False, False, False),
        ("sparse-weighted-directed", np.float64, True, True, True),
        ("weighted-directed-32", np.float32, False, True, True),
        ("sparse-directed-32", np.float32, True, False, True),
        ("sparse-weighted-32", np.float32, True, True, False),
    )
}
SMALL: dict[str, Any] = {
    "epochs": 3,
    "widths": (10, 6),
    "predictor_width": 8,
    "width": 6,
    "walk_length": 12,
    "window": 4,
    "clusterings": 2,
    "batch": 32,
    "heads": 2,
    "anchors": 20,
    "centroids": 10,
    "components": 7,
    "hops": 3,
}
RATES: dict[str, Any] = {
    "edge_drop": 0,
    "feature_mask": 0,
    "edge_drops": (0, 0),
    "feature_masks": (0, 0),
    "input_dropout": 0,
    "dropout": 0,
}


class Case(NamedTuple):
    """A method with some settings on one of the graphs."""

    name: str
    settings: tuple[tuple[str, Any], ...]
    graph_name: str = "plain"

    @property
    def method(self) -> type[Method]:
        return METHODS[self.name]

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.settings)

    @property
    def graph(self) -> Graph:
        return GRAPHS[self.graph_name]

    @property
    def dtype(self) -> Literal["float32", "float64"]:
        return "float32" if self.graph_name.endswith("32") else "float64"

    @property
    def precision(self) -> float:
        """Return what sums in another order may differ by, of numbers near 1."""
        return 1e-5 if self.dtype == "float32" else 1e-12

    def given(self, **settings: Any) -> Case:
        """Return the case with other settings, as far as the method has them."""
        known = {key: value for key, value in settings.items() if key in self.method.Config.model_fields}
        if not self.method.trained:
            known.pop("epochs", None)
        return self._replace(settings=tuple((self.config | known).items()))


def alternatives(field: FieldInfo) -> list[Any]:
    """Return what a setting can be beside its default: a switch turned, another word, 1/2 for 1, 25 for no number."""
    if field.annotation is bool:
        return [not field.default]
    if get_origin(field.annotation) is Literal:
        return [value for value in get_args(field.annotation) if value != field.default]
    if field.annotation == PositiveInt | None:
        return [25]
    if field.annotation == tuple[Block, ...]:
        return [("propagated", "learned")]
    return [0.5] if field.annotation is float and field.default == 1 else []


PLAIN = [Case(name, ()).given(**SMALL) for name in METHODS]
GRAPH_CASES = [pytest.param(case._replace(graph_name=g), id=f"{case.name}-{g}") for case in PLAIN for g in GRAPHS]
SETTING_CASES = [
    pytest.param(case.given(**{key: value}), id=f"{case.name}-{key}={value}")
    for case in PLAIN
    for key, field in case.method.Config.model_fields.items()
    for value in alternatives(field)
]
ENCODER_CASES = [case for case in SETTING_CASES if "-encoder=" in str(case.id)]
every_trained = pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in PLAIN if c.method.trained])
every_trained_case = pytest.mark.parametrize(
    "case", [case for case in GRAPH_CASES + SETTING_CASES if METHODS[str(case.id).split("-")[0]].trained]
)
every_method = pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in PLAIN])
every_graph = pytest.mark.parametrize("case", GRAPH_CASES + ENCODER_CASES)
every_case = pytest.mark.parametrize("case", GRAPH_CASES + SETTING_CASES)


def built(case: Case, seed: int = 0) -> Method:
    info = info_for(case.method, case.graph)
    return build(case.name, case.config, info, seed, getattr(torch, case.dtype))


def visible(case: Case, graph: Graph) -> Graph:
    return graph.with_labels_of(SPLIT.train) if case.method.supervised else graph.without_labels()


def learn(
    method: Method,
    case: Case,
    graph: Graph | None = None,
    seed: int = 0,
    file: Path | None = None,
    resuming: bool = False,
    **options: Any,
) -> Trained:
    graph = case.graph if graph is None else graph
    best, seen, keep = None, visible(case, graph), getattr(method.config, "keep", "last")
    if keep != "last":
        labels = graph.with_labels_of(SPLIT.valid).labels
        assert labels is not None
        best = Best(labels, keep)
    checkpoint = Checkpoint(file, describe_run(method, seen, seed, best), 0, resuming) if file else None
    return train(method, method.prepare(seen), Key(seed), best=best, checkpoint=checkpoint, **options)


@cache
def trained(case: Case) -> tuple[Method, Trained]:
    """Return a training that several tests look at and none changes."""
    method = built(case)
    return method, learn(method, case)


def embedding(found: Trained) -> Tensor:
    assert found.embedding is not None
    return found.embedding


def bits(found: Trained) -> bytes:
    return embedding(found).numpy().tobytes()


@every_method
def test_facts_are_there(case: Case) -> None:
    cls = case.method
    assert cls.name == case.name
    for fact in (cls.title, cls.family, cls.inputs, cls.reference, cls.__doc__):
        assert fact
    for name, field in cls.Config.model_fields.items():
        assert field.description, f"{case.name}.{name} has no description for the help text"


@every_case
def test_trains_to_finite_embeddings_of_unit_size(case: Case) -> None:
    method, found = trained(case)
    assert [line["epoch"] for line in found.history] == ([1, 2, 3] if method.trained else [])
    vectors = embedding(found)
    assert len(vectors) == case.graph.num_nodes
    assert vectors.dtype == method.dtype == getattr(torch, case.dtype)
    assert torch.isfinite(vectors).all()
    assert float((vectors.double() - method.offset).square().mean()) == pytest.approx(1, rel=1e-5)


@every_trained_case
def test_every_parameter_gets_a_gradient_or_is_frozen(case: Case) -> None:
    method = built(case)
    method.train()
    prepared, key = method.prepare(visible(case, case.graph)), Key(0).fold_in("train", 1)
    for batch, step_key in batches(method, prepared, key):
        method(batch, step_key).total.backward()  # type: ignore[no-untyped-call]
    optimized = {id(p) for group in method.optimizer().param_groups for p in group["params"]}
    for name, parameter in method.named_parameters():
        assert (id(parameter) in optimized) == parameter.requires_grad, name
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            # The bias before a batch normalization is canceled by it; all others must move.
            canceled = case.config.get("encoder") == "mlp" or case.config.get("batch_norm")
            if not (canceled and name.endswith("bias") and "norms" not in name):
                assert parameter.grad.abs().max() > 0, name


@every_trained
def test_the_loss_falls(case: Case) -> None:
    case = case.given(epochs=60, lr=0.01, stride=10**6)  # weights of the terms of gCooL stay as they are
    totals = [line["total"] for line in learn(built(case), case).history]
    assert np.mean(totals[-5:]) < np.mean(totals[:5])


@every_case
def test_same_seed_same_bytes_other_seed_other_bytes(case: Case) -> None:
    torch.manual_seed(1)  # the global state plays no part
    again, other = (learn(built(case, seed), case, seed=seed) for seed in (0, 1))
    assert bits(again) == bits(trained(case)[1])
    assert (bits(other) == bits(again)) == (not case.method.trained)


def permuted(graph: Graph, order: np.ndarray) -> Graph:
    """Return the same graph with its nodes in another order."""
    assert graph.labels is not None
    position = np.argsort(order)
    return Graph.of(
        edges=position[graph.edges], weights=graph.weights, features=graph.features[order],
        direction="in", dtype=graph.features.dtype.type, labels=graph.labels[order],
    )  # fmt: skip


@every_graph
def test_permuting_the_nodes_permutes_the_embedding(case: Case) -> None:
    order = np.random.default_rng(0).permutation(case.graph.num_nodes)
    other = permuted(case.graph, order)
    method, found = trained(case)
    if not method.inductive:
        with pytest.raises(InputError, match="only the graph that it was trained on"):
            method.embed(other)
        return
    torch.testing.assert_close(method.embed(other), embedding(found)[order], rtol=0, atol=case.precision)


@every_method
def test_without_chance_training_on_permuted_nodes_permutes_the_embedding(case: Case) -> None:
    """With all rates at 0; methods that draw anything else, such as walks, are left out."""
    case = case.given(**RATES)
    method, (first, second) = built(case), (learn(built(case), case, seed=seed) for seed in (0, 1))
    if not torch.equal(embedding(first), embedding(second)):
        pytest.skip("draws more than views and dropout")
    order = np.random.default_rng(0).permutation(case.graph.num_nodes)
    other = permuted(case.graph, order)
    seen = other.with_labels_of(np.argsort(order)[SPLIT.train]) if method.supervised else other.without_labels()
    found = train(method, method.prepare(seen), Key(0))
    torch.testing.assert_close(embedding(found), embedding(first)[order], rtol=0, atol=1e-9)


@every_method
def test_labels_are_never_seen_but_those_of_training_nodes(case: Case) -> None:
    graph = case.graph
    assert graph.labels is not None
    plan = Plan(case.method, case.method.Config(**case.config), precision=case.dtype)

    def vectors(labels: np.ndarray) -> bytes:
        return fit(replace(graph, labels=labels), plan).embedding.vectors.tobytes()

    hidden, shown = graph.labels.copy(), graph.labels.copy()
    hidden[40:] = np.roll(hidden[40:], 1)
    shown[:40] = np.roll(shown[:40], 1)
    expected = vectors(graph.labels)
    assert vectors(hidden) == expected
    assert (vectors(shown) == expected) == (not case.method.supervised)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in PLAIN if not case.method.supervised])
def test_a_method_does_not_read_labels_that_it_is_given_by_mistake(case: Case) -> None:
    found = train(method := built(case), method.prepare(case.graph), Key(0))
    assert bits(found) == bits(trained(case)[1])


@every_graph
def test_chunks_do_not_change_the_embedding(case: Case) -> None:
    method, found = trained(case)
    encode = getattr(method.encoder, "embed", None)
    if encode is None or "chunk" not in inspect.signature(encode).parameters:
        pytest.skip("encodes nothing by chunks")
    method = built(case)
    method.load_state_dict(trained(case)[0].state_dict())
    method.encoder.embed = partial(method.encoder.embed, chunk=11)  # type: ignore[operator, assignment]
    torch.testing.assert_close(method.embed(case.graph), embedding(found))


@every_graph
def test_some_nodes_have_the_rows_they_have_among_all(case: Case) -> None:
    method, found = trained(case)
    nodes = np.array([79, 3, 41])
    torch.testing.assert_close(method.embed(case.graph, nodes), embedding(found)[nodes], rtol=0, atol=case.precision)


@every_case
def test_model_round_trip(case: Case, tmp_path: Path) -> None:
    method, found = trained(case)
    save_model(tmp_path / "model.safetensors", method, note="kept")
    again, facts = load_model(tmp_path / "model.safetensors")
    assert facts["note"] == "kept"
    assert again.config == method.config
    assert torch.equal(again.embed(case.graph), embedding(found))


@every_trained_case
def test_resumed_training_is_bit_equal(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.safetensors"
    stopped = learn(built(case), case, file=file, observers=[lambda line: line["epoch"] == 2])
    assert stopped.embedding is None
    other = built(case, seed=9)  # other initial weights: the checkpoint must bring its own
    resumed = learn(other, case, file=file, resuming=True)
    whole = trained(case)[1]
    assert bits(resumed) == bits(whole)
    assert [line["total"] for line in resumed.history] == [line["total"] for line in whole.history]


@every_method
def test_a_graph_of_another_shape_is_refused(case: Case) -> None:
    other = random_graph(p=5) if case.method.inductive else random_graph(n=70)
    with pytest.raises(InputError, match=r"the model (was built for 12|has one vector for each of 80)"):
        built(case).embed(other)
