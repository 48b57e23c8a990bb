"""Inductive embedding of new nodes: train on part of a graph, then embed nodes that were not in the training graph.

The nodes are small images of digits, with edges between similar images. A sixth of them arrives after training. The new
tables are read like the first ones (``like=model``) and embedded without training. The test: is the known image nearest
to a new one of the same digit?

    python examples/new_nodes.py
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ssge

digits = ssge.load_dataset("digits")
names = np.array([f"image-{i}" for i in range(digits.num_nodes)])
edges = pa.table({"source": names[digits.edges[0]], "target": names[digits.edges[1]]})
nodes = pa.table({"id": names, "pixels": list(digits.features)})  # a list of numbers per row becomes as many features

later = np.random.default_rng(0).random(digits.num_nodes) < 1 / 6
known = pa.array(names[~later])
among_known = pc.and_(pc.is_in(edges["source"], known), pc.is_in(edges["target"], known))
first = ssge.read_graph(edges.filter(among_known), nodes.filter(~later), scale="standard")
model = ssge.SSGE(widths=(64, 32), epochs=60, random_state=0).fit(first)

whole = ssge.read_graph(edges, nodes, like=model)  # same columns, means and standard deviations
vectors = model.transform(whole)
vectors = vectors - vectors.mean(axis=0)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
nearest = (vectors[later] @ vectors[~later].T).argmax(axis=1)

shown = np.asarray(digits.labels)
same = shown[later] == shown[~later][nearest]
print(f"{len(first.node_ids):,} known nodes, {later.sum()} new ones")
print(f"{100 * same.mean():.1f} % of the new images are nearest to a known image of the same digit")
for new, old in list(zip(names[later], names[~later][nearest], strict=True))[:3]:
    print(f"{new} is most like {old}")
