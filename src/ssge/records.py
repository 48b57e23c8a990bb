"""RunRecord: everything that is stored about a run, and the only input of tables, figures and reports."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from ssge.errors import InputError
from ssge.files import atomic


class Document(BaseModel):
    """What a JSON file holds; a field that it does not know is an error."""

    model_config = ConfigDict(extra="forbid")

    def write(self, path: Path) -> None:
        """Write JSON, atomically."""
        with atomic(path) as temporary:
            temporary.write_text(self.model_dump_json(indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote."""
        if not path.is_file():
            raise InputError(f"No run in {path.parent}: {path.name} is missing.")
        try:
            return cls.model_validate_json(path.read_text())
        except (ValidationError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a run record of this version: {str(error).splitlines()[0]}.") from None


class Scores(Document):
    """The scores of one embedding under one protocol.

    Attributes
    ----------
    protocol, probe
        Their names and settings.
    accuracies
        Test accuracy of each probe (split or probe seed), as a fraction.
    valid_accuracies
        Validation accuracy of the same probes, the only score for model selection.
    nmi, ari
        Of k-means, one value per seed of k-means.
    geometry
        Label-free metrics: effective rank, uniformity, Wasserstein distance.
    """

    protocol: str
    probe: dict[str, Any]
    splits: str
    accuracies: list[float]
    valid_accuracies: list[float]
    nmi: list[float]
    ari: list[float]
    geometry: dict[str, float]


class RunRecord(Document):
    """A run, from its configuration to its scores; reads and writes JSON.

    Attributes
    ----------
    method, dataset, name
        Method, source of the graph (name of a dataset or path), and display name of the graph.
    config, recipe, reading, warm_start
        Resolved settings, and the origin of the settings and of the graph.
    splits
        Kind of splits whose training nodes a supervised method learned from; None for all others.
    graph, statistics, feature_names, columns
        Sizes of the graph, its degrees, the names of its feature columns if known, and the embedding width.
    digests
        Of edges, features and labels, as in `ssge.runs.digests`.
    node_columns
        The encoding of each column of the node table, as in `ssge.schema.FeatureSchema.table`.
    final, diagnostics
        The history of the kept epoch, and label-free metrics of the embedding.
    machine, date, commit, code
        Versions and processor, date, commit, and the digest of the code that determines the results.
    """

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
    digests: dict[str, str] = {}
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
        stamp = {
            "machine": machine(),
            "date": date,
            "commit": commit(),
            "code": code_digest(method, facts.get("config")),
        }
        return cls(method=method, **stamp, **facts)


BLOCKS = "nn.blocks"
"""Module that the paper's embedding, which has no blocks beside the learned one, does not use."""


def code_digest(method: str, config: Mapping[str, Any] | None = None) -> str:
    """Return a digest of the code that determines the results of a method: training, evaluation and their imports.

    Other methods are excluded, and so is `BLOCKS` if the settings are given and do not use it.
    """
    unused = config is not None and len(config.get("blocks", ())) < 2
    modules = ("training.trainer", "evaluation", f"methods.{method}")
    return digest_of(*modules, without=BLOCKS if unused else "")


@cache
def digest_of(*modules: str, without: str = "") -> str:
    """Return a digest of some modules of the package and of all modules that they import, except one of these.

    Docstrings, comments, formatting, help texts and error messages are ignored, and so are unknown names.
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
            names = [name.removeprefix("ssge.") for name in imported if name.startswith("ssge.")]
            waiting += [name for name in names if name != without]
    text = "\n".join(f"{path.relative_to(root)} {seen[path]}" for path in sorted(seen))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def meaning(source: str) -> ast.Module:
    """Return the syntax tree of a module without what cannot change a result: docstrings, help texts, raised errors."""
    tree: ast.Module = _Meaning().visit(ast.parse(source))
    return tree


class _Meaning(ast.NodeTransformer):
    """Replace docstrings and raised errors; remove help texts."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else node

    def visit_keyword(self, node: ast.keyword) -> ast.AST | None:
        return None if node.arg == "description" else self.generic_visit(node)

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
    with suppress(OSError, IndexError):  # Linux; the fallback below includes the peak of the parent process
        return float(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024
    try:
        import resource
    except ImportError:  # not available on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def version_of(package: str) -> str:
    """Return the version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def machine() -> dict[str, str]:
    """Describe the machine of a run: versions of the packages that determine the numbers, processor, system."""
    return {
        "python": platform.python_version(),
        **{package: version_of(package) for package in ("ssge", "torch", "numpy", "scipy", "scikit-learn")},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.+)", cpuinfo.read_text(), re.MULTILINE) if cpuinfo.exists() else None
    return found[1].strip() if found else platform.processor() or "unknown"
