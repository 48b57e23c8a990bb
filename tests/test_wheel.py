"""The wheel as a user gets it: installed without extras, away from the checkout, README's commands run.

The environment is `.venv-wheel`, made anew when the sources change. Dependencies are links to the packages that run
these tests, but only to those that the wheel asks for: what it forgets to ask for is not there. No download, seconds.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-wheel"
PYTHON = HOME / "bin" / "python"
SITE = HOME / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
PARTS = ("pyproject.toml", "README.md", "LICENSE", "src")
OPTIONAL = ("pandas", "polars", "matplotlib", "faiss", "plotly", "openTSNE")


def run(*words: str | Path, cwd: Path | None = None, **further: str) -> str:
    """Run a program that sees nothing of the checkout; return what it prints, notes first."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=kept | further, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{shlex.join(map(str, words))}\n{done.stderr}"
    return done.stderr + done.stdout


def sources() -> Iterator[Path]:
    for part in PARTS:
        path = ROOT / part
        yield from sorted(path.rglob("*")) if path.is_dir() else [path]


def digest() -> str:
    """Return a digest of all that the wheel is made of, and of the interpreter."""
    found = hashlib.sha256(sys.executable.encode())
    for path in sources():
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path):
            found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()


def asked_for(dist: Distribution, extras: frozenset[str], found: dict[str, Distribution]) -> dict[str, Distribution]:
    """Return the distributions that one asks for, and those that these ask for."""
    for line in dist.requires or ():
        need = Requirement(line)
        name, marker = need.name.casefold(), need.marker
        holds = marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras})
        if holds and name not in found:
            found[name] = distribution(name)
            asked_for(found[name], frozenset(need.extras), found)
    return found


def link(dist: Distribution) -> None:
    """Link the files of an installed distribution into the environment."""
    for name in {file.parts[0] for file in dist.files or ()} - {"..", "__pycache__"}:
        if not (SITE / name).exists():
            (SITE / name).symlink_to(Path(str(dist.locate_file(name))))


@pytest.fixture(scope="module")
def wheel() -> Path:
    """Return the interpreter of an environment with the wheel and nothing that it does not ask for."""
    stamp = HOME / "digest"
    if stamp.is_file() and stamp.read_text() == digest():
        return PYTHON
    shutil.rmtree(HOME, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:  # in the checkout, setuptools would pack what is deleted
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, Path(folder) / part)
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
        run(*pip, "wheel", "--no-deps", "-w", "dist", ".", cwd=Path(folder))
        run(sys.executable, "-m", "venv", "--without-pip", HOME)
        (built,) = Path(folder, "dist").glob("*.whl")
        # Every demand of the wheel is met by the versions that constraints.txt pins, found without any index.
        run(*pip, "install", "--dry-run", "--no-index", "-c", ROOT / "constraints.txt", built)
        run(*pip, "--python", PYTHON, "install", "--no-deps", built)
    (found,) = SITE.glob("ssge-*.dist-info")
    for dist in asked_for(Distribution.at(found), frozenset(), {}).values():
        link(dist)
    run(*pip, "--python", PYTHON, "check")
    stamp.write_text(digest())
    return PYTHON


