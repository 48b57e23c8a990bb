"""Recipes of baselines without a record, and how long one run would take: results/gaps.json and docs/reproduce.md.

The time is the estimate of ``ssge estimate`` with one thread. A dataset whose files are missing is listed with the
reason.
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
from ssge.runs.recipes import Recipe, load_recipe

LONGEST = 20
"""Minutes of a run that is worth three seeds."""


def minutes(recipe: Recipe, graph: Graph) -> float | str:
    """Return the estimated minutes of one run, or why it cannot be run here."""
    try:
        return estimate(graph, plan(graph.info, recipe.method, settings=recipe.config)).seconds / 60
    except SSGEError as error:
        return str(error)


def measure() -> dict[str, dict[str, float | str] | str]:
    """Return for each dataset the estimates of the recipes without a record, or why the dataset is missing."""
    found: dict[str, dict[str, float | str] | str] = {}
    for dataset in GRAPHS:
        try:
            graph = load(dataset)
        except SSGEError as error:
            found[dataset] = str(error)
            continue
        missing = [one for one in selected(METHODS, [dataset], published=False) if not path_of(one).exists()]
        found[dataset] = {one.name: minutes(one, graph) for one in missing if one.method != OURS}
    return found


def block(record: Record) -> str:
    """Return a table of what has still no record, the shortest run first."""
    lines, absent = [], []
    for dataset, found in record.figures.items():
        if isinstance(found, str):
            absent.append(dataset)
            continue
        recipes = [load_recipe(name) for name in found if not path_of(load_recipe(name)).exists()]
        known = sorted((float(found[one.name]), one) for one in recipes if not isinstance(found[one.name], str))
        for time, recipe in known:
            reason = "takes too long" if time > LONGEST else "not run yet"
            lines.append([dataset, METHODS[recipe.method].title, f"`{recipe.name}`", f"{time:,.0f} min", reason])
        lines += [[dataset, METHODS[one.method].title, f"`{one.name}`", "-", str(found[one.name])]
                  for one in recipes if isinstance(found[one.name], str)]  # fmt: skip
    headings = ("dataset", "method", "recipe", "one run, about", "why there is no record")
    text = pages.table(headings, lines, (0, 1, 2, 4)) if lines else "Every method has a record on these graphs.\n"
    if absent:
        text += f"\nNo files at hand: {', '.join(absent)}.\n"
    return text


if __name__ == "__main__":
    pages.write("gaps", measure())
