"""Every recipe parses, fits its method, and says what the paper says."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssge.datasets import DATASETS
from ssge.errors import InputError
from ssge.experiments.protocols import PROTOCOLS
from ssge.methods import METHODS
from ssge.runs.plan import resolve_config
from ssge.runs.recipes import load_recipe, read_toml, recipes, write_toml

# Typed from the paper: p_d, p_m, lr, wd, lambda, widths, epochs (its Table 2), accuracy and deviation (Table 3).
PAPER = {
    "cora": (0.3, 0.1, 1e-3, 1e-5, 0.1, (256, 256), 80, 83.9, 0.3),
    "citeseer": (0.4, 0.0, 1e-3, 1e-5, 0.05, (512,), 20, 74.1, 0.3),
    "pubmed": (0.3, 0.5, 1e-3, 1e-5, 0.6, (512, 256), 100, 81.6, 0.1),
    "wikics": (0.8, 0.1, 1e-2, 1e-6, 0.5, (256, 256), 50, 79.18, 0.57),
    "computer": (0.1, 0.3, 1e-3, 1e-5, 1.0, (512, 512), 120, 89.05, 0.58),
    "coauthor_cs": (1.0, 0.2, 1e-3, 1e-5, 0.05, (512, 512), 80, 93.46, 0.45),
    "arxiv": (0.5, 0.3, 1e-2, 1e-6, 3.0, (512, 512), 400, 71.62, 0.19),
}
CLUSTERING = {"cora": (60.58, 56.96), "citeseer": (45.27, 46.87), "pubmed": (33.42, 32.05)}


@pytest.mark.parametrize("name", list(recipes()))
def test_every_recipe_can_be_used(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert name == f"{recipe.method}/{name.split('/')[1]}"
    assert recipe.dataset in DATASETS
    assert recipe.protocol in PROTOCOLS
    if recipe.method in ("bgrl", "g_bt", "grace"):  # their papers choose the penalty of the probe
        assert recipe.protocol == "paper-lbfgs"
    resolve_config(recipe.method, recipe.config)


@pytest.mark.parametrize("dataset", list(PAPER))
def test_ssge_recipes_are_the_paper_s(dataset: str) -> None:
    recipe = load_recipe(f"ssge/{dataset}")
    config = resolve_config("ssge", recipe.config).model_dump()
    names = ("edge_drop", "feature_mask", "lr", "weight_decay", "uniformity_weight", "widths", "epochs")
    published = (recipe.published["accuracy"], recipe.published["accuracy_deviation"])
    assert (*(config[name] for name in names), *published) == PAPER[dataset]
    assert (config["encoder"] == "mlp") == (dataset == "coauthor_cs")
    if dataset in CLUSTERING:
        assert (recipe.published["nmi"], recipe.published["ari"]) == CLUSTERING[dataset]
    assert recipe.protocol == "paper"


def test_parameter_counts_are_the_paper_s() -> None:
    """Table 5 counts 433K, 1,896K, 388K and 656K parameters; it rounds, and its last layers have a bias."""
    from ssge.graph import GraphInfo
    from ssge.training.checkpoint import build

    for dataset, thousands in (("cora", 433), ("citeseer", 1896), ("pubmed", 388), ("computer", 656)):
        facts = DATASETS[dataset]
        assert facts.num_features is not None
        config = resolve_config("ssge", load_recipe(f"ssge/{dataset}").config)
        method = build("ssge", config.model_dump(), GraphInfo(1, 1, facts.num_features))
        count = sum(p.numel() for p in method.parameters()) + config.widths[-1]  # type: ignore[attr-defined]
        assert round(count / 1000) == thousands


def test_toml_round_trip(tmp_path: Path) -> None:
    values = {"a": 1, "b": 1e-05, "c": 'x"y\\z', "d": [1, 2], "e": True, "f": 0.1}
    path = tmp_path / "x.toml"
    path.write_text(write_toml(values))
    assert read_toml(path) == values


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_setting_survives_its_file(method: str, tmp_path: Path) -> None:
    config, path = resolve_config(method), tmp_path / "config.toml"
    path.write_text(write_toml(config.model_dump(mode="json")))
    assert resolve_config(method, read_toml(path)) == config


@pytest.mark.parametrize("text", ["method = ", "methd = 1", 'method = "ssge"', "\xff"])
def test_bad_recipe_file_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(InputError) as error:
        load_recipe(str(path))
    assert "\n" not in str(error.value)
    assert "mine.toml" in str(error.value)
