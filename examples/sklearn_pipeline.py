"""Embeddings as feature columns of another model: join by id, then compare with the raw columns by cross-validation.

The embedding is learned without labels, so no label of a held-out node reaches it. But the held-out nodes are part of
the training graph: these scores are transductive, for existing nodes. For an inductive evaluation, remove the test
nodes from the graph too and embed them later, as in examples/new_nodes.py.

    python examples/sklearn_pipeline.py
"""

from __future__ import annotations

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ssge

graph = ssge.load_dataset("sbm:nodes=800,classes=4,features=32")  # a random graph with known classes
nodes = pd.DataFrame(graph.features, columns=[f"x{i}" for i in range(graph.num_features)])
nodes.insert(0, "id", graph.node_ids)
raw = list(nodes.columns[1:])

model = ssge.SSGE(widths=(64, 32), epochs=60, random_state=0).fit(graph)
vectors = model.to_frame()
joined = nodes.merge(vectors, on="id", validate="one_to_one")
learned = list(vectors.columns[1:])

classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
folds = StratifiedKFold(5, shuffle=True, random_state=0)
for name, columns in {"raw columns": raw, "embedding": learned, "both": raw + learned}.items():
    scores = 100 * cross_val_score(classifier, joined[columns], graph.labels, cv=folds)
    print(f"{name:12s} {scores.mean():5.1f} ± {scores.std():.1f} % accuracy, {len(columns)} columns")
