"""How time and memory grow with the graph: block models from 10^4 to 10^6 nodes, ten directed edges a node.

Fits time and memory of a training step to a power of the number of edges, prints the exponents, and draws
docs/scaling.png. Each size has a process of its own; time is the least of several steps,
memory the highest resident memory during training minus that just before it.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speed import measured_memory, train_ours

if TYPE_CHECKING:
    from pages import Record

NODES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
CONFIG: dict[str, Any] = {"widths": (128, 64), "edge_drop": 0.3, "feature_mask": 0.1}
FEATURES, DEGREE = 64, 10


def measure(nodes: int) -> dict[str, float]:
    from ssge.datasets import load

    graph = load("sbm", nodes=nodes, degree=DEGREE, features=FEATURES).without_labels()
    train_ours(load("karate").without_labels(), CONFIG | {"widths": (8, 8)}, 1)  # the libraries' own memory comes first
    seconds: list[float] = []
    memory = measured_memory(lambda: seconds.extend(train_ours(graph, CONFIG, 8)))
    return {"nodes": nodes, "edges": graph.num_edges, "seconds": min(seconds), **memory}


def exponent(lines: list[dict[str, float]], field: str) -> float:
    """Return the slope of log(field) against log(edges), by least squares."""
    import numpy as np

    return float(np.polyfit(np.log([line["edges"] for line in lines]), np.log([line[field] for line in lines]), 1)[0])


def block(record: Record) -> bytes:
    """Draw time and memory against edges."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    lines, picture = record.figures["sizes"], io.BytesIO()
    edges = [line["edges"] for line in lines]
    for panel, (field, label) in zip(
        panels, (("seconds", "seconds a step"), ("above_graph_mb", "MiB above the graph")), strict=True
    ):
        values = [line[field] for line in lines]
        panel.loglog(edges, values, "o-", color="#1f4e79")
        panel.loglog(edges, [values[0] * e / edges[0] for e in edges], ":", color="#888888", label="in proportion")
        panel.set_xlabel("directed edges")
        panel.set_ylabel(label)
        panel.set_title(f"exponent {record.figures['exponents'][field]:.2f}", fontsize=10)
        panel.legend(frameon=False)
    figure.savefig(picture, dpi=150)
    plt.close(figure)
    return picture.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", type=int, choices=NODES, help="these sizes; writes no record but --out")
    parser.add_argument("--out", type=Path, help="write the record to this file and no page")
    parser.add_argument("--nodes", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.nodes:
        print(json.dumps(measure(options.nodes)))
        return
    lines = []
    for nodes in options.only or NODES:
        command = [sys.executable, __file__, "--nodes", str(nodes)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        lines.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(lines[-1]), flush=True)
    exponents = {field: exponent(lines, field) for field in ("seconds", "above_graph_mb") if len(lines) > 1}
    print(f"exponents of the number of edges: {exponents}")
    if options.out or not options.only:
        from pages import write

        figures = {"config": CONFIG, "features": FEATURES, "sizes": lines, "exponents": exponents}
        write("scaling", figures, out=options.out)


if __name__ == "__main__":
    main()
