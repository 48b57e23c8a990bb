"""Commands that apply a trained model or an embedding: embed, neighbors, cluster, classify, outliers."""

import json as jsonlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from ssge.cli.options import (
    AS_FOUND,
    BY_ID,
    NAMING,
    READING,
    USE,
    Naming,
    Reading,
    Switch,
    be_quiet,
    examples,
    use_threads,
)
from ssge.terminal import print_cells

log = logging.getLogger(__name__)


def register(app: App) -> None:
    """Add the commands."""
    app.command(
        embed,
        group=USE,
        help_epilogue=examples(
            "ssge embed run cora --out cora.parquet",
            "ssge embed run new_edges.csv --nodes new_nodes.csv --out new.parquet",
            "ssge embed run grown.csv --nodes grown_nodes.csv --only new --out new.csv",
        ),
    )
    app.command(
        neighbors,
        group=USE,
        help_epilogue=examples(
            "ssge neighbors run numpy.linalg -k 5",
            "ssge neighbors run 'Bank of America' --show page_name,page_type",
            "ssge neighbors embedding.parquet 12 40 --metric euclidean --json",
            "ssge neighbors run --all -k 20 --out neighbors.parquet",
            "ssge neighbors run SFO --exclude-linked routes.csv",
        ),
    )
    app.command(
        cluster,
        group=USE,
        help_epilogue=examples("ssge cluster run -k 7", "ssge cluster run -k 20 --show page_name --out clusters.csv"),
    )
    app.command(
        classify,
        group=USE,
        help_epilogue=examples(
            "ssge classify run --labels labels.csv",
            "ssge classify run --labels nodes.parquet --id name --label topic --out predicted.csv",
        ),
    )
    app.command(
        outliers,
        group=USE,
        help_epilogue=examples("ssge outliers run", "ssge outliers run -k 100 --show page_name,page_type"),
    )


def embed(
    run: Path,
    graph: str,
    /,
    *,
    out: Path,
    only: Literal["new"] | None = None,
    force: Switch = False,
    safe_csv: Switch = False,
    device: str = "cpu",
    threads: int | None = None,
    memory: str | None = None,
    quiet: Switch = False,
    json: Switch = False,
    reading: Annotated[Reading, READING] = AS_FOUND,
) -> None:
    """Embed a graph with the model of a finished run: new nodes, or a new graph with the same columns.

    The graph is read as that of the run, with features made in the same way; the flags change how it is read.

    Parameters
    ----------
    run
        Folder of the run.
    graph
        Name of a dataset, or file, with the same features.
    out
        File to write: .parquet or .csv (id, e000...), .npy (ids beside it), or word2vec text (.txt, .vec, .emb).
    only
        new: embed only the nodes that the run has not seen. The tables must hold these and their neighborhood, one hop
        more than the encoder has layers, since the degrees of the outermost nodes count; and all edges that structural
        or aggregated features of these nodes come from. Nothing else in the tables matters.
    force
        Replace the file if it exists.
    safe_csv
        Write CSV for spreadsheets: text that would be a formula there, as =1+1, gets an apostrophe before it.
    device
        cpu, cuda, cuda:1, ..., or auto.
    threads
        Processor threads.
    memory
        Stream a graph folder (ssge convert) so that the process stays below this, as in 2GB.
    quiet
        Show no notes.
    json
        Print as JSON.
    """
    be_quiet(quiet)
    use_threads(threads)
    import numpy as np

    from ssge.cli.train import read_options, tell_drift
    from ssge.errors import InputError
    from ssge.experiments.sources import is_dataset, open_graph, open_streamed
    from ssge.io.embeddings import Embedding, check_embedding_target, write_embedding
    from ssge.runs.fit import check_vectors
    from ssge.runs.folder import RunFolder
    from ssge.training.device import choose_device
    from ssge.training.streaming import streamed_embedding, streamed_view

    check_embedding_target(out, force)
    folder = RunFolder(run)
    if memory and only:
        raise InputError("--memory embeds all nodes; leave --only out.")
    record, known = folder.read_record(), None if memory else folder.read_embedding()
    model = folder.read_model(str(choose_device(device)))
    schema = folder.read_schema()
    if not model.inductive and not is_dataset(graph) and Path(graph).resolve() != Path(record.dataset):
        raise InputError(
            f"{model.title} has vectors only for the nodes of the graph it was trained on: they are in "
            f"{folder.embedding}; train on {graph} to embed that."
        )
    options = read_options(graph, reading, record, schema)
    if known is None:
        assert memory is not None
        stored = open_streamed(graph, memory, out.absolute().parent, options, schema)
        vectors: Any = streamed_embedding(model, streamed_view(model, stored))
        write_embedding(out, stored.node_ids, vectors, safe_csv)
        _tell_embedding(out, vectors.shape, json)
        return
    data = open_graph(graph, options, schema)
    nodes = None
    if only:
        nodes = np.flatnonzero(known.find(data.node_ids) < 0)
        if not nodes.size:
            raise InputError(f"--only new: the run in {run} has seen all {data.num_nodes:,} nodes of {graph}.")
        log.info("%s nodes are new, %s were known.", f"{nodes.size:,}", f"{data.num_nodes - nodes.size:,}")
    vectors = model.embed(data, nodes).cpu().numpy()
    check_vectors(vectors)
    found = Embedding(data.node_ids if nodes is None else data.node_ids[nodes], vectors)
    write_embedding(out, *found, safe_csv)
    if not only:
        tell_drift(known, found)
    _tell_embedding(out, vectors.shape, json)


