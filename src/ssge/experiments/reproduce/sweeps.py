"""Figures of the paper: covariance, density on the circle, and accuracy over lambda, dimension and augmentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ssge.datasets import load
from ssge.experiments import figures
from ssge.experiments.figures import FORMATS
from ssge.experiments.reproduce.jobs import OURS, Done, Job, Scope
from ssge.experiments.reproduce.tables import ablation_jobs, own_row
from ssge.runs.folder import RunFolder
from ssge.runs.recipes import load_recipe

LAMBDAS = (0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 20.0)
DIMENSIONS = (16, 32, 64, 128, 256, 512, 1024)
RATES = (0.0, 0.2, 0.4, 0.6, 0.8)
Points: TypeAlias = dict[tuple[str, float], Job]
"""Trainings by dataset and value of a setting."""
TITLES = {"alignment": "Alignment alone", "uniformity": "Uniformity alone", "both": "Both terms"}


def covariance_jobs(scope: Scope) -> dict[str, Job]:
    """Return the trainings with one term of the loss or both, by title, on the first graph of the ablation."""
    jobs = ablation_jobs(scope)
    first = next((dataset for _, dataset in jobs), None)
    return {TITLES[variant]: job for (variant, dataset), job in jobs.items() if dataset == first}


def covariance(scope: Scope, done: Done) -> list[Path]:
    """Draw the absolute correlations of the columns for the three objectives."""
    jobs = covariance_jobs(scope)
    if not jobs or any(job not in done.summaries for job in jobs.values()):
        return []
    panels = {title: _vectors(scope, job) for title, job in jobs.items()}
    title = f"Correlation between embedding columns, {next(iter(jobs.values())).dataset}"
    return [figures.correlations(scope.out / f"covariance{suffix}", panels, title) for suffix in FORMATS]


def circle_jobs(scope: Scope) -> dict[str, Job]:
    """Return trainings with a 2-dimensional embedding, by dataset."""
    return {name: _few(_of_width(scope, name, 2), 1) for name in ("cora", "citeseer") if name in scope.datasets}


def uniformity(scope: Scope, done: Done) -> list[Path]:
    """Draw the density of a 2-dimensional embedding on the circle, for all classes and for three single ones."""
    paths = []
    for name, job in circle_jobs(scope).items():
        if job in done.summaries:
            vectors, labels = _vectors(scope, job), load(name).labels
            assert labels is not None
            title = f"2-dimensional SSGE embedding of {name} on the circle"
            places = [scope.out / f"uniformity-{name}{suffix}" for suffix in FORMATS]
            paths += [figures.circle_densities(place, vectors, labels, title) for place in places]
    return paths


def lambda_jobs(scope: Scope) -> Points:
    """Return trainings over the weight of uniformity."""
    values = LAMBDAS[1::2] if scope.fast else LAMBDAS
    return {(name, v): _few(scope.job(OURS, name, uniformity_weight=v)) for name in _swept(scope) for v in values}


def dimension_jobs(scope: Scope) -> Points:
    """Return trainings over the embedding width; hidden layers keep theirs."""
    values = DIMENSIONS[1::2] if scope.fast else DIMENSIONS
    return {(name, v): _few(_of_width(scope, name, v)) for name in _swept(scope) for v in values}


def augmentation_jobs(scope: Scope) -> dict[tuple[str, float, float], Job]:
    """Return trainings over both rates of augmentation, on Cora and CiteSeer."""
    rates = RATES[::2] if scope.fast else RATES
    names = [name for name in ("cora", "citeseer") if name in scope.datasets]
    return {
        (name, pd, pm): _few(scope.job(OURS, name, edge_drop=pd, feature_mask=pm))
        for name in names
        for pd in rates
        for pm in rates
    }


def over(scope: Scope, done: Done, jobs: Callable[[Scope], Points], name: str, title: str, setting: str) -> list[Path]:
    """Draw accuracy over a setting."""
    curves: dict[str, list[tuple[float, float, float]]] = {}
    for (dataset, value), job in jobs(scope).items():
        if job in done.summaries and (row := own_row(done.summaries[job])).accuracy is not None:
            curves.setdefault(dataset, []).append((value, row.accuracy, row.encoder_std))
    if not curves:
        return []
    return [figures.sweeps(scope.out / f"{name}{suffix}", curves, title, setting) for suffix in FORMATS]


def augmentation(scope: Scope, done: Done) -> list[Path]:
    """Draw accuracy over both rates as heat maps."""
    jobs = augmentation_jobs(scope)
    rates = sorted({pd for _, pd, _ in jobs})
    panels: dict[str, NDArray[np.float64]] = {}
    for (name, pd, pm), job in jobs.items():
        if job in done.summaries:
            values = panels.setdefault(name, np.full((len(rates), len(rates)), np.nan))
            values[rates.index(pd), rates.index(pm)] = own_row(done.summaries[job]).accuracy
    if not panels:
        return []
    names = ("edge drop $p_d$", "feature mask $p_m$")
    title = "Accuracy % of SSGE over the rates of augmentation"
    return [figures.grids(scope.out / f"augmentation{s}", panels, rates, rates, title, names) for s in FORMATS]


def _swept(scope: Scope) -> list[str]:
    return [name for name in scope.datasets if name not in ("arxiv", "pubmed")]


def _of_width(scope: Scope, dataset: str, width: int) -> Job:
    return scope.job(OURS, dataset, widths=(*load_recipe(f"{OURS}/{dataset}").config["widths"][:-1], width))


def _few(job: Job, most: int = 3) -> Job:
    """Return a job with three seeds at most: a sweep has many points."""
    return replace(job, seeds=min(job.seeds, most))


def _vectors(scope: Scope, job: Job) -> NDArray[np.floating[Any]]:
    return RunFolder(scope.out / "runs" / job.name / "seed-0").read_embedding().vectors
