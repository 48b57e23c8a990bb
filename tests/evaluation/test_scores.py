"""Mean and deviation, and what importing the room costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ssge.errors import InputError
from ssge.evaluation import mean_std


def test_mean_std():
    assert mean_std([1.0, 2.0, 6.0]) == pytest.approx((3.0, 7.0**0.5))
    assert mean_std((0.5,)) == (0.5, 0.0)
    with pytest.raises(InputError, match="at least one"):
        mean_std([])


def test_importing_evaluation_is_light_and_sees_no_model():
    program = (
        "import sys, ssge.evaluation;"
        "heavy = ('torch', 'sklearn', 'ssge.datasets', 'ssge.methods', 'ssge.training', 'ssge.nn');"
        "print([m for m in heavy if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
