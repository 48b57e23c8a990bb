"""The paper's tables and figures, ours beside the published, each by one command.

A finished run is a record on disk and is never computed again, unless the code behind it has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from ssge.experiments import efficiency
from ssge.experiments.reproduce import published, sweeps, tables
from ssge.experiments.reproduce.jobs import Done, Job, Scope, carry_out, costs

__all__ = ["EXPERIMENTS", "Scope", "reproduce"]

COST_SECONDS = 3.0
"""How long each training of the comparison of efficiency is measured."""


class Experiment(NamedTuple):
    """A table or figure: the runs that it needs, and what writes it from their results."""

    jobs: Callable[[Scope], Iterable[Job]]
    write: Callable[[Scope, Done], list[Path]]


def _efficiency(scope: Scope, done: Done) -> list[Path]:
    cells = [cell for cell in efficiency.PUBLISHED if cell[1] in scope.datasets]
    return tables.efficiency(costs(cells, scope, COST_SECONDS, done.quiet)).write(scope.out) if cells else []


EXPERIMENTS = {
    "classification": Experiment(
        lambda scope: tables.compared(scope, published.METHODS, published.DATASETS),
        lambda scope, done: tables.classification(scope, done).write(scope.out),
    ),
    "clustering": Experiment(
        lambda scope: tables.compared(scope, published.CLUSTERED, published.DATASETS[:3]),
        lambda scope, done: tables.clustering(scope, done).write(scope.out),
    ),
    "efficiency": Experiment(lambda scope: [], _efficiency),
    "ablation": Experiment(
        lambda scope: tables.ablation_jobs(scope).values(),
        lambda scope, done: tables.ablation(scope, done).write(scope.out),
    ),
    "covariance": Experiment(
        lambda scope: [job for (_, name), job in tables.ablation_jobs(scope).items() if name == scope.datasets[0]],
        lambda scope, done: sweeps.covariance(scope, done, tables.ablation_jobs(scope)),
    ),
    "uniformity": Experiment(lambda scope: sweeps.circle_jobs(scope).values(), sweeps.uniformity),
    "lambda": Experiment(lambda scope: sweeps.lambda_jobs(scope).values(), sweeps.over_lambda),
    "dimension": Experiment(lambda scope: sweeps.dimension_jobs(scope).values(), sweeps.over_dimension),
    "augmentation": Experiment(lambda scope: sweeps.augmentation_jobs(scope).values(), sweeps.augmentation),
}
"""The tables and figures by name, in the paper's order."""


def reproduce(names: Iterable[str], scope: Scope, quiet: bool = False) -> dict[str, list[Path]]:
    """Run what is missing and write tables (Markdown, CSV, LaTeX) and figures (PNG, SVG) into the scope's folder."""
    asked = {name: EXPERIMENTS[name] for name in names}
    done = carry_out([job for experiment in asked.values() for job in experiment.jobs(scope)], scope, quiet)
    return {name: experiment.write(scope, done) for name, experiment in asked.items()}
