"""The runner of hostile cases: what must be noticed is noticed, and the next command finds a sound process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hostile import case
from hostile.case import Case, Server, judge


def fail(words: list[str]) -> None:
    raise RuntimeError("no such luck")


@pytest.mark.parametrize(
    ("command", "limits", "noticed"),
    [
        (lambda words: os.kill(os.getpid(), signal.SIGUSR1), {}, "exit code -10"),
        (lambda words: signal.pause(), {"SECONDS": -0.9}, "exit code -9"),  # a second is added to it
        (fail, {}, "exit code 99"),
        (lambda words: np.ones(1 << 24), {"MEMORY": 1 << 26}, r"^0\.\d+, \d+: bad"),
        (lambda words: np.empty(case.ADDRESSES), {}, "exit code 99"),
        (lambda words: print("\x1b[2J"), {}, "bad"),
        (lambda words: Path("mine").write_text("yours"), {}, "changed"),
    ],
    ids=["dies", "hangs", "raises", "swells", "asks for too much", "clears the screen", "overwrites"],
)
def test_a_bad_command_is_noticed(
    command: Callable[[list[str]], object],
    limits: dict[str, float],
    noticed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = case.run(("ls", "methods"), tmp_path)
    with closing(Server()) as server:
        monkeypatch.setattr(case, "main", lambda words: command(words) if words == ["bad"] else None)
        with monkeypatch.context() as patch:
            for name, limit in limits.items():
                patch.setattr(case, name, limit)
            with pytest.raises(AssertionError, match=noticed):
                judge(Case("a case, bad", ("bad",), {"mine": "mine"}), tmp_path, server, sound.memory)
        judge(Case("a case, good", ("good",)), tmp_path, server, sound.memory)


def test_a_new_kind_and_a_spent_process_get_a_fresh_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case, "main", lambda words: print(os.getpid()))
    with closing(Server()) as server:
        kinds = [*"aab", *"ab" * case.COMMANDS]
        pids = [int(server.run((kind,), tmp_path, kind).out) for kind in kinds]
    assert pids[0] == pids[1] != pids[2]
    assert pids[2:] == sorted(pids[2:], key=pids.index)
    assert {pids.count(pid) for pid in pids[2 : 2 + 2 * case.COMMANDS]} == {case.COMMANDS}
    assert os.getpid() not in pids