def _tell_embedding(path: Path, shape: tuple[int, int], json: bool) -> None:
    """Tell what was written."""
    if json:
        print(jsonlib.dumps({"nodes": shape[0], "columns": shape[1], "file": str(path)}))
    else:
        print(f"{shape[0]:,} nodes x {shape[1]} columns: {path}")


def neighbors(
    run: Path,
    /,
    *ids: str,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 10,
    every: Annotated[bool, Parameter(name="--all", negative="")] = False,
    metric: Literal["cosine", "euclidean"] = "cosine",
    backend: Literal["exact", "faiss"] = "exact",
    exclude_linked: str | None = None,
    out: Path | None = None,
    force: Switch = False,
    safe_csv: Switch = False,
    quiet: Switch = False,
    json: Switch = False,
    naming: Annotated[Naming, NAMING] = BY_ID,
) -> None:
    """Show the nodes nearest to some nodes.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding.
    ids
        The nodes asked about; with --show, names in its first column will do.
    k
        How many neighbors of each.
    every
        Ask about all nodes; needs --out.
    metric
        cosine, or euclidean distance, of the vectors as they are written.
    backend
        exact, or faiss for millions of nodes; its recall is measured and logged.
    exclude_linked
        Leave out nodes that have an edge to the one asked about: a file of edges, or the name of a dataset.
    out
        Write id, rank, neighbor and cosine or distance to a .csv or .parquet file.
    force
        Replace the file if it exists.
    safe_csv
        Write CSV for spreadsheets: text that would be a formula there, as =1+1, gets an apostrophe before it.
    quiet
        No notes.
    json
        Print as JSON.
    """
    be_quiet(quiet)
    import numpy as np

    from ssge.errors import InputError, printable
    from ssge.io.results import check_target, write_results
    from ssge.runs.answers import neighbor_columns, value_of
    from ssge.runs.names import open_named
    from ssge.tasks.search import search

    logging.getLogger("faiss").setLevel(logging.WARNING)  # it tells which of its libraries it tries
    if every == bool(ids):
        raise InputError("Name the nodes, or give --all; received both or neither.")
    if every and out is None:
        raise InputError("--all needs --out FILE for its result.")
    check_target(out, force)
    embedding, names = open_named(run, naming.show, naming.nodes, naming.id)
    rows = np.arange(len(embedding.node_ids)) if every else names.positions(ids)
    linked = None if exclude_linked is None else _linked(exclude_linked, embedding.node_ids)
    found = search(embedding.vectors, rows, k, metric, backend, exclude=linked)
    if out is not None:
        written = write_results(out, neighbor_columns(names, rows, found, metric), safe_csv)
        tell(out, written, json)
        if every:
            if json:
                print(jsonlib.dumps({"rows": written, "file": str(out)}))
            return
    value = value_of(metric)
    if json:
        asked = [
            names.of(row) | {"neighbors": [names.of(i) | {value: float(score)} for i, score in _there(near, scores)]}
            for row, near, scores in zip(rows, *found, strict=True)
        ]
        print(jsonlib.dumps(asked, indent=2))
        return
    for row, near, scores in zip(rows, *found, strict=True):
        lines = [(f"{score:.3f}", *names.cells(i)) for i, score in _there(near, scores)]
        print(f"nearest to {printable(names.title(row))}")  # a title would be folded to the width of the table
        print_cells((value, "node", *names.columns), lines)


