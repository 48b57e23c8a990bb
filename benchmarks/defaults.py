"""What a user gets without a recipe, on graphs of several kinds.

Writes results/defaults/*.json and the table in docs/defaults.md. With ``--tables`` nothing is run:
the table is made from the committed records.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ssge.datasets import load
from ssge.experiments.compare import Summary, compare
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.recipes import Recipe
from ssge.experiments.run import resolve_config, suited
from ssge.experiments.tables import Row

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "defaults"
PAGE = ROOT / "docs" / "defaults.md"
DATASETS = ("cora", "citeseer", "pubmed", "computer", "coauthor_cs", "imports", "digits")
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def measure(dataset: str, seeds: int) -> None:
    graph = load(dataset)
    config = resolve_config("ssge", suited("ssge", graph))
    name = f"defaults/{dataset}"
    recipe = Recipe(name=name, method="ssge", dataset=dataset, protocol="quick", config=config.model_dump())
    summary = compare(recipe, graph, PROTOCOLS["quick"], seeds, ROOT / "runs" / "defaults" / dataset)
    summary.write(RESULTS / f"{dataset}.json")


def difference(row: Row, other: Row, what: str) -> str:
    """Return the difference to another row, in bold where it is below zero by more than one standard error."""
    mean = getattr(row, what) - getattr(other, what)
    deviations = [getattr(r, "encoder_std" if what == "accuracy" else "nmi_std") for r in (row, other)]
    error = sum(d**2 / r.seeds for d, r in zip(deviations, (row, other), strict=True)) ** 0.5
    return f"**{mean:+.2f}**" if mean < -error else f"{mean:+.2f}"


def table() -> str:
    lines = [
        "| graph | nodes | features | widths | λ "
        "| accuracy % | - propagated | - untrained | NMI % | - propagated | - untrained |",
        "| --- |" + " ---: |" * 10,
    ]
    notes = set()
    for dataset in DATASETS:
        path = RESULTS / f"{dataset}.json"
        if not path.exists():
            continue
        summary = Summary.read(path)
        rows = {row.name: row for row in summary.rows()}
        ours, propagated, untrained = rows["SSGE"], rows["propagated features"], rows["untrained encoder"]
        record = summary.records[-1]
        notes.add(
            f"Protocol `{summary.protocol.name}`, {ours.seeds} encoder seeds, {record.threads} threads, "
            f"{record.machine['cores']} cores of {record.machine['processor']}, torch {record.machine['torch']}."
        )
        cells = [dataset, f"{record.graph['num_nodes']:,}", f"{record.graph['num_features']:,}"]
        cells += ["-".join(str(w) for w in record.config["widths"]), f"{record.config['uniformity_weight']:g}"]
        for what, deviation in (("accuracy", ours.encoder_std), ("nmi", ours.nmi_std)):
            cells.append(f"{getattr(ours, what):.2f} ± {deviation:.2f}")
            cells += [difference(ours, propagated, what), difference(ours, untrained, what)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *sorted(notes)]) + "\n"


def renew(text: str) -> str:
    """Return the page with its table replaced."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--tables", action="store_true", help="make the table from the committed records, run nothing")
    options = parser.parse_args()
    if not options.tables:
        for chosen in options.datasets:
            measure(chosen, options.seeds)
    PAGE.write_text(renew(PAGE.read_text()))
