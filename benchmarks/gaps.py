"""Recipes of baselines without a record, and how long one run would take: results/gaps.json and docs/reproduce.md.

The time is the estimate of ``ssge estimate`` with one thread. A dataset whose files are missing is listed with the
reason. The record is written after each estimate, because some take minutes; a second call continues.
"""

from __future__ import annotations

import pages
from pages import Record
from recipes import GRAPHS, OURS, path_of, selected
from ssge.datasets import load
from ssge.errors import SSGEError
from ssge.graph import Graph
from ssge.methods import METHODS
from ssge.runs.estimate import estimate
from ssge.runs.plan import plan
from ssge.runs.recipes import Recipe

LONGEST = 20
"""Minutes of a run that is worth three seeds."""


def minutes(recipe: Recipe, graph: Graph) -> float | str:
    """Return the estimated minutes of one run, or why it cannot be run here."""
    try:
        return estimate(graph, plan(graph.info, recipe.method, settings=recipe.config)).seconds / 60
    except SSGEError as error:
        return str(error)


def measure() -> None:
    """Estimate the recipes without a record, and write each estimate at once; or write why a dataset is missing."""
    found: dict[str, dict[str, float | str] | str] = pages.figures_of("gaps")
    graphs = {}
    for dataset in GRAPHS:
        try:
            graphs[dataset] = load(dataset)
            found[dataset] = found.get(dataset) or {}
        except SSGEError as error:
            found[dataset] = str(error)
    for dataset, graph in graphs.items():
        known = found[dataset]
        for recipe in missing(dataset):
            if isinstance(known, dict) and recipe.name not in known:
                known[recipe.name] = minutes(recipe, graph)
                print(recipe.name, known[recipe.name], flush=True)
                pages.write("gaps", found)
    pages.write("gaps", found)


def missing(dataset: str) -> list[Recipe]:
    """Return the recipes of baselines that have no record on a dataset."""
    return [
        one for one in selected(METHODS, [dataset], published=False) if one.method != OURS and not path_of(one).exists()
    ]


def block(record: Record) -> str:
    """Return a table of what has still no record."""
    lines, absent = [], []
    for dataset, found in record.figures.items():
        if isinstance(found, str):
            absent.append(dataset)
            continue
        for recipe in missing(dataset):
            time = found.get(recipe.name, "not run and not estimated yet")
            if isinstance(time, str):
                shown, reason = "-", time
            else:
                shown, reason = f"{time:,.0f} min", "takes too long" if time > LONGEST else "not run yet"
            lines.append([dataset, METHODS[recipe.method].title, f"`{recipe.name}`", shown, reason])
    headings = ("dataset", "method", "recipe", "one run, about", "why there is no record")
    text = pages.table(headings, lines, (0, 1, 2, 4)) if lines else "Every method has a record on these graphs.\n"
    if absent:
        text += f"\nNo files at hand: {', '.join(absent)}.\n"
    return text


if __name__ == "__main__":
    measure()