def cluster(
    run: Path,
    /,
    *,
    k: Annotated[int, Parameter(name=["-k", "--k"])],
    seed: int = 0,
    out: Path | None = None,
    force: Switch = False,
    safe_csv: Switch = False,
    json: Switch = False,
    naming: Annotated[Naming, NAMING] = BY_ID,
) -> None:
    """Divide the nodes into clusters by k-means; show sizes and the most central members.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding.
    k
        Number of clusters.
    seed
        Decides where k-means starts.
    out
        Write id, cluster and distance from its center to a .csv or .parquet file.
    force
        Replace the file if it exists.
    safe_csv
        Write CSV for spreadsheets: text that would be a formula there, as =1+1, gets an apostrophe before it.
    json
        Print as JSON.
    """
    from ssge.io.results import check_target, write_results
    from ssge.runs.answers import cluster_columns
    from ssge.runs.names import open_named
    from ssge.tasks.clusters import clusters

    check_target(out, force)
    embedding, names = open_named(run, naming.show, naming.nodes, naming.id)
    found = clusters(embedding.vectors, k, seed)
    if out is not None:
        tell(out, write_results(out, [cluster_columns(names, found)], safe_csv), json)
    groups = list(enumerate(zip(found.size, found.central, strict=True)))
    if json:
        members = names.of if names.columns else lambda row: names.of(row)["id"]
        parts = [{"cluster": i, "size": int(n), "central": [members(row) for row in rows]} for i, (n, rows) in groups]
        print(jsonlib.dumps(parts, indent=2))
    else:
        lines = [(str(i), f"{n:,}", ", ".join(names.title(row) for row in rows)) for i, (n, rows) in groups]
        print_cells(("cluster", "size", "most central members"), lines)


def classify(
    run: Path,
    /,
    *,
    labels: Path,
    id_column: Annotated[str | None, Parameter(name="--id")] = None,
    label_column: Annotated[str | None, Parameter(name="--label")] = None,
    folds: int = 5,
    seed: int = 0,
    allow_leak: Switch = False,
    out: Path | None = None,
    force: Switch = False,
    safe_csv: Switch = False,
    quiet: Switch = False,
    json: Switch = False,
) -> None:
    """Predict the classes of the nodes without a label from those with one.

    A logistic regression on the embedding; its scores are cross-validated over the labeled nodes.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding.
    labels
        CSV, TSV or Parquet file with the labels of some nodes; an empty one, NA, NaN and null are none.
    id_column
        Column of the node ids; default: one named id, node, node_id or name, else the first.
    label_column
        Column of the labels; default: one named y, label, labels or class, else the only other one.
    folds
        Of the cross-validation.
    seed
        Decides the folds.
    allow_leak
        Go on though a column that the run was fitted on determines the labels.
    out
        Write id, predicted and the probability of each class to a .csv or .parquet file.
    force
        Replace the file if it exists.
    safe_csv
        Write CSV for spreadsheets: text that would be a formula there, as =1+1, gets an apostrophe before it.
    quiet
        No notes.
    json
        Print as JSON.
    """
    be_quiet(quiet)
    import numpy as np

    from ssge.io.labels import read_labels
    from ssge.io.results import check_target, write_results
    from ssge.runs.folder import read_vectors
    from ssge.tasks.classify import classify as predict

    check_target(out, force)
    embedding = read_vectors(run)
    rows, given = read_labels(labels, embedding, id_column, label_column)
    if run.is_dir():
        _refuse_leaks(run, rows, given, allow_leak)
    found = predict(embedding.vectors, rows, given, folds, seed)
    classes = [str(name) for name in found.classes]
    if out is not None:
        columns = {"id": embedding.node_ids[found.rows], "predicted": found.predicted}
        columns |= {f"p_{name}": found.probability[:, i] for i, name in enumerate(classes)}
        tell(out, write_results(out, [columns], safe_csv), json)
    counts = {name: int(np.count_nonzero(found.predicted == c)) for name, c in zip(classes, found.classes, strict=True)}
    if json:
        summary = {
            "accuracy": found.accuracy._asdict(),
            "macro_f1": found.macro_f1._asdict(),
            "majority": found.majority,
            "folds": found.folds,
            "C": found.C,
            "labeled": len(rows),
            "predicted": counts,
        }
        print(jsonlib.dumps(summary, indent=2))
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


