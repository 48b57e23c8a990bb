"""Sampled steps of every method that takes batches of nodes, the thread that prepares them, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from graphs import random_graph
from ssge.errors import InputError
from ssge.methods import METHODS, Method
from ssge.ops.moments import CollapseWarning
from ssge.ops.neighbor_sampling import SampledAdjacency
from ssge.ops.random import Key
from ssge.training.batches import _made_ahead, batches
from ssge.training.checkpoint import build
from ssge.training.trainer import train

GRAPH = random_graph(n=80, m=300, weighted=True, directed=True)
KEY = Key(0).fold_in("train", 1)
SAMPLED = [name for name in METHODS if "fanouts" in METHODS[name].Config.model_fields]

pytestmark = pytest.mark.filterwarnings("ignore::ssge.ops.moments.CollapseWarning")


def built(name: str, **config: Any) -> Method:
    return build(name, {"widths": (8, 6), "epochs": 2} | config, GRAPH.info, 0, torch.float64)


def losses(method: Method, **options: Any) -> list[float]:
    steps = batches(method.train(), method.prepare(GRAPH), KEY, **options)
    return [float(method(batch, key).total.detach()) for batch, key in steps]


def test_every_method_of_node_batches_can_sample() -> None:
    assert set(SAMPLED) >= {
        "ssge",
        "cca_ssg",
        "g_bt",
        "bgrl",
        "grace",
        "gca",
        "gcool",
        "costa",
        "homogcl",
        "dgi",
        "ggd",
    }


@pytest.mark.parametrize("name", SAMPLED)
def test_training_on_samples_is_finite_and_repeatable(name: str) -> None:
    found = []
    for _ in range(2):
        method = built(name, batch_nodes=30, fanouts=(4, 3))
        embedding = train(method, method.prepare(GRAPH), KEY).embedding
        assert embedding is not None and bool(torch.isfinite(embedding).all()) and embedding.shape == (80, 6)
        found.append(embedding)
    assert torch.equal(*found)


@pytest.mark.parametrize("name", ["ssge", "cca_ssg", "grace", "gca", "gcool", "costa", "homogcl"])
def test_without_a_limit_losses_are_those_of_node_batches(name: str) -> None:
    """Methods that normalize or shuffle the rows of the subgraph itself see other rows, so they are left out."""
    whole = losses(built(name, batch_nodes=30))
    assert losses(built(name, batch_nodes=30, fanouts=(1000, 1000))) == pytest.approx(whole, rel=1e-10)
    assert losses(built(name, batch_nodes=30, fanouts=(2, 2))) != pytest.approx(whole, rel=1e-3)


def test_a_step_reads_what_it_samples_and_no_more() -> None:
    method = built("ssge", batch_nodes=10, fanouts=(2, 3))
    for view, _ in batches(method, method.prepare(GRAPH), KEY):
        adjacency = view.adjacency
        assert isinstance(adjacency, SampledAdjacency)
        assert adjacency.part.blocks[0].rows.indptr.numel() - 1 == 10
        assert adjacency.part.blocks[0].num_columns <= 30 and view.num_nodes <= 120
        assert view.at_seeds(method.encoder(view)).shape == (10, 6)


def test_encoders_without_edges_need_no_fanouts() -> None:
    assert losses(built("ssge", encoder="mlp", batch_nodes=30, fanouts=(5, 5))) == losses(
        built("ssge", encoder="mlp", batch_nodes=30)
    )


def test_what_cannot_be_sampled_is_refused() -> None:
    with pytest.raises(ValidationError, match="must come with batch_nodes"):
        built("ssge", fanouts=(5, 5))
    with pytest.raises(ValidationError, match="must be gcn with fanouts"):
        built("bgrl", encoder="gat", heads=2, batch_nodes=9, fanouts=(5, 5))
    with pytest.raises(InputError, match="fanouts must be 2 numbers, one for each hop of the encoder; received 3"):
        losses(built("ssge", batch_nodes=9, fanouts=(5, 5, 5)))


@pytest.mark.parametrize("fanouts", [None, (3, 3)])
def test_batches_made_ahead_are_the_same(fanouts: tuple[int, ...] | None) -> None:
    method = built("ssge", batch_nodes=20, fanouts=fanouts)
    assert losses(method, ahead=True) == losses(method, ahead=False)


def test_a_thread_works_one_batch_ahead_and_hands_over_what_goes_wrong() -> None:
    started, threads = threading.Event(), set()

    def made() -> Iterator[int]:
        for number in range(3):
            threads.add(threading.current_thread())
            if number == 1:
                started.set()
            yield number
        raise InputError("no more")

    found = _made_ahead(made())
    assert next(found) == 0
    assert started.wait(10)  # the second is made though nobody asked for it
    assert threading.current_thread() not in threads
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(InputError, match="no more"):
        next(found)
    early = _made_ahead(iter(range(9)))
    next(early)
    early.close()


@pytest.mark.parametrize(
    ("settings", "warns"),
    [
        ({"batch_nodes": 11}, True),
        ({"batch_nodes": 12}, False),
        ({"batch_nodes": 11, "covariance_momentum": 0.9}, False),
    ],
)
def test_small_batches_warn(settings: dict[str, Any], warns: bool, recwarn: pytest.WarningsRecorder) -> None:
    method = built("ssge", epochs=1, **settings)
    train(method, method.prepare(GRAPH), KEY)
    said = [
        str(w.message) for w in recwarn if issubclass(w.category, CollapseWarning) and "A batch of" in str(w.message)
    ]
    assert len(said) == warns
    if warns:
        assert "A batch of 11 nodes is smaller than twice the width of the embedding, 6" in said[0]


def test_a_running_covariance_is_part_of_the_state() -> None:
    method = built("ssge", batch_nodes=10, covariance_momentum=0.9)
    assert {"running.covariance", "running.steps"} <= method.state_dict().keys()
    assert "running.covariance" not in built("ssge").state_dict()
    train(method, method.prepare(GRAPH), KEY)
    assert int(method.running.steps) == 16  # type: ignore[union-attr, operator]
