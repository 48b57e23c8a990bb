"""Hostile graphs and tables: a right result, or one line and exit code 2; never a traceback, a hang or a leftover."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostile import edge_tables, graph_files, node_tables
from hostile.case import Case, Server, judge, run

CASES = [*edge_tables.cases(), *node_tables.cases(), *graph_files.cases()]


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return the memory of a sound command."""
    done = run(("fit", "karate", "--epochs", "1", "--out", "run", "--quiet"), tmp_path_factory.mktemp("sound"))
    assert done.code == 0, done.err
    return done.memory


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_hostile_file(case: Case, tmp_path: Path, server: Server, baseline: int) -> None:
    judge(case, tmp_path, server, baseline)


def test_no_two_cases_have_one_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 400
