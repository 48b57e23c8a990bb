"""Records and pages: every record is of a script, its settings are those of today, and pages are made of records."""

from __future__ import annotations

import json
import subprocess
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import pages
from ssge.experiments.compare import Summary
from ssge.runs.recipes import Recipe, load_recipe

RECORDS = {str(path.relative_to(pages.RESULTS)): path for path in sorted(pages.RESULTS.rglob("*.json"))}
SUMMARY = pages.RESULTS / "recipes" / "ssge" / "cora.json"
TEXTS = [(group, page) for group in pages.GROUPS for page in group.pages if not page.path.endswith(".png")]


def test_every_record_is_of_one_script() -> None:
    found = list(chain.from_iterable(pages.RESULTS.glob(group.records) for group in pages.GROUPS))
    assert sorted(found) == list(RECORDS.values())
    for group in pages.GROUPS:
        if any(pages.RESULTS.glob(group.records)):
            assert (pages.ROOT / "benchmarks" / f"{group.script}.py").is_file()


@pytest.mark.parametrize("name", RECORDS)
def test_settings_and_protocol_are_those_of_the_recipe(name: str) -> None:
    record = pages.read(RECORDS[name])
    assert pages.differences(record) == []
    if isinstance(record, Summary):
        assert name == f"recipes/{record.recipe.name}.json"
        assert all(record.protocol.name in run.scores for run in record.records)
        assert len({run.threads for run in record.records if run.recipe}) == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"config": {"lr": 0.5}}, ["lr 0.001, now 0.5"]),
        ({"protocol": "quick"}, ["protocol paper, the recipe names quick"]),
        ({"published": {}}, ["published"]),
        ({"config": {"epochs": 7, "edge_drop": 0.9}}, ["epochs 80, now 7", "edge_drop 0.3, now 0.9"]),
    ],
)
def test_a_changed_recipe_is_told(changes: dict[str, Any], told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(name: str) -> Recipe:
        recipe = load_recipe(name)
        config = recipe.config | changes.get("config", {})
        return recipe.model_copy(update={**changes, "config": config})

    summary = pages.read(SUMMARY)
    monkeypatch.setattr(pages, "load_recipe", changed)
    found = pages.differences(summary)
    assert len(found) == len(told) and all(any(text in line for line in found) for text in told)


def test_settings_that_came_or_went_are_told() -> None:
    summary = pages.read(SUMMARY)
    assert isinstance(summary, Summary)
    run = summary.records[-1]
    run.config["learning_rate"] = run.config.pop("lr")
    assert pages.differences(summary) == ["learning_rate is no setting any more", "lr is not in the record"]
    gone = summary.model_copy(update={"recipe": summary.recipe.model_copy(update={"name": "ssge/atlantis"})})
    assert pages.differences(gone) == ["recipe ssge/atlantis is gone"]


def test_changed_code_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    monkeypatch.setattr(pages, "renew", lambda group: None)
    pages.write("bias", {"cora": 1}, ["ssge/cora"])
    path = tmp_path / "bias.json"
    record = pages.read(path)
    assert isinstance(record, pages.Record) and record.machine["torch"] and record.date
    assert pages.stale(path) == [] and pages.figures_of("bias") == {"cora": 1}
    monkeypatch.setattr(pages, "digest_of", lambda *modules, without: "other")
    assert pages.stale(path) == ["code of ssge has changed"] and pages.figures_of("bias") == {}
    monkeypatch.undo()
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    path.write_text(json.dumps({"figures": {}}))
    assert [line.split(":")[0] for line in pages.stale(path)] == [
        "code of benchmarks/bias.py is unknown",
        "code of ssge is unknown",
    ]


def test_changed_code_of_runs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = Summary.read(SUMMARY)
    for run in summary.records:
        run.code = pages.code_digest("ssge" if run.recipe else run.method, run.config)
    summary.write(tmp_path / "cora.json")
    assert pages.stale(tmp_path / "cora.json") == []
    monkeypatch.setattr(pages, "code_digest", lambda method, config: "other")
    assert pages.stale(tmp_path / "cora.json") == ["code of ssge has changed"]


def test_code_of_blocks_counts_only_where_an_embedding_has_them() -> None:
    whole = pages.code_digest("ssge")
    assert pages.code_digest("ssge", {"blocks": ["features", "learned"]}) == whole
    assert pages.code_digest("ssge", {"blocks": ["learned"]}) == pages.code_digest("ssge", {}) != whole
    assert pages.code_digest("grace", {}) == pages.code_digest("grace")  # imports no blocks
    default, paper = (pages.code_of(pages.group_of(name))["ssge"] for name in ("selection", "clusters"))
    assert default == whole and paper == pages.code_digest("ssge", {})


def test_the_stamp_names_the_commit() -> None:
    if not (pages.ROOT / ".git").exists():
        pytest.skip("no repository")
    words = ["git", "-C", str(pages.ROOT), "rev-parse", "HEAD"]
    assert pages.commit() == subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def test_the_stamp_follows_what_a_script_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "__file__", str(tmp_path / "pages.py"))

    def digest(text: str) -> str:
        (tmp_path / "mine.py").write_text(text)
        return pages._script_digest("mine")

    first = digest("SEEDS = 3\n\ndef block(record):\n    return 'a'\n")
    assert digest("# why\nSEEDS = 3\n\ndef block(record):\n    return 'b'\n") == first
    assert digest("SEEDS = 4\n\ndef block(record):\n    return 'a'\n") != first
    assert digest("RATE = Field(0.5, description='a rate')\n") == digest("RATE = Field(0.5, description='a share')\n")
    assert digest("RATE = Field(0.4, description='a rate')\n") != digest("RATE = Field(0.5, description='a rate')\n")
    imports = "from other import A\n"
    (tmp_path / "other.py").write_text("A = 1\n")
    one = digest(imports)
    (tmp_path / "other.py").write_text("A = 2\n")
    assert digest(imports) != one


@pytest.mark.parametrize(("group", "page"), TEXTS, ids=[f"{page.path}, {page.block}" for _, page in TEXTS])
def test_pages_are_those_of_the_records(group: pages.Group, page: pages.Page) -> None:
    assert pages.renewed(group, page) == (pages.ROOT / page.path).read_text("utf-8")


def test_blocks_are_replaced_and_their_surroundings_kept() -> None:
    text = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n"
    new = pages.replaced(text, "x", "new\n")
    assert new == "a\n<!-- x: begin -->\nnew\n<!-- x: end -->\nb\n"
    assert pages.replaced(new, "x", "old\n") == text
    for broken in (text.replace("begin", "began"), text.replace("end", "ended")):
        with pytest.raises(ValueError, match="No block 'x'"):
            pages.replaced(broken, "x", "new\n")


def test_tables_in_markdown() -> None:
    assert pages.table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"
    assert pages.spread([1.0, 3.0], 2) == "2.00 ± 1.41"


def test_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for words, lines in ((["--list"], len(pages.GROUPS)), (["--stale"], len(RECORDS))):
        monkeypatch.setattr("sys.argv", ["pages.py", *words])
        monkeypatch.setattr(pages, "stale", lambda path: ["another tide"])
        assert pages.main() == (words == ["--stale"])
        assert len(capsys.readouterr().out.splitlines()) == lines
    monkeypatch.setattr(pages, "stale", lambda path: [])
    assert pages.main() == 0
