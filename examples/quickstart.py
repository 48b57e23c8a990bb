"""From two CSV files to a table of embeddings.

The example writes the files itself: 90 people in three circles, each with an age and a plan, and the calls between
them. Replace them with your own; docs/own-graph.md describes the formats.

    python examples/quickstart.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import ssge


def write_tables(folder: Path) -> None:
    """Write people.csv (one person per row) and calls.csv (one call per row, most of them within a circle)."""
    rng = np.random.default_rng(0)
    names = [f"{circle}{i:02d}" for circle in ("ann", "bob", "cyd") for i in range(30)]
    people = [f"{name},{rng.integers(20, 70)},{rng.choice(['free', 'paid'])}" for name in names]
    caller, anyone = rng.integers(90, size=(2, 400))
    called = np.where(rng.random(400) < 0.9, caller // 30 * 30 + anyone % 30, anyone)
    calls = [f"{names[i]},{names[j]},{rng.integers(1, 9)}" for i, j in zip(caller, called, strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "people.csv").write_text("\n".join(["id,age,plan", *people]) + "\n")
    (folder / "calls.csv").write_text("\n".join(["source,target,weight", *calls]) + "\n")


folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
write_tables(folder)

graph = ssge.read_graph(folder / "calls.csv", folder / "people.csv", features=["table", "laplacian"], scale="standard")
model = ssge.SSGE(random_state=0).fit(graph)
table = model.to_frame()
model.save(folder / "model")

print(graph)
print(table)
print(f"the model is in {folder / 'model'}; who is like ann00? ssge neighbors {folder / 'model'} ann00")
