from __future__ import annotations

import pytest

from ssge.datasets import DATASETS
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
    assert len(facts.class_names) in (0, facts.num_classes)
    assert len({file.name for file in facts.files}) == len(facts.files)
    for file in facts.files:
        assert all(url.startswith("http") for url in file.urls)
        assert not file.path.startswith("/")
        assert file.sha256 is None or len(file.sha256) == 64
    if any(file.sha256 is None for file in facts.files):
        assert "checksum" in facts.note


def test_only_citation_graphs_are_normalized() -> None:
    assert {n for n in DATASETS if DATASETS[n].normalization == "row"} == {"cora", "citeseer", "pubmed"}
