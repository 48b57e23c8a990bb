"""The house: imports go downwards only, rooms on one floor do not know each other, heavy imports are late."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "ssge"
FLOORS = [
    {"errors", "registry", "files", "records", "schema"},
    {"graph", "foreign"},
    {"ops"},
    {"views", "io"},
    {"nn", "objectives", "datasets", "evaluation"},
    {"methods", "tasks"},
    {"training"},
    {"runs"},
    {"experiments"},
    {"uses"},
    {"estimator"},
    {"cli", "terminal", "__main__"},
]
TOGETHER = {
    ("records", "files"),
    ("records", "errors"),
    ("schema", "files"),
    ("schema", "errors"),
    ("registry", "errors"),
    ("graph", "foreign"),
    ("datasets", "io"),
    ("__main__", "cli"),
    ("cli", "terminal"),
}
"""Who may import whom on one floor."""


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def modules(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively, which this test does not follow"
            if node.module == "ssge":
                found |= {f"ssge.{alias.name}" for alias in node.names}
            else:
                found.add(node.module or "")
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("ssge.")} - {"ssge.__version__"}


def imports(path: Path) -> set[str]:
    """Return the rooms that a file imports from."""
    return {name.split(".")[1] for name in modules(path)}


FILES = [p for p in sorted(SOURCE.rglob("*.py")) if p != SOURCE / "__init__.py"]


def test_every_room_has_a_floor() -> None:
    assert {room(path) for path in FILES} == set.union(*FLOORS)


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(SOURCE)) for p in FILES])
def test_imports_go_downwards(path: Path) -> None:
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    own = room(path)
    for other in imports(path) - {own}:
        assert floor[other] < floor[own] or (own, other) in TOGETHER, f"{own} must not import {other}"


def test_every_module_that_is_imported_is_in_the_tree() -> None:
    """A file that version control ignores is there for its author alone."""
    for path in FILES:
        assert (path.parent / "__init__.py").is_file(), path.parent
        for name in modules(path):
            module = SOURCE.joinpath(*name.split(".")[1:])
            assert module.with_suffix(".py").is_file() or (module / "__init__.py").is_file(), f"{path}: no {name}"


def test_no_method_imports_another() -> None:
    for path in (SOURCE / "methods").glob("*.py"):
        if path.name != "__init__.py":
            others = {name for name in modules(path) if name.startswith("ssge.methods")}
            assert all(name.startswith("ssge.methods._") for name in others), path.name  # a base, never another method


def test_evaluation_sees_arrays_only() -> None:
    for path in (SOURCE / "evaluation").glob("*.py"):
        assert imports(path) <= {"errors", "evaluation", "graph", "registry"}, path.name
        assert "import Graph" not in path.read_text()


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("ssge", ("numpy", "torch", "sklearn", "pydantic")),
        ("ssge.cli", ("numpy", "torch", "sklearn", "matplotlib")),
        ("ssge.datasets", ("torch", "sklearn", "matplotlib")),
        ("ssge.evaluation", ("torch", "sklearn")),
        ("ssge.tasks.search, ssge.tasks.clusters, ssge.tasks.classify", ("torch", "sklearn", "faiss")),
        ("ssge.experiments.figures", ("matplotlib", "sklearn")),
    ],
)
def test_heavy_imports_are_late(module: str, unwanted: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([m for m in {unwanted!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
