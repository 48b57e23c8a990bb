"""One file adds a method: the one in CONTRIBUTING passes every test over the registry, without a recipe."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What goes over the registry, and what looks up each method that it knows.
SUITE = ["tests/methods", "tests/training"]


def test_the_method_of_contributing_passes_the_contract(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    (code,) = [block for block in blocks if "class MyMethod" in block]
    shutil.copytree(ROOT / "src" / "ssge", tmp_path / "ssge", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "ssge" / "methods" / "my_method.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "my_method", *SUITE],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) > 40
