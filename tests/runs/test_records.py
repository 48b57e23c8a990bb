"""Records: what a run tells of its process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from ssge.records import peak_memory_mb


def test_peak_memory_is_not_that_of_the_parent() -> None:
    large = np.ones(50_000_000)  # 400 MB, which the account of a child's resources begins with
    words = "from ssge.records import peak_memory_mb; print(peak_memory_mb())"
    done = subprocess.run([sys.executable, "-c", words], check=True, capture_output=True, text=True)
    assert 10 < float(done.stdout) < 350
    assert peak_memory_mb() > large.nbytes / 2**20
