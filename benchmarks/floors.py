"""Install the oldest versions that pyproject.toml allows into an environment of their own, and test the package there.

The floors are read from pyproject.toml and stand nowhere else. torch alone is the version that constraints.txt pins, as
its other builds bring gigabytes of GPU libraries. Extras come one by one, so that a floor that cannot be had is named.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from argparse import ArgumentParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ["tests/io", "tests/datasets", "tests/evaluation", "tests/training", "tests/runs", "tests/cli"]
TESTS += ["tests/methods/test_contract.py", "tests/experiments/test_report.py", "tests/test_estimator.py"]
BEYOND = ("torch>", "bokeh_sampledata>")
"""torch, and the data of an example, which asks for a newer pandas than this package does."""


def floors(demands: list[str]) -> list[str]:
    """Return the lowest version that each demand allows: ``name==1.2`` for ``name>=1.2,<3``."""
    bounded = [demand.split(",")[0] for demand in demands if ">=" in demand and not demand.startswith(BEYOND)]
    return [demand.replace(">=", "==") for demand in bounded]


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv-floors", help="the environment; made if missing")
    parser.add_argument("tests", nargs="*", default=TESTS, help="what pytest runs in it")
    args = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (torch,) = (line for line in (ROOT / "constraints.txt").read_text().split() if line.startswith("torch=="))
    base = [torch, *floors(project["dependencies"])]
    python = args.venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", args.venv], check=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--only-binary=:all:"]
    extras = {extra: [*base, *floors(demands)] for extra, demands in project["optional-dependencies"].items()}
    for name, wanted in {"torch": [torch], "no extra": base, **extras}.items():
        print(f"{name}: {' '.join(wanted)}", flush=True)
        subprocess.run([*pip, *wanted], check=True)
    subprocess.run([*pip, "--no-deps", "--editable", ROOT], check=True)
    limits = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    subprocess.run([python, "-m", "pytest", "-q", *args.tests], cwd=ROOT, env=os.environ | limits, check=True)


if __name__ == "__main__":
    main()
