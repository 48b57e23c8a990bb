"""The runs that tables and figures need. A finished one is a record on disk and is not run again."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ssge.datasets import load
from ssge.errors import InputError, SSGEError
from ssge.experiments.compare import Summary, compare
from ssge.experiments.efficiency import Measured
from ssge.experiments.protocols import PROTOCOLS
from ssge.files import atomic
from ssge.graph import Graph
from ssge.records import code_digest
from ssge.runs.estimate import estimate
from ssge.runs.plan import plan, resolve_config
from ssge.runs.recipes import load_recipe, recipes

log = logging.getLogger(__name__)

T = TypeVar("T")
FAST_PROTOCOL = "quick"
OURS = "ssge"


@dataclass(frozen=True)
class Scope:
    """What to reproduce, and how thoroughly.

    Attributes
    ----------
    out
        Folder of runs and results.
    datasets, methods
        Which ones.
    seeds
        Encoder seeds of SSGE and of all other methods.
    fast
        One seed, few points in each figure, a probe to convergence instead of the paper's, and schedules cut to
        ``minutes``.
    minutes
        Longest training. One that would take longer is a gap in the table, or cut if ``fast``.
    """

    out: Path
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, int] = (10, 3)
    fast: bool = False
    minutes: float = 20.0

    def job(self, method: str, dataset: str, **settings: Any) -> Job:
        """Return the runs of a method on a dataset, by its recipe; a shortened one is taken if ``fast``."""
        name = f"{method}/{dataset}"
        short = method != OURS and f"{name}-fast" in recipes()
        seeds = self.seeds[0 if method == OURS else 1]
        chosen = f"{name}-fast" if short else name
        protocol = FAST_PROTOCOL if self.fast else load_recipe(chosen).protocol
        return Job(chosen, seeds, protocol, tuple(sorted(settings.items())))


@dataclass(frozen=True)
class Job:
    """A recipe with some settings changed, over encoder seeds."""

    recipe: str
    seeds: int
    protocol: str
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Name of its folder."""
        changed = [f"{key}={_text(value)}" for key, value in self.settings]
        return "/".join([self.recipe, ",".join(changed) or "as-is"])

    @property
    def dataset(self) -> str:
        """Name of its dataset."""
        return load_recipe(self.recipe).dataset


@dataclass
class Done:
    """Results by job, and what is missing.

    Attributes
    ----------
    summaries
        Records of finished jobs.
    gaps
        Why a job has no records.
    cut
        Epochs of jobs whose schedule was shortened.
    quiet
        Whether no progress is shown.
    """

    summaries: dict[Job, Summary] = field(default_factory=dict)
    gaps: dict[Job, str] = field(default_factory=dict)
    cut: dict[Job, int] = field(default_factory=dict)
    quiet: bool = False


def carry_out(jobs: Iterable[Job], scope: Scope, quiet: bool = False) -> Done:
    """Run what is missing of some jobs, each once; a job that fails is a gap in the table, with the reason."""
    done = Done(quiet=quiet)
    for job in _progress(list(dict.fromkeys(jobs)), lambda job: job.name, quiet):
        try:
            done.summaries[job] = _run(job, scope, done)
        except SSGEError as error:
            done.gaps[job] = str(error)
    return done


def _run(job: Job, scope: Scope, done: Done) -> Summary:
    graph, recipe = _graph(job.dataset), load_recipe(job.recipe)
    folder, settings = scope.out / "runs" / job.name, dict(job.settings)
    epochs, stale = _schedule(job, graph, scope, folder / "schedule.json")
    if epochs != resolve_config(recipe.method, recipe.config, settings).epochs:
        settings["epochs"] = done.cut[job] = epochs
    return compare(
        recipe, graph, PROTOCOLS[job.protocol], job.seeds, folder, settings=settings, force=stale, quiet=True,
        references=scope.out / "references" / job.dataset / job.protocol,
        referenced=recipe.method == OURS and not job.settings,
    )  # fmt: skip


def _schedule(job: Job, graph: Graph, scope: Scope, path: Path) -> tuple[int, bool]:
    """Return the epochs of a job, and whether its runs are of other code than today's.

    The epochs are decided once and kept in a file, so that an interrupted run continues with the same.
    """
    code = code_digest(load_recipe(job.recipe).method)
    kept = json.loads(path.read_text()) if path.exists() else {}
    if kept.get("code") == code:
        return kept["epochs"], False
    epochs = _epochs_within(job, graph, scope)
    with atomic(path) as temporary:
        temporary.write_text(json.dumps({"code": code, "epochs": epochs}) + "\n")
    return epochs, bool(kept)


def _epochs_within(job: Job, graph: Graph, scope: Scope) -> int:
    """Return the epochs of a job; if they take too long, fewer for a fast scope and an error for any other."""
    planned = plan(graph.info, recipe=job.recipe, settings=dict(job.settings))
    epochs = planned.config.epochs
    minutes = estimate(graph, planned).seconds / 60 if epochs else 0.0
    if minutes <= scope.minutes:
        return epochs
    if not scope.fast:
        raise InputError(f"about {minutes:,.0f} min per run, more than {scope.minutes:g}")
    return max(1, int(epochs * scope.minutes / minutes))


@cache
def _graph(dataset: str) -> Graph:
    try:
        return load(dataset)
    except SSGEError as error:
        raise InputError(f"not loaded: {error}") from None


def costs(
    cells: Iterable[tuple[str, str]], scope: Scope, seconds: float, quiet: bool = False
) -> dict[tuple[str, str], Measured]:
    """Measure parameters, time and memory of methods on datasets, each in a process of its own."""
    found = {}
    for method, dataset in _progress(list(cells), lambda cell: f"cost of {'/'.join(cell)}", quiet):
        path = scope.out / "costs" / f"{method}-{dataset}-{code_digest(method)}.json"
        if not path.exists():
            words = ["-c", _MEASURE, method, dataset, str(seconds)]
            done = subprocess.run([sys.executable, *words], check=True, stdout=subprocess.PIPE, text=True)
            with atomic(path) as temporary:
                temporary.write_text(done.stdout.splitlines()[-1] + "\n")
        found[method, dataset] = Measured(**json.loads(path.read_text()))
    return found


_MEASURE = """
import json, sys
from ssge.experiments.efficiency import measure
print(json.dumps(measure(sys.argv[1], sys.argv[2], float(sys.argv[3]))._asdict()))
"""


def _progress(items: Sequence[T], name: Callable[[T], str], quiet: bool) -> Iterator[T]:
    """Yield items; print which comes next, and how much time is left, to standard error."""
    began = time.monotonic()
    for done, item in enumerate(items):
        if not quiet:
            left = (time.monotonic() - began) / done * (len(items) - done) / 60 if done else None
            remaining = "" if left is None else f", about {left:.0f} min left"
            print(f"[{done + 1}/{len(items)}] {name(item)}{remaining}", file=sys.stderr, flush=True)
        yield item


def _text(value: Any) -> str:
    return "-".join(map(str, value)) if isinstance(value, tuple | list) else f"{value:g}"
