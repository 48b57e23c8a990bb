"""Commands about nodes: neighbors, cluster, classify, outliers."""

import logging
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ssge.cli.options import BY_ID, PRINTED, USE, Count, Naming, Output, Quiet, Vectors, command, set_up
from ssge.errors import InputError, printable
from ssge.terminal import print_cells, print_json


@command(
    USE,
    "ssge neighbors run numpy.linalg -k 5",
    "ssge neighbors run 'Bank of America' --show page_name,page_type",
    "ssge neighbors embedding.parquet 12 40 --metric euclidean --json",
    "ssge neighbors run --all -k 20 --out neighbors.parquet",
    "ssge neighbors run SFO --exclude-linked routes.csv",
)
def neighbors(
    run: Vectors,
    /,
    *ids: str,
    k: Count | None = None,
    every: Annotated[bool, Parameter(name="--all")] = False,
    metric: Literal["cosine", "euclidean"] = "cosine",
    backend: Literal["exact", "faiss"] = "exact",
    exclude_linked: str | None = None,
    quiet: Quiet = False,
    output: Output = PRINTED,
    naming: Naming = BY_ID,
) -> None:
    """Show the nodes nearest to some nodes.

    The file of --out has the columns id, rank, neighbor, and cosine or distance.

    Parameters
    ----------
    ids
        Query nodes, by id; with --show, also by their name in its first column.
    k
        Number of neighbors per node. Default: 10, or all other nodes if there are fewer.
    every
        Query all nodes; needs --out.
    metric
        cosine similarity or euclidean distance of the vectors as written.
    backend
        exact, or faiss for millions of nodes; its recall is measured and logged.
    exclude_linked
        Leave out nodes that have an edge to the query node: a file of edges, or the name of a dataset.
    """
    set_up(quiet)
    import numpy as np

    from ssge.runs.names import SCORES, neighbor_columns
    from ssge.tasks.search import search

    logging.getLogger("faiss").setLevel(logging.WARNING)  # it logs each library that it tries
    if every == bool(ids):
        raise InputError("Name the nodes, or give --all; received both or neither.")
    if every and output.out is None:
        raise InputError("--all needs --out FILE for its result.")
    output.check()
    embedding, names = naming.open(run)
    rows = np.arange(len(embedding.node_ids)) if every else names.positions(ids)
    linked = None if exclude_linked is None else _linked(exclude_linked, embedding.node_ids, run)
    found = search(embedding.vectors, rows, k, metric, backend, exclude=linked)
    written = output.write(neighbor_columns(names, rows, found, metric))
    if every:
        if output.json:
            print_json({"rows": written, "file": str(output.out)})
        return
    value = SCORES[metric]
    answers = [  # fewer than k where linked nodes are left out
        (row, [(i, score) for i, score in zip(near, scores, strict=True) if i >= 0])
        for row, near, scores in zip(rows, *found, strict=True)
    ]
    if output.json:
        print_json(
            [
                names.of(row) | {"neighbors": [names.of(i) | {value: float(score)} for i, score in near]}
                for row, near in answers
            ]
        )
        return
    for row, near in answers:
        print(f"nearest to {printable(names.title(row))}")  # a title would be folded to the width of the table
        print_cells((value, "node", *names.columns), [(f"{score:.3f}", *names.cells(i)) for i, score in near])


@command(USE, "ssge cluster run -k 7", "ssge cluster run -k 20 --show page_name --out clusters.csv")
def cluster(run: Vectors, /, *, k: Count, seed: int = 0, output: Output = PRINTED, naming: Naming = BY_ID) -> None:
    """Cluster the nodes by k-means; show sizes and the most central members.

    The file of --out has the columns id, cluster, and distance from the center of the cluster.

    Parameters
    ----------
    k
        Number of clusters.
    seed
        Seed of k-means.
    """
    from ssge.runs.names import cluster_columns
    from ssge.tasks.clusters import clusters

    output.check()
    embedding, names = naming.open(run)
    found = clusters(embedding.vectors, k, seed)
    output.write([cluster_columns(names, found)])
    groups = list(enumerate(zip(found.size, found.central, strict=True)))
    if output.json:
        members = names.of if names.columns else lambda row: names.of(row)["id"]
        print_json([{"cluster": i, "size": int(n), "central": [*map(members, rows)]} for i, (n, rows) in groups])
    else:
        lines = [(str(i), f"{n:,}", ", ".join(names.title(row) for row in rows)) for i, (n, rows) in groups]
        print_cells(("cluster", "size", "most central members"), lines)


