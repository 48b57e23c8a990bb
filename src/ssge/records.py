"""RunRecord: all that is kept of a run, and the only thing that tables, figures and reports read."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from ssge.errors import InputError
from ssge.files import atomic


class Scores(BaseModel):
    """What one protocol measured on one embedding.

    Attributes
    ----------
    protocol, probe
        Their names and settings.
    accuracies
        Test accuracy of each probe (split or probe seed), as a fraction.
    valid_accuracies
        Validation accuracy of the same probes, the only figure that anything may be chosen by.
    nmi, ari
        Of k-means, one value per seed of k-means.
    geometry
        Label-free figures: effective rank, uniformity, Wasserstein distance.
    """

    model_config = ConfigDict(extra="forbid")

    protocol: str
    probe: dict[str, Any]
    splits: str
    accuracies: list[float]
    valid_accuracies: list[float]
    nmi: list[float]
    ari: list[float]
    geometry: dict[str, float]


class RunRecord(BaseModel):
    """A run, from its configuration to its scores; JSON both ways.

    Attributes
    ----------
    method, dataset, name
        Method, source of the graph (name of a dataset or path), and display name of the graph.
    config, recipe, reading, warm_start
        Resolved settings, and where they and the graph came from.
    splits
        Kind of splits whose training nodes a supervised method learned from; None for all others.
    graph, statistics, feature_names, columns
        Sizes of the graph, its degrees, the names of its feature columns where known, and the embedding width.
    node_columns
        What became of each column of the node table, as `ssge.schema.FeatureSchema.table` says it.
    final, diagnostics
        The kept epoch's line of history, and label-free figures of the embedding.
    machine, date, commit, code
        Versions and processor, when, from which commit, and the digest of the code that decides the figures.
    """

    model_config = ConfigDict(extra="forbid")

    method: str
    dataset: str
    seed: int
    config: dict[str, Any]
    name: str = ""
    recipe: str | None = None
    reading: dict[str, Any] = {}
    warm_start: str | None = None
    splits: str | None = None
    graph: dict[str, int] = {}
    columns: int = 0
    statistics: dict[str, float] = {}
    feature_names: list[str] = []
    node_columns: list[tuple[str, ...]] = []
    parameters: int = 0
    scale: float = 1.0
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    final: dict[str, float] = {}
    diagnostics: dict[str, float] = {}
    device: str = "cpu"
    precision: str = Field("float32", validation_alias=AliasChoices("precision", "dtype"))  # dtype: up to 0.1
    threads: int = 1
    processes: int = 1
    machine: dict[str, str] = {}
    date: str = ""
    commit: str = ""
    code: str = ""
    scores: dict[str, Scores] = {}

    @classmethod
    def now(cls, method: str, **facts: Any) -> RunRecord:
        """Return a record stamped with the machine, the date, the commit and a digest of the code."""
        date = datetime.now(UTC).isoformat(timespec="seconds")
        stamp = {"machine": machine(), "date": date, "commit": commit(), "code": code_digest(method)}
        return cls(method=method, **stamp, **facts)

    def write(self, path: Path) -> None:
        """Write the record as JSON, atomically."""
        with atomic(path) as temporary:
            temporary.write_text(self.model_dump_json(indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> RunRecord:
        """Read what `write` wrote."""
        if not path.is_file():
            raise InputError(f"No run in {path.parent}: {path.name} is missing.")
        try:
            return cls.model_validate_json(path.read_text())
        except (ValidationError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a run record of this version: {str(error).splitlines()[0]}.") from None


def code_digest(method: str) -> str:
    """Return a digest of the code that decides the figures of a method: training, evaluation and all they import.

    Other methods do not count.
    """
    return digest_of("training.trainer", "evaluation", f"methods.{method}")


@cache
def digest_of(*modules: str) -> str:
    """Return a digest of some modules of the package and of all modules that they import; unknown names are ignored.

    Docstrings, comments, formatting and messages of errors do not count.
    """
    root = Path(__file__).parent
    waiting = list(modules)
    seen: dict[Path, str] = {}
    while waiting:
        module = root.joinpath(*waiting.pop().split("."))
        for path in (module.with_name(f"{module.name}.py"), module / "__init__.py"):
            if path in seen or not path.exists():
                continue
            tree = meaning(path.read_text("utf-8"))
            seen[path] = ast.dump(tree)
            imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
            waiting += [name.removeprefix("ssge.") for name in imported if name.startswith("ssge.")]
    text = "\n".join(f"{path.relative_to(root)} {seen[path]}" for path in sorted(seen))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def meaning(source: str) -> ast.Module:
    """Return the syntax tree of a module without what cannot change a figure: docstrings and raised errors."""
    tree: ast.Module = _Meaning().visit(ast.parse(source))
    return tree


class _Meaning(ast.NodeTransformer):
    """Replace docstrings and raised errors."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else node

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return ast.Raise()


def commit() -> str:
    """Return the commit of the source tree; empty for an installed package."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        words = ["git", "-C", str(root), "rev-parse", "HEAD"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def peak_memory_mb() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    try:
        import resource
    except ImportError:  # Windows has no such module
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def version_of(package: str) -> str:
    """Return the version of an installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def machine() -> dict[str, str]:
    """Describe what the run ran on: versions of the packages that decide numbers, processor, system."""
    return {
        "python": platform.python_version(),
        **{package: version_of(package) for package in ("ssge", "torch", "numpy", "scipy", "scikit-learn")},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
