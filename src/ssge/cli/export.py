"""The command that writes an embedding for other programs: export."""

from pathlib import Path
from typing import Literal

from cyclopts import App

from ssge.cli.options import USE, Switch, examples

ENDINGS = {"parquet-vector": ".parquet", "parquet": ".parquet", "csv": ".csv", "npy": ".npy", "word2vec": ".txt"}


def register(app: App) -> None:
    """Add the command."""
    app.command(
        export,
        group=USE,
        help_epilogue=examples(
            "ssge export run --out vectors.parquet                   # DuckDB, LanceDB, Qdrant, pgvector",
            "ssge export run --format word2vec --out vectors.txt     # gensim",
            "ssge export run --unit --out vectors.npy                # FAISS by inner product",
        ),
    )


def export(
    run: Path,
    /,
    *,
    out: Path,
    format: Literal["parquet-vector", "parquet", "csv", "npy", "word2vec"] | None = None,
    unit: Switch = False,
    force: Switch = False,
) -> None:
    """Write an embedding for a vector database or another program.

    Cosines of the vectors are those that ssge neighbors shows, so a vector database that ranks by cosine finds the same
    neighbors.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding.
    out
        File to write.
    format
        parquet-vector (id, vector: one list of floats), parquet or csv (id, e000...), npy (ids beside it), word2vec
        (text). Default: that of the ending of --out, parquet-vector for .parquet, word2vec for .txt, .vec, .emb.
    unit
        Scale each vector to length 1, for programs that rank by inner product or Euclidean distance.
    force
        Replace the file if it exists.
    """
    from ssge.errors import InputError
    from ssge.evaluation._arrays import unit_rows
    from ssge.io.embeddings import check_embedding_target, write_embedding
    from ssge.runs.folder import read_vectors

    check_embedding_target(out, force)
    ending, texts = out.suffix.casefold(), (".txt", ".vec", ".emb")
    kind: str = format or next((name for name, usual in ENDINGS.items() if usual == ending), "word2vec")
    if ending != ENDINGS[kind] and not (kind == "word2vec" and ending in texts):
        raise InputError(f"--format {kind} needs a file that ends in {ENDINGS[kind]}; received {out.name}.")
    node_ids, vectors = read_vectors(run)
    rows = unit_rows(vectors) if unit else vectors
    write_embedding(out, node_ids, rows, one_column=kind == "parquet-vector")
    print(f"{rows.shape[0]:,} vectors of {rows.shape[1]} numbers: {out}")
