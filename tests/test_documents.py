"""README: its code runs, and its commands parse."""

from __future__ import annotations

import re
import shlex
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
