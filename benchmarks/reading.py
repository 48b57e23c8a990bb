"""How long a user's own graph takes to read: ten million edges as CSV, integer and text ids, each in a fresh process.

Seconds and the peak of memory, both of reading alone, go to ``results/reading.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from ssge.files import atomic
from ssge.records import machine

RESULTS = Path(__file__).resolve().parent.parent / "results" / "reading.json"
NODES, EDGES = 1_000_000, 10_000_000
READ = """
import json, sys, time
import ssge
from ssge.records import peak_memory_mb
began = time.perf_counter()
graph = ssge.read_graph(sys.argv[1], features="degree")
print(json.dumps({"seconds": round(time.perf_counter() - began, 2), "peak_mb": round(peak_memory_mb()),
                  "nodes": graph.num_nodes, "directed_edges": graph.num_edges}))
"""


def write(path: Path, text: bool) -> None:
    ends = np.random.default_rng(0).integers(0, NODES, size=(2, EDGES))
    columns = [pa.array(end) for end in ends]
    if text:
        names = pa.array([f"user-{i:07d}" for i in range(NODES)])
        columns = [names.take(column) for column in columns]
    csv.write_csv(pa.table(columns, names=["source", "target"]), path)


def measure(text: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.csv"
        write(path, text)
        done = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, stdout=subprocess.PIPE, text=True)
        return {"file_mb": round(path.stat().st_size / (1 << 20)), **json.loads(done.stdout)}


if __name__ == "__main__":
    found = {}
    for name, text in (("integer ids", False), ("text ids", True)):
        found[name] = measure(text)
        print(f"{name:12s} {found[name]['seconds']:.1f} s  {found[name]['peak_mb']:,} MB")
    with atomic(RESULTS) as temporary:
        temporary.write_text(json.dumps({"rows": EDGES, **found, "machine": machine()}, indent=2) + "\n")
