"""README and CONTRIBUTING: their code runs, and their commands parse."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

from graphs import random_graph
from ssge.methods import METHODS
from ssge.ops.random import Key
from ssge.training.checkpoint import build
from ssge.training.trainer import train

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


def test_contributing_s_method_is_one_file_that_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = [block for block in blocks("CONTRIBUTING.md", "python") if "METHODS.register" in block]
    monkeypatch.setattr(METHODS, "_items", dict(METHODS._items))
    monkeypatch.setattr(METHODS, "_names", dict(METHODS._names))
    exec(compile(code, "CONTRIBUTING.md", "exec"), {"__name__": "my_method"})
    graph = random_graph()
    method = build("my_method", {"epochs": 30, "widths": (8, 4), "lr": 0.01}, graph.info)
    history = train(method, method.prepare(graph), Key(0)).history
    assert history[-1]["total"] < history[0]["total"]
    assert torch.isfinite(method.embed(graph)).all()


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
