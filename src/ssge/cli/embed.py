"""Commands that write vectors: embed, export."""

import logging
from pathlib import Path
from typing import Any, Literal

from ssge.cli.options import (
    AS_FOUND,
    USE,
    Device,
    Force,
    Json,
    Quiet,
    Reading,
    SafeCsv,
    Threads,
    Vectors,
    command,
    set_up,
)
from ssge.errors import InputError
from ssge.terminal import print_json

log = logging.getLogger(__name__)

ENDINGS = {"parquet-vector": ".parquet", "parquet": ".parquet", "csv": ".csv", "npy": ".npy", "word2vec": ".txt"}


@command(
    USE,
    "ssge embed run cora --out cora.parquet",
    "ssge embed run new_edges.csv --nodes new_nodes.csv --out new.parquet",
    "ssge embed run grown.csv --nodes grown_nodes.csv --only new --out new.csv",
)
def embed(
    run: Path,
    graph: str,
    /,
    *,
    out: Path,
    only: Literal["new"] | None = None,
    force: Force = False,
    safe_csv: SafeCsv = False,
    device: Device = "cpu",
    threads: Threads = None,
    memory: str | None = None,
    quiet: Quiet = False,
    json: Json = False,
    reading: Reading = AS_FOUND,
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
        new: embed only nodes that are not in the run. The tables must hold these nodes and their neighborhood, one hop
        more than the encoder has layers (for the degrees of the outermost nodes), and all edges that structural or
        aggregated features are computed from.
    memory
        Stream a graph folder (ssge convert) so that the process stays below this, as in 2GB.
    """
    set_up(quiet, threads)
    import numpy as np

    from ssge.cli.train import log_drift, read_options
    from ssge.experiments.sources import is_dataset, open_graph, open_streamed
    from ssge.io.embeddings import Embedding, check_embedding_target, find_ids, write_embedding
    from ssge.runs.fit import check_vectors
    from ssge.runs.folder import RunFolder
    from ssge.runs.storage import refuse_file_of_run
    from ssge.training.device import choose_device
    from ssge.training.streaming import streamed_embedding, streamed_view

    refuse_file_of_run(out)
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
        stored = open_streamed(graph, memory or "", out.absolute().parent, options, schema)
        vectors: Any = streamed_embedding(model, streamed_view(model, stored))
        found = Embedding(stored.node_ids, vectors)
    else:
        data, nodes = open_graph(graph, options, schema), None
        if only:
            nodes = np.flatnonzero(find_ids(known.node_ids, data.node_ids) < 0)
            if not nodes.size:
                raise InputError(f"--only new: the run in {run} has seen all {data.num_nodes:,} nodes of {graph}.")
            log.info("%s nodes are new, %s were known.", f"{nodes.size:,}", f"{data.num_nodes - nodes.size:,}")
        vectors = model.embed(data, nodes).cpu().numpy()
        check_vectors(vectors)
        found = Embedding(data.node_ids if nodes is None else data.node_ids[nodes], vectors)
    write_embedding(out, *found, safe_csv)
    if known is not None and not only:
        log_drift(known, found)
    n, d = vectors.shape
    if json:
        print_json({"nodes": n, "columns": d, "file": str(out)})
    else:
        print(f"{n:,} nodes x {d} columns: {out}")


@command(
    USE,
    "ssge export run --out vectors.parquet                   # DuckDB, LanceDB, Qdrant, pgvector",
    "ssge export run --format word2vec --out vectors.txt     # gensim",
    "ssge export run --unit --out vectors.npy                # FAISS by inner product",
)
def export(
    run: Vectors,
    /,
    *,
    out: Path,
    format: Literal["parquet-vector", "parquet", "csv", "npy", "word2vec"] | None = None,
    unit: bool = False,
    force: Force = False,
) -> None:
    """Write an embedding for a vector database or another program.

    Cosines of the vectors are those that ssge neighbors shows, so a vector database that ranks by cosine finds the same
    neighbors.

    Parameters
    ----------
    out
        File to write.
    format
        parquet-vector (id, vector: one list of floats), parquet or csv (id, e000...), npy (ids beside it), word2vec
        (text). Default: that of the ending of --out, parquet-vector for .parquet, word2vec for .txt, .vec, .emb.
    unit
        Scale each vector to length 1, for programs that rank by inner product or Euclidean distance.
    """
    from ssge.evaluation._arrays import unit_rows
    from ssge.io.embeddings import check_embedding_target, write_embedding
    from ssge.runs.folder import read_vectors
    from ssge.runs.storage import refuse_file_of_run

    refuse_file_of_run(out)
    check_embedding_target(out, force)
    ending, texts = out.suffix.casefold(), (".txt", ".vec", ".emb")
    kind: str = format or next((name for name, usual in ENDINGS.items() if usual == ending), "word2vec")
    if ending != ENDINGS[kind] and not (kind == "word2vec" and ending in texts):
        raise InputError(f"--format {kind} needs a file that ends in {ENDINGS[kind]}; received {out.name}.")
    node_ids, vectors = read_vectors(run)
    rows = unit_rows(vectors) if unit else vectors
    write_embedding(out, node_ids, rows, one_column=kind == "parquet-vector")
    print(f"{rows.shape[0]:,} vectors of {rows.shape[1]} numbers: {out}")
