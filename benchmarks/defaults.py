"""What a user gets without a recipe, on graphs of several kinds: results/defaults/*.json and docs/defaults.md."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import pages
from pages import RESULTS, ROOT, where
from pages import table as markdown
from ssge.datasets import load
from ssge.experiments.compare import Summary, compare
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.tables import Row
from ssge.records import code_digest
from ssge.runs.plan import plan
from ssge.runs.recipes import Recipe

DATASETS = ("cora", "citeseer", "pubmed", "computer", "coauthor_cs", "imports", "digits")


def measure(dataset: str, seeds: int) -> Summary:
    graph = load(dataset)
    config = plan(graph.info).config.model_dump(mode="json")
    recipe = Recipe(name=f"defaults/{dataset}", method="ssge", dataset=dataset, protocol="quick", config=config)
    return compare(recipe, graph, PROTOCOLS["quick"], seeds, ROOT / "runs" / code_digest("ssge") / recipe.name)


def difference(row: Row, other: Row, what: str) -> str:
    """Return the difference to another row, in bold where it is below zero by more than one standard error."""
    mean = getattr(row, what) - getattr(other, what)
    deviations = [getattr(r, "encoder_std" if what == "accuracy" else "nmi_std") for r in (row, other)]
    error = sum(d**2 / r.seeds for d, r in zip(deviations, (row, other), strict=True)) ** 0.5
    return f"**{mean:+.2f}**" if mean < -error else f"{mean:+.2f}"


def block(summaries: Sequence[Summary]) -> str:
    """Return the table, with what its figures rest on."""
    headings = (
        "graph", "nodes", "features", "widths", "λ", "accuracy %", "- propagated", "- untrained", "NMI %",
        "- propagated", "- untrained",
    )  # fmt: skip
    lines, notes = [], set()
    for summary in sorted(summaries, key=lambda one: DATASETS.index(one.recipe.dataset)):
        rows, record = {row.name: row for row in summary.rows()}, summary.records[-1]
        ours, propagated, untrained = rows["SSGE"], rows["propagated features"], rows["untrained encoder"]
        notes.add(f"Protocol `{summary.protocol.name}`, {ours.seeds} encoder seeds, {where(record)}.")
        cells = [record.dataset, f"{record.graph['num_nodes']:,}", f"{record.graph['num_features']:,}"]
        cells += ["-".join(str(w) for w in record.config["widths"]), f"{record.config['uniformity_weight']:g}"]
        for what, deviation in (("accuracy", ours.encoder_std), ("nmi", ours.nmi_std)):
            cells.append(f"{getattr(ours, what):.2f} ± {deviation:.2f}")
            cells += [difference(ours, propagated, what), difference(ours, untrained, what)]
        lines.append(cells)
    return markdown(headings, lines) + "\n" + "\n".join(sorted(notes)) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    options = parser.parse_args()
    for chosen in options.datasets:
        measure(chosen, options.seeds).write(RESULTS / "defaults" / f"{chosen}.json")
        pages.renew(pages.group_of("defaults"))