def outliers(
    run: Path,
    /,
    *,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 20,
    neighbors: int = 20,
    out: Path | None = None,
    force: Switch = False,
    safe_csv: Switch = False,
    json: Switch = False,
    naming: Annotated[Naming, NAMING] = BY_ID,
) -> None:
    """Show the nodes that are least like any others.

    The score is the mean cosine distance of a node from its nearest neighbors in the embedding.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding.
    k
        How many nodes to show.
    neighbors
        How many neighbors the score looks at.
    out
        Write id and score of all nodes, highest first, to a .csv or .parquet file.
    force
        Replace the file if it exists.
    safe_csv
        Write CSV for spreadsheets: text that would be a formula there, as =1+1, gets an apostrophe before it.
    json
        Print as JSON.
    """
    import numpy as np

    from ssge.errors import InputError
    from ssge.io.results import check_target, write_results
    from ssge.runs.answers import outlier_columns
    from ssge.runs.names import open_named
    from ssge.tasks.outliers import outlier_scores

    if k < 1:
        raise InputError(f"k must be 1 or more; received {k}.")
    check_target(out, force)
    embedding, names = open_named(run, naming.show, naming.nodes, naming.id)
    scores = outlier_scores(embedding.vectors, neighbors)
    if out is not None:
        tell(out, write_results(out, [outlier_columns(names, scores)], safe_csv), json)
    top = np.argsort(-scores, kind="stable")[:k]
    if json:
        print(jsonlib.dumps([names.of(row) | {"score": float(scores[row])} for row in top], indent=2))
    else:
        print_cells(("score", "node", *names.columns), [(f"{scores[row]:.3f}", *names.cells(row)) for row in top])


def _there(near: Any, scores: Any) -> Iterator[tuple[Any, Any]]:
    """Yield neighbors and their scores; fewer than k where linked nodes are left out."""
    return ((i, score) for i, score in zip(near, scores, strict=True) if i >= 0)


def _linked(edges: str, node_ids: Any) -> Any:
    """Return the edges of a file or dataset as a sparse matrix, in both directions."""
    import numpy as np
    import scipy.sparse as sp

    from ssge.experiments.sources import known_edges

    source, target = known_edges(edges, node_ids)
    pairs = np.concatenate([source, target]), np.concatenate([target, source])
    return sp.csr_array((np.ones(2 * len(source), bool), pairs), shape=(len(node_ids), len(node_ids)))


def _refuse_leaks(run: Path, rows: Any, labels: Any, allowed: bool) -> None:
    """Refuse labels that the embedding has seen as a column, or warn of them."""
    from ssge.errors import InputError
    from ssge.runs.folder import RunFolder
    from ssge.runs.leaks import leaking_columns

    found = leaking_columns(RunFolder(run), rows, labels)
    if not found:
        return
    names = ", ".join(map(repr, found))
    what = f"{names}: a column that the run was fitted on determines these labels, so the scores say nothing"
    if not allowed:
        raise InputError(f"{what}; fit again with --ignore {' '.join(found)}, or give --allow-leak.")
    log.warning("%s.", what)


def tell(path: Path, rows: int, json: bool) -> None:
    """Tell what was written, beside the result where that is for a machine."""
    line = f"{rows:,} rows: {path}"
    if json:
        log.info(line)
    else:
        print(line)
