"""Run the recipes of SSGE on the benchmark graphs at hand and renew the tables of the README from their records.

The records go to ``results/<recipe>.json`` and are committed, so that every figure can be traced; finished seeds in
``runs/`` are not run again. With ``--tables`` nothing is run: the tables are made from the committed records.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from ssge.experiments.compare import Summary
from ssge.experiments.tables import HEADINGS, cells

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "results"
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"
RUNS = (
    ("paper", "cora"),
    ("paper", "citeseer"),
    ("paper", "citeseer-clusters"),
    ("paper", "pubmed"),
    ("paper", "computer"),
    ("paper", "coauthor_cs"),
    ("paper-lbfgs", "cora"),
    ("paper-lbfgs", "citeseer"),
    ("paper-lbfgs", "pubmed"),
    ("quick", "imports"),
)


def measure(protocol: str, name: str, seeds: int) -> None:
    recipe = f"ssge/{name}"
    command = [sys.executable, "-m", "ssge", "run", recipe, "--seeds", str(seeds), "--protocol", protocol, "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    Summary.model_validate_json(done.stdout).write(RESULTS / protocol / f"{name}.json")


def table(summary: Summary) -> str:
    """Return one recipe's table in Markdown, headed by protocol, splits, seeds and machine."""
    record = summary.records[-1]
    scores = record.scores[summary.protocol.name]
    seeds = sum(r.method == record.method for r in summary.records)
    published = summary.recipe.published
    lines = [
        f"**{summary.recipe.name.split('/')[-1]}**: protocol `{summary.protocol.name}` ({scores.splits}), "
        f"encoder seeds 0-{seeds - 1}, {record.threads} threads, {record.machine['cores']} cores of "
        f"{record.machine['processor']}, torch {record.machine['torch']}\n",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + " --- |" + " ---: |" * (len(HEADINGS) - 1),
        *("| " + " | ".join(cells(row)) + " |" for row in summary.rows()),
    ]
    if published:
        figures = [published.get(key) for key in ("accuracy", "accuracy_deviation", "nmi", "ari")]
        shown = ["-" if figure is None else f"{figure:g}" for figure in figures]
        lines.append(f"| published | {shown[0]} | {shown[1]} | - | {shown[2]} | {shown[3]} | - | - |")
    return "\n".join(lines) + "\n"


def tables() -> str:
    """Return all tables, made from the committed records."""
    parts = []
    for protocol, name in RUNS:
        path = RESULTS / protocol / f"{name}.json"
        if path.exists():
            parts.append(table(Summary.read(path)))
    return "\n".join(parts)


def renew(text: str, new: str) -> str:
    """Return the README with its tables replaced."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + new + END + rest.split(END)[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", action="store_true", help="make the tables from the committed records, run nothing")
    options = parser.parse_args()
    if not options.tables:
        for chosen in RUNS:
            measure(*chosen, options.seeds)
    README.write_text(renew(README.read_text(), tables()))
