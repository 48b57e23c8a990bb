"""RunRecord: all that is kept of a run, and the only thing that tables, figures and reports read."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

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
    """A run, from its configuration to its scores; JSON both ways."""

    model_config = ConfigDict(extra="forbid")

    method: str
    dataset: str
    seed: int
    config: dict[str, Any]
    recipe: str | None = None
    reading: dict[str, Any] = {}
    warm_start: str | None = None
    splits: str | None = None
    graph: dict[str, int] = {}
    parameters: int = 0
    scale: float = 1.0
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    final: dict[str, float] = {}
    device: str = "cpu"
    dtype: str = "float32"
    threads: int = 1
    machine: dict[str, str] = {}
    scores: dict[str, Scores] = {}

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


def peak_memory_mb() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    try:
        import resource
    except ImportError:  # Windows has no such module
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def machine() -> dict[str, str]:
    """Describe what the run ran on: versions of the packages that decide numbers, processor, system."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for package in ("ssge", "torch", "numpy", "scipy", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found | {
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