@command(
    USE,
    "ssge classify run --labels labels.csv",
    "ssge classify run --labels nodes.parquet --id name --label topic --out predicted.csv",
)
def classify(
    run: Vectors,
    /,
    *,
    labels: Path,
    id_column: Annotated[str | None, Parameter(name="--id")] = None,
    label_column: Annotated[str | None, Parameter(name="--label")] = None,
    folds: int = 5,
    seed: int = 0,
    allow_leak: bool = False,
    quiet: Quiet = False,
    output: Output = PRINTED,
) -> None:
    """Predict the classes of the nodes without a label from those with one.

    A logistic regression on the embedding; its scores are cross-validated over the labeled nodes. The file of --out has
    the columns id, predicted, and the probability of each class.

    Parameters
    ----------
    labels
        CSV, TSV or Parquet file with the labels of some nodes; an empty one, NA, NaN and null are none.
    id_column
        Column of the node ids; default: one named id, node, node_id or name, else the first.
    label_column
        Column of the labels; default: one named y, label, labels or class, else the only other one.
    folds
        Number of folds of the cross-validation.
    seed
        Seed of the folds.
    allow_leak
        Continue even if a column that the run was fitted on determines the labels.
    """
    set_up(quiet)
    import numpy as np

    from ssge.io.labels import read_labels
    from ssge.runs.folder import RunFolder, read_vectors
    from ssge.runs.leaks import check_leaks
    from ssge.tasks.classify import classify as predict

    output.check()
    embedding = read_vectors(run)
    rows, given = read_labels(labels, embedding.node_ids, id_column, label_column)
    if run.is_dir():
        check_leaks(RunFolder(run), rows, given, allow_leak)
    found = predict(embedding.vectors, rows, given, folds, seed)
    classes = [str(name) for name in found.classes]
    columns = {"id": embedding.node_ids[found.rows], "predicted": found.predicted}
    output.write([columns | {f"p_{name}": found.probability[:, i] for i, name in enumerate(classes)}])
    counts = {name: int(np.count_nonzero(found.predicted == c)) for name, c in zip(classes, found.classes, strict=True)}
    if output.json:
        summary = {
            "accuracy": found.accuracy._asdict(),
            "macro_f1": found.macro_f1._asdict(),
            "majority": found.majority,
            "folds": found.folds,
            "C": found.C,
            "labeled": len(rows),
            "predicted": counts,
        }
        print_json(summary)
        return
    scores = [
        ("accuracy %", f"{100 * found.accuracy.mean:.1f} ± {100 * found.accuracy.std:.1f}"),
        ("macro-F1 %", f"{100 * found.macro_f1.mean:.1f} ± {100 * found.macro_f1.std:.1f}"),
        ("accuracy % of the most frequent class", f"{100 * found.majority:.1f}"),
    ]
    print(f"{found.folds}-fold cross-validation over {len(rows):,} labeled nodes, C = {found.C:g}")
    print_cells(("", ""), scores)
    if len(found.rows):
        lines = [(name, f"{count:,}") for name, count in counts.items()]
        print(f"predicted for {len(found.rows):,} nodes")
        print_cells(("class", "nodes"), lines)


@command(USE, "ssge outliers run", "ssge outliers run -k 100 --show page_name,page_type")
def outliers(
    run: Vectors,
    /,
    *,
    k: Count = 20,
    neighbors: int = 20,
    output: Output = PRINTED,
    naming: Naming = BY_ID,
) -> None:
    """Show the nodes that are least similar to all others.

    The score is the mean cosine distance of a node from its nearest neighbors, between vectors whose columns are
    centered first. The file of --out has the columns id and score, for all nodes, the highest first.

    Parameters
    ----------
    k
        Number of nodes to show.
    neighbors
        Number of nearest neighbors that the score averages over.
    """
    import numpy as np

    from ssge.runs.names import outlier_columns
    from ssge.tasks.outliers import outlier_scores

    if k < 1:
        raise InputError(f"k must be 1 or more; received {k}.")
    output.check()
    embedding, names = naming.open(run)
    scores = outlier_scores(embedding.vectors, neighbors)
    output.write([outlier_columns(names, scores)])
    top = np.argsort(-scores, kind="stable")[:k]
    if output.json:
        print_json([names.of(row) | {"score": float(scores[row])} for row in top])
    else:
        print_cells(("score", "node", *names.columns), [(f"{scores[row]:.3f}", *names.cells(row)) for row in top])


def _linked(edges: str, node_ids: Any, run: Path) -> Any:
    """Return the edges of a file or dataset as a sparse matrix, in both directions."""
    import numpy as np
    import scipy.sparse as sp

    from ssge.experiments.sources import known_edges
    from ssge.runs.folder import RunFolder

    source, target = known_edges(edges, node_ids, RunFolder(run).read_record() if run.is_dir() else None)
    one_way = sp.csr_array((np.ones(len(source), bool), (source, target)), shape=(len(node_ids), len(node_ids)))
    return one_way + one_way.T
