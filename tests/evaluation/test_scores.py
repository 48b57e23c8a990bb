"""Mean and deviation, agreement of partitions, and what importing the room costs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ssge.errors import InputError
from ssge.evaluation import mean_std
from ssge.evaluation.scores import agreement


def test_mean_std():
    assert mean_std([1.0, 2.0, 6.0]) == pytest.approx((3.0, 7.0**0.5))
    assert mean_std((0.5,)) == (0.5, 0.0)
    with pytest.raises(InputError, match="at least one"):
        mean_std([])


@pytest.mark.parametrize("sizes", [(1, 1), (1, 5), (5, 1), (2, 2), (3, 7), (40, 40)])
def test_agreement_is_that_of_scikit_learn(sizes):
    rng = np.random.default_rng(0)
    first, second = (3 * rng.integers(size, size=40) for size in sizes)
    for one, other in ((first, second), (first, first), (first, -first), (np.arange(40), first)):
        expected = normalized_mutual_info_score(one, other), adjusted_rand_score(one, other)
        assert agreement(one, other) == pytest.approx(expected, abs=1e-12)


def test_importing_evaluation_is_light_and_sees_no_model():
    program = (
        "import sys, ssge.evaluation;"
        "heavy = ('torch', 'sklearn', 'ssge.datasets', 'ssge.methods', 'ssge.training', 'ssge.nn');"
        "print([m for m in heavy if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
