"""The contract of every method in the catalog; a new method is covered by being registered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
import torch
from pydantic import PositiveInt
from pydantic.fields import FieldInfo

from graphs import random_graph
from ssge.errors import InputError
from ssge.graph import Graph
from ssge.methods import METHODS, Method
from ssge.training.checkpoint import Checkpoint, build, load_model, save_model
from ssge.training.trainer import Trained, train

GRAPH = random_graph(n=80, p=12, m=300)
LABELED = np.arange(40)
SMALL: dict[str, Any] = {"epochs": 4, "widths": (10, 6), "walk_length": 20, "batch": 32, "heads": 2}


def alternatives(field: FieldInfo) -> list[Any]:
    """Return what a setting can be beside its default: a switch turned, another word, 1/2 for 1, 25 for no number."""
    if field.annotation is bool:
        return [not field.default]
    if get_origin(field.annotation) is Literal:
        return [value for value in get_args(field.annotation) if value != field.default]
    if field.annotation == PositiveInt | None:
        return [25]
    return [0.5] if field.annotation is float and field.default == 1 else []


def variants(*keys: str) -> list[Any]:
    """Every method with small settings, and with each alternative of some settings, or of all if none is named."""
    found = []
    for name in METHODS:
        fields = METHODS[name].Config.model_fields
        config = {key: value for key, value in SMALL.items() if key in fields}
        found.append(pytest.param(name, config, id=name))
        for key, field in fields.items():
            chosen = alternatives(field) if key in keys or not keys else []
            found += [pytest.param(name, config | {key: value}, id=f"{name}-{key}={value}") for value in chosen]
    return found


every_method = pytest.mark.parametrize(("name", "config"), variants("encoder"))
every_setting = pytest.mark.parametrize(("name", "config"), variants())


def built(name: str, config: dict[str, Any], seed: int = 0) -> Method:
    return build(name, config, METHODS[name].sizes(GRAPH), seed, torch.float64)


def trained(method: Method, graph: Graph = GRAPH, **options: Any) -> Trained:
    """Train on a graph; a supervised method on the labels of its first half."""
    nodes = LABELED if method.supervised else None
    return train(method, graph, labeled=nodes, validation=nodes, **options)


def prepared(method: Method) -> Any:
    """Return the first batch of a training."""
    graph = GRAPH.with_labels_of(LABELED) if method.supervised else GRAPH.without_labels()
    return next(iter(method.batches(method.prepare(graph), torch.Generator().manual_seed(0))))


def embedding(name: str, config: dict[str, Any], graph: Graph = GRAPH, seed: int = 0) -> np.ndarray:
    method = built(name, config, seed)
    trained(method, graph, seed=seed)
    return method.embed(graph).numpy()


@every_method
def test_facts_are_there(name: str, config: dict[str, Any]) -> None:
    cls = METHODS[name]
    assert cls.name == name
    assert set(cls.modes) <= {"full", "nodes", "walks"} and cls.modes
    for fact in (cls.title, cls.family, cls.inputs, cls.reference):
        assert fact
    for field, description in cls.Config.model_fields.items():
        assert description.description, f"{name}.{field} has no description for the help text"


@every_setting
def test_trains_to_finite_embeddings_of_unit_size(name: str, config: dict[str, Any]) -> None:
    vectors = embedding(name, config)
    assert vectors.shape[0] == GRAPH.num_nodes
    assert np.isfinite(vectors).all()
    assert np.sqrt(np.square(vectors).mean()) == pytest.approx(1)


@every_method
def test_every_parameter_gets_a_gradient(name: str, config: dict[str, Any]) -> None:
    method = built(name, config)
    method(prepared(method), torch.Generator().manual_seed(0)).total.backward()
    for key, parameter in method.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, key
            # The bias before a batch normalization is canceled by it; all others must move.
            if not (config.get("encoder") == "mlp" and key.endswith("bias") and "norms" not in key):
                assert parameter.grad.abs().max() > 0, key


@every_method
def test_the_loss_falls(name: str, config: dict[str, Any]) -> None:
    method = built(name, config | {"epochs": 60, "lr": 0.01})
    history = trained(method).history
    assert np.mean([h["total"] for h in history[-5:]]) < np.mean([h["total"] for h in history[:5]])


@every_setting
def test_same_seed_same_bytes_other_seed_other_bytes(name: str, config: dict[str, Any]) -> None:
    first, second, other = (embedding(name, config, seed=s) for s in (3, 3, 4))
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != other.tobytes()


@every_method
def test_labels_are_never_seen_but_those_of_training_nodes(name: str, config: dict[str, Any]) -> None:
    assert GRAPH.labels is not None
    labels = GRAPH.labels.copy()
    hidden = np.setdiff1d(np.arange(GRAPH.num_nodes), LABELED) if METHODS[name].supervised else slice(None)
    labels[hidden] = np.random.default_rng(0).permutation(labels[hidden])
    assert embedding(name, config).tobytes() == embedding(name, config, replace(GRAPH, labels=labels)).tobytes()
    if METHODS[name].supervised:
        other = replace(GRAPH, labels=(GRAPH.labels + 1) % GRAPH.num_classes)
        assert embedding(name, config).tobytes() != embedding(name, config, other).tobytes()
        with pytest.raises(InputError, match="labeled must name the training nodes"):
            train(built(name, config), GRAPH)
    else:
        assert embedding(name, config).tobytes() == embedding(name, config, GRAPH.without_labels()).tobytes()


@every_method
def test_permuting_the_nodes_permutes_the_embedding(name: str, config: dict[str, Any]) -> None:
    method = built(name, config)
    trained(method)
    order = np.random.default_rng(0).permutation(GRAPH.num_nodes)
    position = np.argsort(order)
    permuted = Graph.of(edges=position[GRAPH.edges], features=GRAPH.features[order], dtype=np.float64)
    if not method.inductive:
        with pytest.raises(InputError, match="another graph than the one it was trained on"):
            method.embed(permuted)
        return
    np.testing.assert_allclose(method.embed(permuted).numpy(), method.embed(GRAPH).numpy()[order], atol=1e-12)


@every_setting
def test_chunks_do_not_change_the_embedding(name: str, config: dict[str, Any]) -> None:
    method = built(name, config)
    torch.testing.assert_close(method.embed(GRAPH, chunk=11), method.embed(GRAPH))


@every_setting
def test_model_round_trip(name: str, config: dict[str, Any], tmp_path: Path) -> None:
    method = built(name, config)
    trained(method)
    save_model(tmp_path / "model.safetensors", method, note="kept")
    again, facts = load_model(tmp_path / "model.safetensors")
    assert facts["note"] == "kept"
    assert again.config == method.config
    assert torch.equal(again.embed(GRAPH), method.embed(GRAPH))


@every_setting
@pytest.mark.parametrize("stop", [1, 3])
def test_resumed_training_is_bit_equal(name: str, config: dict[str, Any], stop: int, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", every=0)
    method = built(name, config)
    stopped = trained(method, observers=[lambda line: line["epoch"] == stop], checkpoint=checkpoint)
    assert not stopped.finished
    again = built(name, config, seed=9)  # other initial weights: the checkpoint must bring its own
    resumed = trained(again, checkpoint=checkpoint, resume=True)
    whole = built(name, config)
    history = trained(whole).history
    assert again.embed(GRAPH).numpy().tobytes() == whole.embed(GRAPH).numpy().tobytes()
    assert [h["total"] for h in resumed.history] == [h["total"] for h in history]


@every_method
def test_graph_with_other_features_is_refused(name: str, config: dict[str, Any]) -> None:
    reason = "has 5 features, the model was built for 12" if METHODS[name].inductive else "another graph"
    with pytest.raises(InputError, match=reason):
        built(name, config).embed(random_graph(p=5))
