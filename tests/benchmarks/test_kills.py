"""Runs that are killed on the way are resumed bit-equal; two on one folder do not both win."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "kills.py"


def test_killed_runs_and_pairs() -> None:
    """In a process of its own, because a fork of a test worker would hold its pipes."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--kills", "40", "--pairs", "10"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("40 killed and resumed bit-equal") and "in 10 of 10 pairs" in done.stdout
