"""Every recipe parses, fits its method, and says what the paper says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssge.cli.info import catalog
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

# Typed from the paper's Table 3: inputs, and the accuracy on each dataset in the order of PAPER.
TABLE: dict[str, tuple[Any, ...]] = {
    "MLP": ("X, Y", 57.8, 54.2, 72.8, 71.98, 73.81, 90.37, 55.5),
    "GCN": ("A, X, Y", 81.5, 70.2, 79.0, 77.19, 86.51, 93.03, 71.74),
    "GAT": ("A, X, Y", 83.0, 72.5, 79.0, 77.65, 86.93, 92.31, 72.1),
    "DeepWalk": ("A", 68.5, 49.8, 66.2, 74.35, 85.68, 84.61, None),
    "Node2Vec": ("A", 70.1, 49.8, 69.8, 71.79, 84.39, 85.08, 70.07),
    "GAE": ("A, X", 71.5, 65.8, 72.1, 77.87, 85.27, 90.01, None),
    "VGAE": ("A, X", 73.0, 68.3, 75.8, 77.87, 86.37, 92.11, None),
    "GMI": ("A, X", 83.0, 72.4, 79.9, 74.85, 82.21, 88.78, None),
    "DGI": ("A, X", 82.3, 71.8, 76.8, 78.25, 83.95, 92.15, 70.34),
    "GGD": ("A, X", 83.5, 73.0, 81.0, 78.62, 88.12, 92.3, 71.2),
    "MVGRL": ("A, X", 83.5, 73.3, 80.1, 77.57, 87.52, 92.11, None),
    "GRACE": ("A, X", 81.9, 71.3, 80.1, 78.64, 88.29, 92.17, None),
    "GCA": ("A, X", 81.7, 71.1, 79.5, 78.35, 87.85, 93.1, None),
    "MERIT": ("A, X", 83.1, 73.5, 80.1, 78.35, 88.01, 92.51, None),
    "gCooL": ("A, X", 82.8, 72.0, 80.2, 78.74, 88.67, 92.75, None),
    "COSTA": ("A, X", 82.2, 70.7, 80.4, 78.82, 88.32, 92.94, None),
    "HomoGCL": ("A, X", 84.1, 72.3, 81.1, 78.26, 88.46, 92.28, None),
    "BGRL": ("A, X", 82.7, 71.1, 79.6, 78.41, 87.89, 92.72, 71.44),
    "AFGRL": ("A, X", 79.8, 69.4, 80.0, 77.62, 88.12, 93.07, None),
    "RGRL": ("A, X", 83.5, 71.5, 79.8, 78.78, 88.45, 92.94, 71.49),
    "CCA-SSG": ("A, X", 83.9, 73.0, 80.7, 77.92, 88.76, 93.01, 71.21),
    "G-BT": ("A, X", 83.6, 72.9, 80.4, 76.83, 87.93, 92.91, 71.12),
    "SSGE": ("A, X", 83.9, 74.1, 81.6, 79.18, 89.05, 93.46, 71.62),
}


@pytest.mark.parametrize("name", list(recipes()))
def test_every_recipe_can_be_used(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.name == name
    assert name == f"{recipe.method}/{name.split('/')[1]}"
    assert recipe.dataset in DATASETS
    assert recipe.protocol in PROTOCOLS
    if recipe.method in ("bgrl", "g_bt", "grace", "gmi", "merit"):  # probes chosen or converged in their papers
        assert recipe.protocol == "paper-lbfgs"
    if recipe.method in ("dgi", "mvgrl", "ggd") and recipe.dataset in ("cora", "citeseer", "pubmed"):
        assert recipe.protocol == "last-step"
    if METHODS[recipe.method].family in ("traditional", "contrastive") and recipe.dataset in (
        "computer",
        "coauthor_cs",
        "wikics",
    ):
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


@pytest.mark.parametrize("title", TABLE)
def test_every_row_of_the_paper_s_classification_table_is_a_method(title: str) -> None:
    inputs, *accuracies = TABLE[title]
    (method,) = [METHODS[name] for name in METHODS if METHODS[name].title == title]
    assert (method.inputs, method.supervised) == (inputs, "Y" in inputs)
    listed = {row["title"]: row["inputs"] for row in catalog("methods")}  # what `ssge ls methods` shows
    assert listed[title] == inputs
    for dataset, accuracy in zip(PAPER, accuracies, strict=True):
        name = f"{method.name}/{dataset}"
        assert name in recipes() or dataset == "arxiv"  # no settings are known for some methods there
        if name in recipes():
            assert load_recipe(name).published.get("accuracy") == accuracy


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
