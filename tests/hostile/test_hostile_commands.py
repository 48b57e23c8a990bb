"""Hostile folders, embeddings, labels and command lines, judged as hostile files are."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from hostile import commands, newer_ways, node_tables, run_folders
from hostile.case import Case, Server, judge, run


def made() -> tuple[list[Case], int]:
    """Train a run and return the cases on it, and the memory of a sound command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = run(("fit", "karate", "--epochs", "2", "--widths", "8", "4", "--out", "run", "--quiet"), folder)
        assert done.code == 0, done.err
        files = {path.name: path.read_bytes() for path in (folder / "run").iterdir()}
        assert run(("convert", "karate", "--out", "g", "--quiet"), folder).code == 0
        graph = {path.name: path.read_bytes() for path in (folder / "g").iterdir()}
        found = [
            *run_folders.folder_cases(files, folder),
            *run_folders.embedding_cases(),
            *node_tables.label_cases(files["embedding.parquet"]),
            *commands.cases(),
            *newer_ways.cases(graph, files["embedding.parquet"]),
        ]
    return found, done.memory


CASES, BASELINE = made()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_hostile_command(case: Case, tmp_path: Path, server: Server) -> None:
    judge(case, tmp_path, server, BASELINE)


def test_no_two_cases_have_one_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 200
