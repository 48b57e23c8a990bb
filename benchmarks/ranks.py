"""Two processes against one on Computer: seconds of a full epoch with one thread each, and whether the losses agree.

Each number of processes is a run of its own under ``torchrun``. Of each run the median epoch counts, and of several
runs in turn the least of these.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pages import Record

DATASET, RECIPE = "computer", "ssge/computer"
MOST = 0.65
"""Share of one process's time that two may take."""


def epochs(processes: int, count: int) -> dict[str, Any]:
    """Train for some epochs, and return the seconds of the median epoch and all losses."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            str(processes),
            "-m",
            "ssge",
            "fit",
        ]
        command += [DATASET, "--recipe", RECIPE, "--epochs", str(count), "--out", f"{folder}/run", "--quiet"]
        one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        subprocess.run(command, check=True, env=os.environ | one, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in Path(folder, "run", "history.jsonl").read_text().splitlines()]
    seconds = [after["seconds"] - before["seconds"] for before, after in pairwise(lines)]
    return {"seconds": statistics.median(seconds), "losses": [line["total"] for line in lines]}


def block(record: Record) -> str:
    """Return the sentence of docs/distributed.md."""
    from pages import where

    found = record.figures
    one, two = (found["seconds"][processes] for processes in "12")
    return (
        f"An epoch of `{found['recipe']}` takes {one:.2f} s in one process with one thread, and {two:.2f} s in two: "
        f"{found['share']:.2f} of the time. Losses differ by {found['largest_difference_of_losses']:.0e} of their size "
        f"at most ({found['epochs']} epochs; {where(record)}).\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the record to this file and no page")
    options = parser.parse_args()
    runs: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    for _ in range(options.repeats):
        for processes, found in runs.items():
            found.append(epochs(processes, options.epochs))
            print(f"{processes} processes: {found[-1]['seconds']:.3f} s an epoch", flush=True)
    seconds = {processes: min(run["seconds"] for run in found) for processes, found in runs.items()}
    differences = [abs(a / b - 1) for a, b in zip(runs[1][0]["losses"], runs[2][0]["losses"], strict=True)]
    share = seconds[2] / seconds[1]
    print(f"two take {share:.2f} of the time of one (at most {MOST}); losses differ by {max(differences):.1e} at most")

    from pages import write

    figures = {
        "dataset": DATASET, "recipe": RECIPE, "epochs": options.epochs,
        "seconds": {str(processes): value for processes, value in seconds.items()}, "share": share,
        "largest_difference_of_losses": max(differences),
    }  # fmt: skip
    write("ranks", figures, out=options.out)


if __name__ == "__main__":
    main()
