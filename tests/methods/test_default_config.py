"""The settings that follow the sizes of a graph where no recipe is given."""

from __future__ import annotations

import pytest

from ssge.graph import GraphInfo
from ssge.methods import METHODS
from ssge.runs.plan import plan
from ssge.training.checkpoint import build

CORA = GraphInfo(2708, 10556, 1433)
SIZES = [
    (CORA, 512, 0.193, 27),
    (GraphInfo(1797, 24000, 64), 64, 3.0, 46),  # as digits: no wider than its features
    (GraphInfo(34, 156, 34), 8, 3.0, 29),  # karate: a quarter of its nodes
    (GraphInfo(18_333, 163_788, 6_805), 512, 0.061, 37),  # CoauthorCS
    (GraphInfo(1000, 200_000, 500), 256, 3.0, 100),
    (GraphInfo(10**6, 10**6, 10**5), 512, 0.03, 22),
    (GraphInfo(3, 0, 1), 2, 0.03, 20),
]


@pytest.mark.parametrize(("info", "width", "weight", "epochs"), SIZES)
def test_ssge_follows_the_graph(info: GraphInfo, width: int, weight: float, epochs: int) -> None:
    found = METHODS["ssge"].default_config(info)
    blocks = ("features", "propagated", "learned")
    assert found == {"widths": (width, width), "uniformity_weight": weight, "epochs": epochs, "blocks": blocks}


@pytest.mark.parametrize("name", ["deepwalk", "node2vec"])
@pytest.mark.parametrize(("nodes", "batch"), [(34, 16), (2708, 135), (10**6, 1024)])
def test_walks_per_step_follow_the_graph(name: str, nodes: int, batch: int) -> None:
    assert METHODS[name].default_config(GraphInfo(nodes, 2 * nodes, 8)) == {"batch": batch}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("info", [info for info, *_ in SIZES if info.num_nodes < 10**6])
def test_every_method_can_be_built_with_them(name: str, info: GraphInfo) -> None:
    info = info._replace(num_classes=3)
    config = METHODS[name].Config(**METHODS[name].default_config(info))
    assert build(name, config.model_dump(), info).config == config


def test_a_plan_takes_them_below_recipe_and_settings() -> None:
    found = plan(CORA, "ssge", settings={"epochs": 3, "lr": None}).config.model_dump()
    assert (found["widths"], found["uniformity_weight"], found["epochs"], found["lr"]) == ((512, 512), 0.193, 3, 1e-3)
    fixed = METHODS["ssge"].Config().model_dump()
    followed = plan(CORA, recipe="ssge/citeseer").config.model_dump()
    assert followed["uniformity_weight"] == 0.05 and followed["alignment_weight"] == fixed["alignment_weight"]
    assert followed["widths"] == (512,) and followed["epochs"] == 20
    assert followed["blocks"] == fixed["blocks"] == ("learned",)  # the paper's embedding
    assert found["blocks"] == ("features", "propagated", "learned")


def test_who_names_the_widths_names_the_columns_of_the_embedding() -> None:
    assert plan(CORA, settings={"widths": (64, 32)}).config.model_dump()["blocks"] == ("learned",)
    both = plan(CORA, settings={"widths": (64, 32), "blocks": ("learned", "propagated")}).config.model_dump()
    assert both["blocks"] == ("learned", "propagated")
