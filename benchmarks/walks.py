"""Random walks of 20 steps from each of 200,000 nodes, ten directed edges a node: first and second order, with weights.

Prints and writes to results/walks.json the processor's and the clock's seconds; the former does not depend on what else
the machine does.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "results" / "walks.json"
NODES, DEGREE, STEPS = 200_000, 10, 20
KINDS = ((1.0, 1.0), (0.25, 4.0), (4.0, 0.25))


def measure(nodes: int, p: float, q: float, weighted: bool) -> dict[str, float | bool]:
    import numpy as np
    import torch

    from ssge.datasets import load
    from ssge.ops.adjacency import Adjacency
    from ssge.ops.walks import Walker

    graph = load("sbm", nodes=nodes, degree=DEGREE, features=2)
    weights = np.random.default_rng(0).uniform(0.5, 2, graph.num_edges) if weighted else None
    adjacency = Adjacency.of(graph.edges, nodes, weights)
    generator = torch.Generator().manual_seed(0)
    began, busy = time.perf_counter(), time.process_time()
    walker = Walker(adjacency, p, q)
    built = time.process_time()
    walker(torch.arange(nodes), STEPS + 1, generator)
    return {
        "p": p,
        "q": q,
        "weighted": weighted,
        "build_cpu_seconds": round(built - busy, 3),
        "walk_cpu_seconds": round(time.process_time() - built, 3),
        "seconds": round(time.perf_counter() - began, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 nodes; writes nothing")
    options = parser.parse_args()
    nodes = NODES // 10 if options.quick else NODES
    measure(1000, 0.5, 2.0, True)  # what is loaded late comes first
    lines = []
    for weighted in (False, True):
        for p, q in KINDS:
            lines.append(measure(nodes, p, q, weighted))
            print(json.dumps(lines[-1]), flush=True)
    if not options.quick:
        import torch

        from ssge.records import machine

        record = {
            "machine": machine(),
            "threads": torch.get_num_threads(),
            "nodes": nodes,
            "degree": DEGREE,
            "steps": STEPS,
            "walks": lines,
        }
        RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
