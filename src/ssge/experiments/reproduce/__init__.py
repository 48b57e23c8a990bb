"""The paper's tables and figures, ours beside the published, each by one command.

A finished run is a record on disk and is never computed again, unless the code behind it has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ssge.experiments import efficiency
from ssge.experiments.reproduce import published, sweeps, tables
from ssge.experiments.reproduce.jobs import Done, Job, Scope, carry_out, costs

__all__ = ["EXPERIMENTS", "Scope", "reproduce"]

COST_SECONDS = 3.0
"""How long each training of the comparison of efficiency is measured."""


class Experiment(NamedTuple):
    """A table or figure: the runs that it needs by their settings, and what makes it from their results."""

    jobs: Callable[[Scope], Mapping[Any, Job]]
    make: Callable[[Scope, Done], tables.Table | list[Path]]


def _efficiency(scope: Scope, done: Done) -> tables.Table | list[Path]:
    cells = [cell for cell in efficiency.PUBLISHED if cell[1] in scope.datasets]
    return tables.efficiency(costs(cells, scope, COST_SECONDS, done.quiet)) if cells else []


def _sweep(jobs: Callable[[Scope], sweeps.Points], *words: str) -> Experiment:
    return Experiment(jobs, lambda scope, done: sweeps.over(scope, done, jobs, *words))


EXPERIMENTS = {
    "classification": Experiment(
        lambda scope: tables.compared(scope, published.METHODS, published.DATASETS), tables.classification
    ),
    "clustering": Experiment(
        lambda scope: tables.compared(scope, published.CLUSTERED, published.DATASETS[:3]), tables.clustering
    ),
    "efficiency": Experiment(lambda scope: {}, _efficiency),
    "ablation": Experiment(tables.ablation_jobs, tables.ablation),
    "covariance": Experiment(sweeps.covariance_jobs, sweeps.covariance),
    "uniformity": Experiment(sweeps.circle_jobs, sweeps.uniformity),
    "lambda": _sweep(sweeps.lambda_jobs, "lambda", "Weight of uniformity", "uniformity weight λ, log scale"),
    "dimension": _sweep(sweeps.dimension_jobs, "dimension", "Embedding width", "width, log scale"),
    "augmentation": Experiment(sweeps.augmentation_jobs, sweeps.augmentation),
}
"""The tables and figures by name, in the paper's order."""


def reproduce(names: Iterable[str], scope: Scope, quiet: bool = False) -> dict[str, list[Path]]:
    """Run what is missing and write tables (Markdown, CSV, LaTeX) and figures (PNG, SVG) into the scope's folder."""
    wanted = {name: EXPERIMENTS[name] for name in names}
    done = carry_out([job for one in wanted.values() for job in one.jobs(scope).values()], scope, quiet)
    made = {name: one.make(scope, done) for name, one in wanted.items()}
    return {name: one.write(scope.out) if isinstance(one, tables.Table) else one for name, one in made.items()}
