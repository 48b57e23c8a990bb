"""The paper's efficiency comparison: parameters, time and memory of DGI, MVGRL, GRACE, HomoGCL and SSGE.

Each cell has a process of its own, because peak memory is that of a process. It trains for a few seconds, or one epoch;
the time of a training is that of an epoch times the number of epochs. What was measured before by the same code stays.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import TYPE_CHECKING

from ssge.experiments.efficiency import GRAPHS, PUBLISHED, Measured, Published, measure

if TYPE_CHECKING:
    from pages import Record

SECONDS = 3.0
"""Processor time for which a cell is trained."""


def in_process(method: str, dataset: str) -> Measured:
    """Measure one cell in a process of its own."""
    command = [sys.executable, __file__, "--cell", method, dataset]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def block(record: Record) -> str:
    """Return a table for each of the three figures, ours beside the paper's; cells without a figure show a dash."""
    from pages import table, where
    from ssge.methods import METHODS

    found = {name: Measured(**figures) for name, figures in record.figures.items()}

    def count(ours: Measured, published: Published) -> str:
        return f"{ours.parameters:,} / {published.thousands:,}K"

    def seconds(ours: Measured, published: Published) -> str:
        return f"{ours.seconds:,.0f} ({ours.epochs:,} x {ours.epoch_seconds:.2g}) / {published.seconds:g}"

    def memory(ours: Measured, published: Published) -> str:
        return f"{ours.peak_mb:,.0f} / {published.memory_mb:,}"

    parts = [f"Ours / the paper's Table 5; {where(record)}. The paper's time and memory are of a V100 GPU."]
    titles = ("parameters", "training, processor s (epochs x s)", "peak memory, MB")
    for title, cell in zip(titles, (count, seconds, memory), strict=True):
        lines = {method: [METHODS[method].title] for method, _ in PUBLISHED}
        for (method, dataset), published in PUBLISHED.items():
            ours = found.get(f"{method}/{dataset}")
            lines[method].append("-" if ours is None else cell(ours, published))
        parts.append(table((title, *GRAPHS), lines.values()).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        method, dataset = options.cell
        print(json.dumps(measure(method, dataset, SECONDS)._asdict()))
        return
    from pages import figures_of, write

    figures = figures_of("efficiency")  # an interrupted run goes on
    for method, dataset in PUBLISHED:
        name = f"{method}/{dataset}"
        if name not in figures:
            figures[name] = in_process(method, dataset)._asdict()
            print(name, json.dumps(figures[name]), flush=True)
            write("efficiency", figures, figures)


if __name__ == "__main__":
    main()
