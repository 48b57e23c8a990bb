"""What held up: the paper's claims, each with our figure and a verdict: results/claims.json and docs/claims.md.

Ablation, coupling of columns and sweeps are trained here, by the same jobs as ``ssge reproduce``; finished runs of the
same code in runs/claims are not run again. Accuracies and clusters of all methods come from results/recipes, costs from
results/efficiency.json. The verdicts are computed, not written: see `CLAIMS`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import pages
from pages import RESULTS, ROOT
from ssge.experiments import figures
from ssge.experiments.compare import Summary
from ssge.experiments.efficiency import PUBLISHED, Measured
from ssge.experiments.reproduce import sweeps, tables
from ssge.experiments.reproduce.jobs import Done, Job, Scope, carry_out
from ssge.experiments.tables import Row, rows
from ssge.methods import METHODS
from ssge.runs.folder import RunFolder

DATASETS = ("cora", "citeseer", "pubmed")
GRAPHS = (*DATASETS, "computer", "coauthor_cs")
OURS = "ssge"
SUPERVISED = "supervised"


def accuracies(done: Done, job: Job) -> list[float] | None:
    """Return the accuracy % of each encoder seed of a job, if it was run."""
    if job not in done.summaries:
        return None
    summary = done.summaries[job]
    runs = [record for record in summary.records if record.recipe]
    return [100 * fmean(record.scores[summary.protocol.name].accuracies) for record in runs]


def coupling(folder: Path) -> float:
    """Return the mean absolute correlation between two columns of an embedding."""
    found = np.abs(np.corrcoef(RunFolder(folder).read_embedding().vectors, rowvar=False))
    n = len(found)
    return float((np.nansum(found) - n) / (n * (n - 1)))


def measure(datasets: Sequence[str], seeds: int, sweeping: bool) -> dict[str, Any]:
    """Run what is missing and return the figures by experiment and dataset; sweeps take most of the time."""
    scope = Scope(ROOT / "runs" / "claims", tuple(datasets), (OURS,), seeds=(seeds, seeds))
    swept = Scope(scope.out, tuple(name for name in datasets if name != "pubmed"), (OURS,), seeds=(seeds, seeds))
    ablation, weights = tables.ablation_jobs(scope), sweeps.lambda_jobs(swept)
    widths, rates = sweeps.dimension_jobs(swept), sweeps.augmentation_jobs(swept)
    over = [*weights.values(), *widths.values(), *rates.values()]
    done = carry_out([*ablation.values(), *(over if sweeping else [])], scope)
    found: dict[str, Any] = {"ablation": {}, "coupling": {}, "lambda": {}, "dimension": {}, "augmentation": {}}
    for (variant, name), job in ablation.items():
        if (values := accuracies(done, job)) is not None:
            found["ablation"].setdefault(name, {})[variant] = values
            place = scope.out / "runs" / job.name / "seed-0"
            found["coupling"].setdefault(name, {})[variant] = coupling(place)
    for what, jobs in (("lambda", weights), ("dimension", widths)):
        for (name, value), job in jobs.items():
            if (values := accuracies(done, job)) is not None:
                found[what].setdefault(name, {})[f"{value:g}"] = values
    for (name, pd, pm), job in rates.items():
        if (values := accuracies(done, job)) is not None:
            found["augmentation"].setdefault(name, {})[f"{pd:g}, {pm:g}"] = values
    return found


class Evidence(NamedTuple):
    """All that a claim is judged by: the figures measured here, the rows of all methods by dataset, and costs."""

    figures: Mapping[str, Any]
    methods: Mapping[str, Mapping[str, Row]]
    costs: Mapping[str, Any]


class Verdict(NamedTuple):
    """How many of how many cases agree with a claim, and the figures."""

    held: int
    of: int
    shown: str

    @property
    def word(self) -> str:
        """What is said: held, held in part, did not hold."""
        if not self.of:
            return "not measured"
        return "held" if self.held == self.of else "held in part" if self.held else "did not hold"


def _error(values: Sequence[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def best_of_all(evidence: Evidence) -> Verdict:
    """Compare with the best self-supervised baseline under the protocol of its recipe."""
    cases = []
    for dataset, found in evidence.methods.items():
        others = {name: row.accuracy for name, row in found.items() if _rival(name) and row.accuracy is not None}
        ours = found[OURS].accuracy if OURS in found else None
        if ours is not None and others:
            best = max(others, key=lambda name: others[name])
            cases.append((ours >= others[best], f"{dataset} {ours:.1f} ({METHODS[best].title} {others[best]:.1f})"))
    return _counted(cases)


def clusters(evidence: Evidence) -> Verdict:
    """Compare NMI with the best self-supervised baseline on the citation graphs."""
    cases = []
    for dataset in DATASETS:
        found = evidence.methods.get(dataset, {})
        others = {name: row.nmi for name, row in found.items() if _rival(name)}
        if OURS in found and others:
            ours, best = found[OURS].nmi, max(others, key=lambda name: others[name])
            cases.append((ours >= others[best], f"{dataset} {ours:.1f} ({METHODS[best].title} {others[best]:.1f})"))
    return _counted(cases)


def beside_cca_ssg(evidence: Evidence) -> Verdict:
    """Compare accuracy with CCA-SSG."""
    cases = []
    for dataset, found in evidence.methods.items():
        ours, theirs = (found[name].accuracy if name in found else None for name in (OURS, "cca_ssg"))
        if ours is not None and theirs is not None:
            cases.append((ours >= theirs, f"{dataset} {ours - theirs:+.1f}"))
    return _counted(cases)


def _rival(name: str) -> bool:
    return name != OURS and METHODS[name].family != SUPERVISED


def cost(what: str) -> Callable[[Evidence], Verdict]:
    """Return what compares a cost with those of DGI, MVGRL, GRACE and HomoGCL, cell by cell."""

    def judge(evidence: Evidence) -> Verdict:
        cases = []
        for method, dataset in PUBLISHED:
            ours, theirs = (evidence.costs.get(f"{name}/{dataset}") for name in (OURS, method))
            if method != OURS and ours and theirs:
                cases.append((ours[what] <= theirs[what], ""))
        verdict = _counted(cases)
        return verdict._replace(shown=f"lower in {verdict.held} of {verdict.of} pairs")

    return judge


def both_terms(evidence: Evidence) -> Verdict:
    """Compare both terms with either alone."""
    cases = []
    for dataset, found in evidence.figures["ablation"].items():
        values = {variant: fmean(seeds) for variant, seeds in found.items()}
        told = " / ".join(f"{values[v]:.1f}" for v in ("alignment", "uniformity", "both"))
        cases.append((values["both"] > max(values["alignment"], values["uniformity"]), f"{dataset} {told}"))
    return _counted(cases)


def coupled(evidence: Evidence) -> Verdict:
    """Hold if columns are coupled without uniformity (above a half), with it they are not (below a quarter)."""
    cases = []
    for dataset, found in evidence.figures["coupling"].items():
        told = " / ".join(f"{found[v]:.2f}" for v in ("alignment", "uniformity", "both"))
        cases.append((found["alignment"] > 0.5 and found["both"] < 0.25, f"{dataset} {told}"))
    return _counted(cases)


def rises_and_falls(evidence: Evidence) -> Verdict:
    """Hold if the best weight is neither the smallest nor the largest, by more than the standard error of both ends."""
    cases = []
    for dataset, curve in evidence.figures["lambda"].items():
        points = list(curve.items())
        best = max(points, key=lambda point: fmean(point[1]))
        ends = (points[0][1], points[-1][1])
        held = all(fmean(best[1]) - fmean(end) > _error(end) + _error(best[1]) for end in ends)
        told = f"{dataset} {fmean(ends[0]):.1f}, {fmean(best[1]):.1f} at {best[0]}, {fmean(ends[1]):.1f}"
        cases.append((held, told))
    return _counted(cases)


def width(evidence: Evidence) -> Verdict:
    """Hold if the best width is 256 or 512, or as good as the best by its standard error."""
    cases = []
    for dataset, curve in evidence.figures["dimension"].items():
        points = {int(value): seeds for value, seeds in curve.items()}
        best = max(points, key=lambda value: fmean(points[value]))
        large = max((value for value in (256, 512) if value in points), key=lambda value: fmean(points[value]))
        held = fmean(points[large]) >= fmean(points[best]) - _error(points[best])
        told = ", ".join(f"{value}: {fmean(points[value]):.1f}" for value in sorted(points))
        cases.append((held, f"{dataset} {told}"))
    return _counted(cases)


def robust(evidence: Evidence) -> Verdict:
    """Hold if rates of 0.2 and 0.4 differ by at most two points."""
    cases = []
    for dataset, grid in evidence.figures["augmentation"].items():
        inner = [fmean(grid[f"{a}, {b}"]) for a in ("0.2", "0.4") for b in ("0.2", "0.4") if f"{a}, {b}" in grid]
        if inner:
            cases.append((max(inner) - min(inner) <= 2, f"{dataset} {min(inner):.1f} to {max(inner):.1f}"))
    return _counted(cases)


def _counted(cases: Sequence[tuple[bool, str]]) -> Verdict:
    return Verdict(sum(held for held, _ in cases), len(cases), "; ".join(told for _, told in cases if told))


CLAIMS: Sequence[tuple[str, str, Callable[[Evidence], Verdict]]] = (
    ("More accurate than every self-supervised baseline", "accuracy % (best baseline)", best_of_all),
    ("More accurate than CCA-SSG, with the same probe", "difference in accuracy", beside_cca_ssg),
    ("Better clusters than every baseline", "NMI % (best baseline)", clusters),
    ("Fewer parameters than DGI, MVGRL, GRACE, HomoGCL", "four graphs", cost("parameters")),
    ("Shorter training than these", "published schedules", cost("seconds")),
    ("Less memory than these", "peak of a process", cost("peak_mb")),
    ("Both terms are needed", "accuracy %: alignment / uniformity / both", both_terms),
    (
        "Without uniformity columns are coupled, with it not",
        "mean absolute correlation: alignment / uniformity / both",
        coupled,
    ),
    ("Accuracy rises, then falls with λ", "accuracy % at the smallest, best and largest λ", rises_and_falls),
    ("A width of 256 or 512 is best", "accuracy % by width", width),
    ("Robust to the strength of augmentation", "accuracy % for rates 0.2 to 0.4", robust),
)
"""Claim, what is shown, and what judges it."""


def block(record: Any) -> str:
    """Return the table of claims."""
    evidence = Evidence(record.figures, _methods(), _costs())
    lines = []
    for claim, what, judge in CLAIMS:
        verdict = judge(evidence)
        count = f" ({verdict.held} of {verdict.of})" if verdict.of else ""
        lines.append([claim, f"{what}: {verdict.shown or '-'}", f"**{verdict.word}**{count}"])
    seeds = max(len(values) for found in record.figures["ablation"].values() for values in found.values())
    closing = f"Ablation and sweeps: {seeds} encoder seeds, protocol `paper`, {pages.where(record)}.\n"
    return pages.table(("claim", "ours", "verdict"), lines, (0, 1, 2)) + "\n" + closing


def over_lambda(record: Any) -> bytes:
    """Return the picture of accuracy over the weight of uniformity."""
    return _curves(record.figures["lambda"], "Uniformity weight", "uniformity weight λ, log scale")


def over_dimension(record: Any) -> bytes:
    """Return the picture of accuracy over the width of the embedding."""
    return _curves(record.figures["dimension"], "Embedding width", "width, log scale")


def over_augmentation(record: Any) -> bytes:
    """Return the picture of accuracy over both rates of augmentation."""
    rates = sweeps.RATES
    panels = {
        name: np.array([[fmean(grid[f"{pd:g}, {pm:g}"]) for pm in rates] for pd in rates])
        for name, grid in record.figures["augmentation"].items()
    }
    title, names = "Accuracy % of SSGE over the rates of augmentation", ("edge drop $p_d$", "feature mask $p_m$")
    return _picture(lambda path: figures.grids(path, panels, rates, rates, title, names))


def _curves(found: Mapping[str, Mapping[str, Sequence[float]]], title: str, setting: str) -> bytes:
    curves = {
        name: [(float(value), fmean(seeds), stdev(seeds)) for value, seeds in curve.items()]
        for name, curve in found.items()
    }
    return _picture(lambda path: figures.sweeps(path, curves, title, setting))


def _picture(draw: Callable[[Path], Path]) -> bytes:
    with TemporaryDirectory() as folder:
        return draw(Path(folder) / "figure.png").read_bytes()


def _methods() -> dict[str, dict[str, Row]]:
    """Return the row of each method by dataset, of its record with the published schedule or else the short one."""
    found: dict[str, dict[str, Row]] = {name: {} for name in GRAPHS}
    for path in sorted(RESULTS.glob("recipes/*/*.json")):  # cora-fast before cora, which replaces it
        summary = Summary.read(path)
        plain = summary.recipe.name.split("/")[1] in (summary.recipe.dataset, f"{summary.recipe.dataset}-fast")
        if plain and summary.recipe.dataset in found:
            runs = [one for one in summary.records if one.recipe]
            found[summary.recipe.dataset][summary.recipe.method] = rows(runs, summary.protocol.name)[0]
    return found


def _costs() -> dict[str, Any]:
    path = RESULTS / "efficiency.json"
    record = pages.read(path) if path.exists() else None
    found = record.figures if isinstance(record, pages.Record) else {}
    return {name: {**cell, "seconds": Measured(**cell).seconds} for name, cell in found.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--no-sweeps", action="store_true", help="leave out what takes most of the time")
    options = parser.parse_args()
    measured = measure(options.datasets, options.seeds, not options.no_sweeps)
    pages.write("claims", measured, [f"{OURS}/{name}" for name in options.datasets])
