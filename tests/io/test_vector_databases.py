"""A vector database finds in the exported file what ``ssge neighbors`` shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import ssge
from ssge.evaluation._arrays import unit_rows
from ssge.io.embeddings import Embedding, write_embedding
from ssge.tasks.search import search

K = 10


@pytest.fixture(scope="module")
def embedding() -> Embedding:
    """Vectors of a trained model, shifted, so that a treatment that centers columns would be found out."""
    model = ssge.SSGE((64, 32), epochs=10, random_state=0).fit(ssge.load_dataset("sbm:nodes=600"))
    return Embedding(model.node_ids_, model.embedding_ + np.float32(0.5))


@pytest.fixture(scope="module")
def file(embedding: Embedding, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors") / "vectors.parquet"
    write_embedding(path, *embedding, one_column=True)
    return path


def overlap(embedding: Embedding, found: list[list[int]] | NDArray[np.int64], asked: NDArray[np.int64]) -> float:
    """Return the share of the command's nearest that were found; those found may hold the node itself."""
    expected = embedding.node_ids[search(embedding.vectors, asked, K).position]
    ids = embedding.node_ids[asked]
    others = [[i for i in row if i != own][:K] for own, row in zip(ids.tolist(), found, strict=True)]
    return float(np.mean([len(set(a) & set(b)) / K for a, b in zip(expected.tolist(), others, strict=True)]))


ASKED = np.arange(0, 600, 6)


def test_duckdb(embedding: Embedding, file: Path) -> None:
    import duckdb

    d = embedding.vectors.shape[1]
    query = f"""
        with v as (select id, vector::float[{d}] as vector from read_parquet('{file}'))
        select a.id, list(b.id order by array_cosine_distance(a.vector, b.vector))[:{K + 1}]
        from v a, v b where a.id in {tuple(embedding.node_ids[ASKED].tolist())} group by a.id order by a.id
    """
    with duckdb.connect() as connection:
        rows = connection.execute(query).fetchall()
    assert [row[0] for row in rows] == embedding.node_ids[ASKED].tolist()
    assert overlap(embedding, [row[1] for row in rows], ASKED) >= 0.99


def test_lancedb(embedding: Embedding, file: Path, tmp_path: Path) -> None:
    import lancedb

    table = lancedb.connect(tmp_path / "db").create_table("nodes", pq.read_table(file))
    queries = embedding.vectors[ASKED]
    found = [table.search(v).distance_type("cosine").limit(K + 1).to_arrow()["id"].to_pylist() for v in queries]
    assert overlap(embedding, found, ASKED) >= 0.99


def test_qdrant(embedding: Embedding, file: Path) -> None:
    from qdrant_client import QdrantClient, models

    table = pq.read_table(file)
    client = QdrantClient(":memory:")
    size = table.schema.field("vector").type.list_size
    client.create_collection("nodes", vectors_config=models.VectorParams(size=size, distance=models.Distance.COSINE))
    client.upsert("nodes", models.Batch(ids=table["id"].to_pylist(), vectors=table["vector"].to_pylist()))
    found = [
        [point.id for point in client.query_points("nodes", query=v.tolist(), limit=K + 1).points]
        for v in embedding.vectors[ASKED]
    ]
    client.close()
    assert overlap(embedding, found, ASKED) >= 0.99


def test_faiss(embedding: Embedding, file: Path) -> None:
    import faiss

    table = pq.read_table(file)
    flat = table["vector"].combine_chunks().flatten().to_numpy()
    vectors = unit_rows(flat.reshape(table.num_rows, -1))
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    found = embedding.node_ids[index.search(vectors[ASKED], K + 1)[1]]
    assert overlap(embedding, found.tolist(), ASKED) >= 0.99


def test_gensim(embedding: Embedding, tmp_path: Path) -> None:
    from gensim.models import KeyedVectors

    write_embedding(tmp_path / "v.txt", *embedding)
    vectors = KeyedVectors.load_word2vec_format(str(tmp_path / "v.txt"), binary=False)
    asked = embedding.node_ids[ASKED].tolist()
    found = [[int(name) for name, _ in vectors.most_similar(str(node), topn=K)] for node in asked]
    assert overlap(embedding, found, ASKED) >= 0.99
