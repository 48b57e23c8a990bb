"""Commands that apply a trained model or an embedding: embed, neighbors, cluster, classify, outliers."""

import json as jsonlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from ssge.cli.options import AS_FOUND, READING, USE, Reading, Switch, be_quiet, examples, use_threads
from ssge.errors import printable
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
            "ssge neighbors embedding.parquet 12 40 --metric euclidean --json",
            "ssge neighbors run --all -k 20 --out neighbors.parquet",
        ),
    )
    app.command(
        cluster,
        group=USE,
        help_epilogue=examples("ssge cluster run -k 7", "ssge cluster run -k 20 --seed 1 --out clusters.csv --json"),
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
        help_epilogue=examples("ssge outliers run", "ssge outliers run -k 100 --out outliers.csv --json"),
    )


def embed(
    run: Path,
    graph: str,
    /,
    *,
    out: Path,
    only: Literal["new"] | None = None,
    force: Switch = False,
    device: str = "cpu",
    threads: int | None = None,
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
    device
        cpu, cuda, cuda:1, ..., or auto.
    threads
        Processor threads.
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
    from ssge.experiments.sources import is_dataset, open_graph
    from ssge.io.embeddings import Embedding, check_embedding_target, write_embedding
    from ssge.runs.fit import check_vectors
    from ssge.runs.folder import RunFolder
    from ssge.training.device import choose_device

    check_embedding_target(out, force)
    folder = RunFolder(run)
    record, known = folder.read_record(), folder.read_embedding()
    model = folder.read_model(str(choose_device(device)))
    schema = folder.read_schema()
    if not model.inductive and not is_dataset(graph) and Path(graph).resolve() != Path(record.dataset):
        raise InputError(
            f"{model.title} has vectors only for the nodes of the graph it was trained on: they are in "
            f"{folder.embedding}; train on {graph} to embed that."
        )
    data = open_graph(graph, read_options(graph, reading, record, schema), schema)
    nodes = None
    if only:
        nodes = np.flatnonzero(known.find(data.node_ids) < 0)
        if not nodes.size:
            raise InputError(f"--only new: the run in {run} has seen all {data.num_nodes:,} nodes of {graph}.")
        log.info("%s nodes are new, %s were known.", f"{nodes.size:,}", f"{data.num_nodes - nodes.size:,}")
    vectors = model.embed(data, nodes).cpu().numpy()
    check_vectors(vectors)
    found = Embedding(data.node_ids if nodes is None else data.node_ids[nodes], vectors)
    write_embedding(out, *found)
    if not only:
        tell_drift(known, found)
    if json:
        print(jsonlib.dumps({"nodes": vectors.shape[0], "columns": vectors.shape[1], "file": str(out)}))
    else:
        print(f"{vectors.shape[0]:,} nodes x {vectors.shape[1]} columns: {out}")


def neighbors(
    run: Path,
    /,
    *ids: str,
    k: Annotated[int, Parameter(name=["-k", "--k"])] = 10,
    every: Annotated[bool, Parameter(name="--all", negative="")] = False,
    metric: Literal["cosine", "euclidean"] = "cosine",
    backend: Literal["exact", "faiss"] = "exact",
    out: Path | None = None,
    force: Switch = False,
    quiet: Switch = False,
    json: Switch = False,
) -> None:
    """Show the nodes nearest to some nodes.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding.
    ids
        The nodes asked about.
    k
        How many neighbors of each.
    every
        Ask about all nodes; needs --out.
    metric
        cosine, or euclidean distance; columns are centered first.
    backend
        exact, or faiss for millions of nodes; its recall is measured and logged.
    out
        Write id, rank, neighbor and cosine or distance to a .csv or .parquet file.
    force
        Replace the file if it exists.
    quiet
        No notes.
    json
        Print as JSON.
    """
    be_quiet(quiet)
    import numpy as np

    from ssge.errors import InputError
    from ssge.io.results import check_target, write_results
    from ssge.tasks.search import search

    logging.getLogger("faiss").setLevel(logging.WARNING)  # it tells which of its libraries it tries
    if every == bool(ids):
        raise InputError("Name the nodes, or give --all; received both or neither.")
    if every and out is None:
        raise InputError("--all needs --out FILE for its result.")
    check_target(out, force)
    embedding = _embedding(run)
    names = embedding.node_ids
    rows = np.arange(len(names)) if every else embedding.positions(ids)
    found = search(embedding.vectors, rows, k, metric, backend)
    value = "cosine" if metric == "cosine" else "distance"

    def batches(size: int = 1 << 14) -> Iterator[dict[str, Any]]:
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            yield {
                "id": np.repeat(names[rows[part]], k),
                "rank": np.tile(np.arange(1, k + 1), len(rows[part])),
                "neighbor": names[found.position[part].ravel()],
                value: found.score[part].ravel(),
            }

    if out is not None:
        written = write_results(out, batches())
        _tell(out, written, json)
        if every:
            if json:
                print(jsonlib.dumps({"rows": written, "file": str(out)}))
            return
    asked = [
        {
            "id": name,
            "neighbors": [
                {"id": other, value: float(score)}
                for other, score in zip(names[position].tolist(), scores, strict=True)
            ],
        }
        for name, position, scores in zip(names[rows].tolist(), *found, strict=True)
    ]
    if json:
        print(jsonlib.dumps(asked, indent=2))
        return
    for entry in asked:
        lines = [(f"{near[value]:.3f}", str(near["id"])) for near in entry["neighbors"]]
        print(f"nearest to {printable(str(entry['id']))}")  # a title would be folded to the width of the table
        print_cells((value, "node"), lines)


def cluster(
    run: Path,
    /,
    *,
    k: Annotated[int, Parameter(name=["-k", "--k"])],
    seed: int = 0,
    out: Path | None = None,
    force: Switch = False,
    json: Switch = False,
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
    json
        Print as JSON.
    """
    from ssge.io.results import check_target, write_results
    from ssge.tasks.clusters import clusters

    check_target(out, force)
    embedding = _embedding(run)
    names = embedding.node_ids
    found = clusters(embedding.vectors, k, seed)
    if out is not None:
        columns = {"id": names, "cluster": found.cluster, "distance": found.distance}
        _tell(out, write_results(out, [columns]), json)
    groups = [
        {"cluster": i, "size": int(size), "central": names[central].tolist()}
        for i, (size, central) in enumerate(zip(found.size, found.central, strict=True))
    ]
    if json:
        print(jsonlib.dumps(groups, indent=2))
    else:
        lines = [(str(g["cluster"]), f"{g['size']:,}", ", ".join(map(str, g["central"]))) for g in groups]
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
    quiet
        No notes.
    json
        Print as JSON.
    """
    be_quiet(quiet)
    import numpy as np

    from ssge.io.labels import read_labels
    from ssge.io.results import check_target, write_results
    from ssge.tasks.classify import classify as predict

    check_target(out, force)
    embedding = _embedding(run)
    rows, given = read_labels(labels, embedding, id_column, label_column)
    if run.is_dir():
        _refuse_leaks(run, rows, given, allow_leak)
    found = predict(embedding.vectors, rows, given, folds, seed)
    classes = [str(name) for name in found.classes]
    if out is not None:
        columns = {"id": embedding.node_ids[found.rows], "predicted": found.predicted}
        columns |= {f"p_{name}": found.probability[:, i] for i, name in enumerate(classes)}
        _tell(out, write_results(out, [columns]), json)
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
    json: Switch = False,
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
    json
        Print as JSON.
    """
    import numpy as np

    from ssge.errors import InputError
    from ssge.io.results import check_target, write_results
    from ssge.tasks.outliers import outlier_scores

    if k < 1:
        raise InputError(f"k must be 1 or more; received {k}.")
    check_target(out, force)
    embedding = _embedding(run)
    scores = outlier_scores(embedding.vectors, neighbors)
    order = np.argsort(-scores, kind="stable")
    if out is not None:
        columns = {"id": embedding.node_ids[order], "score": scores[order]}
        _tell(out, write_results(out, [columns]), json)
    top = list(zip(embedding.node_ids[order[:k]].tolist(), scores[order[:k]].tolist(), strict=True))
    if json:
        print(jsonlib.dumps([{"id": name, "score": score} for name, score in top], indent=2))
    else:
        print_cells(("score", "node"), [(f"{score:.3f}", str(name)) for name, score in top])


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


def _embedding(run: Path) -> Any:
    """Read the embedding of a run's folder, or of a file."""
    from ssge.errors import InputError
    from ssge.io.embeddings import read_embedding

    if not run.exists():
        raise InputError(f"No such run or file: {run}.")
    if run.is_dir():
        from ssge.runs.folder import RunFolder

        return RunFolder(run).read_embedding()
    return read_embedding(run)


def _tell(path: Path, rows: int, json: bool) -> None:
    """Tell what was written, beside the result where that is for a machine."""
    line = f"{rows:,} rows: {path}"
    if json:
        log.info(line)
    else:
        print(line)
