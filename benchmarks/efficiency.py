"""The paper's efficiency comparison: parameters, time and memory of DGI, MVGRL, GRACE, HomoGCL and SSGE.

Each cell has a process of its own, because peak memory is that of a process. A few epochs are run; the time of a
training is that of an epoch times the number of epochs. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from ssge.experiments.efficiency import GRAPHS, PUBLISHED, Measured, measure

if TYPE_CHECKING:
    from pages import Record

EPOCHS = {"cora": 20, "citeseer": 20, "pubmed": 3, "computer": 3}


def in_process(method: str, dataset: str) -> Measured:
    """Measure one cell in a process of its own."""
    command = [sys.executable, __file__, "--cell", method, dataset]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def block(record: Record) -> str:
    """Return a table for each of the three figures, ours beside the paper's."""
    from pages import table, where
    from ssge.methods import METHODS

    found = {(line["method"], line["dataset"]): Measured(**line["measured"]) for line in record.figures}
    methods = list(dict.fromkeys(method for method, _ in found))
    names = [name for name in GRAPHS if any((method, name) in found for method in methods)]

    def lines(cell: Any) -> list[tuple[str, ...]]:
        return [(METHODS[method].title, *(cell(method, name) for name in names)) for method in methods]

    def count(method: str, name: str) -> str:
        return f"{found[method, name].parameters:,} / {PUBLISHED[method, name].thousands:,}K"

    def seconds(method: str, name: str) -> str:
        one = found[method, name]
        return f"{one.seconds:,.0f} ({one.epochs:,} x {one.epoch_seconds:.2g}) / {PUBLISHED[method, name].seconds:g}"

    def memory(method: str, name: str) -> str:
        return f"{found[method, name].peak_mb:,.0f} / {PUBLISHED[method, name].memory_mb:,}"

    parts = [f"Ours / the paper's Table 5; {where(record)}. The paper's time and memory are of a V100 GPU."]
    for title, cell in (("parameters", count), ("training, s (epochs x s)", seconds), ("peak memory, MB", memory)):
        parts.append(table((title, *names), lines(cell)).rstrip("\n"))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=GRAPHS, help="these graphs; writes no record")
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        method, dataset = options.cell
        print(json.dumps(measure(method, dataset, EPOCHS[dataset])._asdict()))
        return
    from pages import Record, write

    figures, used = [], []
    for method, dataset in PUBLISHED:
        if dataset in (options.only or GRAPHS):
            measured = in_process(method, dataset)
            figures.append({"method": method, "dataset": dataset, "measured": measured._asdict()})
            used.append(f"{method}/{dataset}")
            print(method, dataset, json.dumps(figures[-1]["measured"]), flush=True)
    if options.only:
        from ssge.records import machine

        print(block(Record(machine=machine(), figures=figures)))
    else:
        write("efficiency", figures, used)


if __name__ == "__main__":
    main()
