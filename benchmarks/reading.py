"""How long a user's own graph takes to read: ten million edges as CSV, integer and text ids, each in a fresh process.

Seconds and the peak of memory, both of reading alone.
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

from pages import asked
from pages import write as write_record

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


def write(path: Path, text: bool, edges: int) -> None:
    ends = np.random.default_rng(0).integers(0, NODES, size=(2, edges))
    columns = [pa.array(end) for end in ends]
    if text:
        names = pa.array([f"user-{i:07d}" for i in range(NODES)])
        columns = [names.take(column) for column in columns]
    csv.write_csv(pa.table(columns, names=["source", "target"]), path)


def measure(text: bool, edges: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.csv"
        write(path, text, edges)
        done = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, stdout=subprocess.PIPE, text=True)
        return {"file_mb": round(path.stat().st_size / (1 << 20)), **json.loads(done.stdout)}


if __name__ == "__main__":
    only = asked(__doc__, (str(EDGES // 100), str(EDGES)))
    edges, found = int(only[0]) if only else EDGES, {}
    for name, text in (("integer ids", False), ("text ids", True)):
        found[name] = measure(text, edges)
        print(f"{name:12s} {found[name]['seconds']:.1f} s  {found[name]['peak_mb']:,} MB")
    if not only:
        write_record("reading", {"rows": EDGES, **found})
