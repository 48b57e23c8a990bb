"""Random walks of 20 steps from each of 200,000 nodes, ten directed edges a node: first and second order, with weights.

Seconds of the processor and of the clock; the former do not depend on what else the machine does.
"""

from __future__ import annotations

import json
import time

import numpy as np
import torch

from pages import asked, write
from ssge.datasets import load
from ssge.ops.adjacency import Adjacency
from ssge.ops.random import Key
from ssge.ops.walks import Walker

NODES, DEGREE, STEPS = 200_000, 10, 20
KINDS = ((1.0, 1.0), (0.25, 4.0), (4.0, 0.25))


def measure(nodes: int, p: float, q: float, weighted: bool) -> dict[str, float | bool]:
    graph = load("sbm", nodes=nodes, degree=DEGREE, features=2)
    weights = np.random.default_rng(0).uniform(0.5, 2, graph.num_edges) if weighted else None
    adjacency = Adjacency.of(graph.edges, nodes, weights)
    generator = Key(0).generator()
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


if __name__ == "__main__":
    only = asked(__doc__, ("20000", "200000"))
    nodes = int(only[0]) if only else NODES
    measure(1000, 0.5, 2.0, True)  # what is loaded late comes first
    lines = []
    for weighted in (False, True):
        for p, q in KINDS:
            lines.append(measure(nodes, p, q, weighted))
            print(json.dumps(lines[-1]), flush=True)
    if not only:
        write("walks", {"nodes": nodes, "degree": DEGREE, "steps": STEPS, "walks": lines})