def write_tables(folder: Path) -> None:
    """Write the tables of README's commands: people in three circles, a dozen more in the grown ones."""
    rng = np.random.default_rng(0)
    names = ["alice", *(f"p{i}" for i in range(1, 102))]
    for n, edges, nodes in ((90, "edges", "nodes"), (102, "grown", "grown_nodes")):
        ends = [(i, 3 * int(j) + i % 3) for i in range(n) for j in rng.integers(n // 3, size=4)]
        rows = "".join(f"{names[i]},{names[j]}\n" for i, j in ends)
        (folder / f"{edges}.csv").write_text("source,target\n" + rows)
        ages = "".join(f"{name},{rng.integers(20, 70) + 20 * (i % 3)}\n" for i, name in enumerate(names[:n]))
        (folder / f"{nodes}.csv").write_text("id,age\n" + ages)
    known = "".join(f"{name},{'abc'[i % 3]}\n" for i, name in enumerate(names[:60]))
    (folder / "labels.csv").write_text("id,label\n" + known)


def use(language: str) -> list[str]:
    """Return the blocks of README's section Use."""
    section = re.search(r"^## Use\n(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S)
    assert section
    return re.findall(rf"```{language}\n(.*?)```", section.group(1), re.S)


def test_what_is_optional_is_not_there(wheel: Path, tmp_path: Path) -> None:
    code = f"import ssge, importlib.util as u; print(ssge.__file__, [n for n in {OPTIONAL} if u.find_spec(n)])"
    printed = run(wheel, "-c", code, cwd=tmp_path)
    assert str(SITE) in printed and printed.rstrip().endswith("[]")


def test_readme_s_commands_run(wheel: Path, tmp_path: Path) -> None:
    write_tables(tmp_path)
    own, *benchmarks = use("bash")
    lines = [line.split("#")[0].strip() for line in own.splitlines()]
    lines += [line.split("#")[0].strip() for block in benchmarks for line in block.splitlines() if "ssge ls" in line]
    lines += ["ssge fit karate --out karate", "ssge evaluate karate --protocol quick"]  # Cora needs its files
    lines = [line for line in lines if line]
    assert len(lines) >= 11 and all(line.startswith("ssge ") for line in lines)
    code = "import sys\nfrom ssge.cli import main\n"  # one process for all: torch is imported once
    for line in lines:
        code += f"print({line!r}, file=sys.stderr)\ntry: main({shlex.split(line)[1:]!r})\n"
        code += "except SystemExit as end: assert not end.code, end.code\n"
    run(wheel, "-c", code, cwd=tmp_path)
    assert {"run", "clusters.csv", "predicted.csv", "new.parquet", "run2"} <= {p.name for p in tmp_path.iterdir()}
    assert "cosine" in run(HOME / "bin" / "ssge", "neighbors", "run", "alice", cwd=tmp_path)


@pytest.mark.parametrize("code", use("python"))
def test_readme_s_code_runs(wheel: Path, tmp_path: Path, code: str) -> None:
    run(wheel, "-c", code, cwd=tmp_path)


def test_the_quickstart_runs(wheel: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "quickstart.py", tmp_path)
    assert "Graph('calls': 90 nodes" in run(wheel, "quickstart.py", "out", cwd=tmp_path)


def test_the_demo_without_matplotlib_says_so(wheel: Path, tmp_path: Path) -> None:
    small = "--seeds 1 --quiet"
    code = f"""
from ssge import datasets
load = datasets.load
datasets.load = lambda name: load("karate")
from ssge.cli import main
main("demo {small}".split())
"""
    printed = run(wheel, "-c", code, cwd=tmp_path)
    assert "untrained encoder" in printed and "pictures: none, they need matplotlib" in printed


def test_pages_and_pictures_say_what_they_need(wheel: Path, tmp_path: Path) -> None:
    code = """
import sys
from importlib.resources import files
from ssge.cli import main
for line in ("fit karate --epochs 1 --out run --quiet", "report run --out r.html", "map run --out m.png"):
    try: main(line.split())
    except SystemExit as end: print(line.split()[0], end.code, file=sys.stderr)
parts = files("ssge.experiments.report").iterdir()
print(sorted(part.name for part in parts if part.suffix in (".js", ".html", ".css")))
"""
    printed = run(wheel, "-c", code, cwd=tmp_path)
    assert "fit 0" in printed and "report 2" in printed and "map 2" in printed
    assert "ssge: Pages need packages that are not here: pip install 'ssge[report]'" in printed
    assert "ssge: Pictures need a package that is not here: pip install 'ssge[plots]'" in printed
    assert "['base.js', 'charts.js', 'map.js', 'page.css', 'page.html']" in printed
