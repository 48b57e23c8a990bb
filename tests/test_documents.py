"""README: its code runs, its commands parse, its tables come from the records."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent


def blocks(file: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text(), re.DOTALL)


@pytest.mark.parametrize("code", blocks("README.md", "python"))
def test_readme_code_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    if "model" in names:
        assert np.array_equal(names["model"].embedding_, names["again"].embedding_)  # type: ignore[attr-defined]


def test_readme_commands_exist() -> None:
    from ssge.cli import application

    app = application(type(None))
    commands = [line.split("#")[0] for block in blocks("README.md", "bash") for line in block.splitlines()]
    shown = [shlex.split(line) for line in commands if line.startswith("ssge ")]
    assert len(shown) >= 5
    for words in shown:
        app.parse_args(words[1:], exit_on_error=False, print_error=False)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for line in commands:
        if line.startswith("make "):
            assert line.split()[1] in targets


def test_readme_tables_are_those_of_the_records() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import results
    finally:
        sys.path.pop(0)
    readme = (ROOT / "README.md").read_text()
    assert results.renew(readme, results.tables()) == readme


def test_the_page_on_clustering_is_that_of_the_record() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import bias
        import clusters
    finally:
        sys.path.pop(0)
    page = (ROOT / "docs" / "clustering.md").read_text()
    assert bias.table(json.loads(bias.RECORD.read_text())) in page
    assert clusters.BEGIN + clusters.tables(json.loads(clusters.RECORD.read_text())) + clusters.END in page


def test_tables_of_the_fast_recipes_are_those_of_the_record() -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import fast
    finally:
        sys.path.pop(0)
    table = fast.table(json.loads(fast.RECORD.read_text()))
    assert all(fast.BEGIN + table + fast.END in page.read_text() for page in fast.PAGES)
