"""Flags of a method's settings: made of a file, which must say what the classes say."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from commands import code_of

from ssge.cli.settings import described, settings, settings_class
from ssge.methods import METHODS
from ssge.runs.plan import resolve_config
from ssge.terminal import as_flags, explained


def test_the_file_says_what_the_classes_say() -> None:
    """A method that the file does not know yet is imported, so one file still adds a method."""
    known = {name: json.loads(json.dumps(described(METHODS[name]))) for name in settings()}
    assert settings() == known, "run: python -m ssge.cli.settings"


@pytest.mark.parametrize("method", list(METHODS))
def test_a_default_given_as_a_flag_is_the_default(method: str) -> None:
    config = METHODS[method].Config()
    made = settings_class(METHODS[method].title)
    assert [field.name for field in fields(made)] == list(type(config).model_fields)
    assert set(vars(made()).values()) == {None}
    values: dict[str, Any] = {name: getattr(config, name) for name in type(config).model_fields}
    assert resolve_config(method, vars(made(**values))) == config


def test_what_follows_the_graph_is_said_so() -> None:
    ssge = settings()["ssge"]
    assert [name for name in ssge if ssge[name]["default"] == "follows the graph"] == [
        "epochs", "uniformity_weight", "widths", "blocks",
    ]  # fmt: skip
    assert described(METHODS["bgrl"])["epochs"]["default"] == METHODS["bgrl"].Config().epochs


def test_help_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("fit", "--help") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Width of each layer, the embedding last. [default: follows the graph]" in shown
    assert "[default: 40]" not in shown
    assert code_of("fit", "--help", "--method", "deepwalk") == 0
    assert "--walk-length" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("python", "flags"),
    [
        ("missing='impute' fills it in.", "--missing impute fills it in."),
        ("or ignore=['page name'].", "or --ignore 'page name'."),
        ("give columns=[...] to use some.", "give --columns ... to use some."),
        ("unknown='add' or 'drop' lets it through", "--unknown add or drop lets it through"),
        ("give nodes=...", "give --nodes ..."),
        ("weight=2 takes it", "--weight 2 takes it"),
        ("edge_columns=['a', 'b']", "--edge-columns a b"),
        ("a file named x=3.csv, id 'id'", "a file named x=3.csv, id 'id'"),
    ],
)
def test_messages_speak_of_flags(python: str, flags: str) -> None:
    assert as_flags(python) == flags


@pytest.mark.parametrize("words", [("cluster", "r", "-k", "2.5"), ("neighbors", "r", "a", "-k", "1.9")])
def test_a_fraction_is_no_whole_number(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*words) == 2
    assert capsys.readouterr().err == f"ssge: -k must be a whole number; received {words[-1]}.\n"


def test_a_dot_in_the_name_of_a_column_is_no_fraction(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("1.5,b.c\nx,y\ny,z\nz,x\n")
    out = ("--features", "degree", "--epochs", "1", "--widths", "2", "--out", tmp_path / "r", "--quiet")
    assert code_of("fit", tmp_path / "e.csv", "--source", "1.5", "--target", "b.c", *out) == 0


def test_a_lack_of_memory_without_a_word_is_one_line() -> None:
    assert explained(MemoryError()) == ("not enough memory: the system has no more to give.", 2)


def test_weights_of_blocks_go_with_the_blocks_that_the_graph_gets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("fit", "karate", "--epochs", "1", "--quiet", "--out")
    assert code_of(*words, tmp_path / "three", "--block-weights", "0.3", "1", "1") == 0
    assert code_of(*words, tmp_path / "two", "--block-weights", "0.3", "1") == 2
    assert "--block-weights: must be one number for each of blocks (features, propagated" in capsys.readouterr().err
    assert not (tmp_path / "two").exists()
