from __future__ import annotations

import re
from importlib import resources
from typing import get_args, get_type_hints

import pytest

from ssge.datasets import DATASETS, Facts, facts_of
from ssge.errors import UnknownNameError


def test_all_datasets_are_there() -> None:
    benchmarks = {"cora", "citeseer", "pubmed", "wikics", "computer", "coauthor_cs", "arxiv"}
    assert set(DATASETS) == benchmarks | {"imports", "digits", "karate", "sbm"}


def test_look_up_is_lenient_and_names_the_nearest() -> None:
    assert DATASETS["Coauthor-CS"].name == "coauthor_cs"
    with pytest.raises(UnknownNameError, match="'citeseer'"):
        DATASETS["citesear"]


@pytest.mark.parametrize("name", list(DATASETS))
def test_facts_are_complete(name: str) -> None:
    facts = DATASETS[name]
    assert facts.name == name
    assert facts.description.endswith(".")
    assert facts.description.count(".") == 1
    assert facts.source
    assert facts.reference
    assert facts.license
    hints = get_type_hints(Facts)
    assert facts.format in get_args(hints["format"])
    assert facts.split in get_args(hints["split"])
    assert len(facts.class_names) in (0, facts.num_classes)
    assert len({file.name for file in facts.files}) == len(facts.files)
    for file in facts.files:
        assert file.url.startswith("https://")
        assert not file.path.startswith("/")
        assert file.sha256 is None or len(file.sha256) == 64
    if any(file.sha256 is None for file in facts.files):
        assert "checksum" in facts.note


def test_constants_of_the_released_code() -> None:
    decay = {name: DATASETS[name].probe_weight_decay for name in DATASETS}
    assert {name: value for name, value in decay.items() if value != 1e-4} == {"citeseer": 1e-2, "pubmed": 0.0}
    assert {name for name in DATASETS if DATASETS[name].public_in_released_code} == {"cora", "wikics"}


@pytest.mark.parametrize("source", ["cora", " Cora", "sbm:nodes=100", "Coauthor-CS"])
def test_facts_of_a_dataset(source: str) -> None:
    facts = facts_of(source)
    assert facts is not None
    assert facts is DATASETS[source.partition(":")[0].strip()]


@pytest.mark.parametrize("source", ["./cora", "cora.csv", "data/cora", "nothing", "", "/tmp/cora:nodes=1"])
def test_a_path_or_an_unknown_name_has_no_facts(source: str) -> None:
    assert facts_of(source) is None


def test_downloads_are_encrypted() -> None:
    text = resources.files("ssge.datasets").joinpath("catalog.toml").read_text()
    urls = re.findall(r'"(\w+)://', text)
    assert len(urls) > 6 and set(urls) == {"https"}
