"""The paper's tables and figures, ours beside the published, each by one command.

A finished run is a record on disk and is never computed again, unless the code behind it has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ssge.experiments import efficiency
from ssge.experiments.reproduce import published, sweeps, tables
from ssge.experiments.reproduce.jobs import Done, Job, Scope, carry_out, costs

__all__ = ["EXPERIMENTS", "Scope", "reproduce"]

COST_SECONDS = 3.0
"""How long each training of the comparison of efficiency is measured."""


def _jobs(name: str, scope: Scope) -> list[Job]:
    """Return the runs that a table or figure needs."""
    needs: dict[str, Callable[[], Sequence[Job]]] = {
        "classification": lambda: tables.compared(scope, published.METHODS, published.DATASETS),
        "clustering": lambda: tables.compared(scope, published.CLUSTERED, published.DATASETS[:3]),
        "ablation": lambda: list(tables.ablation_jobs(scope).values()),
        "covariance": lambda: [job for (_, d), job in tables.ablation_jobs(scope).items() if d == scope.datasets[0]],
        "uniformity": lambda: list(sweeps.circle_jobs(scope).values()),
        "lambda": lambda: list(sweeps.lambda_jobs(scope).values()),
        "dimension": lambda: list(sweeps.dimension_jobs(scope).values()),
        "augmentation": lambda: list(sweeps.augmentation_jobs(scope).values()),
        "efficiency": lambda: [],
    }
    return list(needs[name]())


EXPERIMENTS = (
    "classification", "clustering", "efficiency", "ablation", "covariance", "uniformity", "lambda", "dimension",
    "augmentation",
)  # fmt: skip
"""Names of the tables and figures, in the paper's order."""


def reproduce(names: Sequence[str], scope: Scope, quiet: bool = False) -> dict[str, list[Path]]:
    """Run what is missing and write tables (Markdown, CSV, LaTeX) and figures (PNG, SVG) into the scope's folder."""
    done = carry_out([job for name in names for job in _jobs(name, scope)], scope, quiet)
    return {name: _write(name, scope, done, quiet) for name in names}


def _write(name: str, scope: Scope, done: Done, quiet: bool) -> list[Path]:
    if name == "efficiency":
        cells = [cell for cell in efficiency.PUBLISHED if cell[1] in scope.datasets]
        return tables.efficiency(costs(cells, scope, COST_SECONDS, quiet)).write(scope.out) if cells else []
    writers: dict[str, Callable[[], list[Path]]] = {
        "classification": lambda: tables.classification(scope, done).write(scope.out),
        "clustering": lambda: tables.clustering(scope, done).write(scope.out),
        "ablation": lambda: tables.ablation(scope, done).write(scope.out),
        "covariance": lambda: sweeps.covariance(scope, done, tables.ablation_jobs(scope)),
        "uniformity": lambda: sweeps.uniformity(scope, done),
        "lambda": lambda: sweeps.over(
            scope, done, sweeps.lambda_jobs(scope), "lambda", "Weight of uniformity", "uniformity weight λ, log scale"
        ),
        "dimension": lambda: sweeps.over(
            scope, done, sweeps.dimension_jobs(scope), "dimension", "Embedding width", "width, log scale"
        ),
        "augmentation": lambda: sweeps.augmentation(scope, done),
    }
    return writers[name]()
