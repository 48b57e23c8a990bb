"""Links, duplicates, neighbors without linked ones, and export, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from commands import code_of
from pyarrow import csv

import ssge
from ssge.io.embeddings import read_embedding


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("links") / "run"
    assert code_of("fit", "sbm:nodes=300", "--epochs", "8", "--widths", "16", "--out", folder, "--quiet") == 0
    return folder


def linked() -> set[tuple[int, int]]:
    return set(map(tuple, ssge.load_dataset("sbm:nodes=300").edges.T.tolist()))


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert code_of(*words) == 0
    return capsys.readouterr().out


def failed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert code_of(*words) == 2
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_links_overall_and_of_some_nodes(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "links", run, "-k", "5", "--show", "label", "--json"))
    assert [score["name"] for score in found["test"]][::2][:2] == ["links", "embedding"]
    assert 0.5 < found["test"][0]["auc"] <= 1 and set(found["weights"]) >= {"embedding", "adamic_adar"}
    pairs = [(link["source"]["id"], link["target"]["id"]) for link in found["links"]]
    assert len(pairs) == 5 and not set(pairs) & linked() and "label" in found["links"][0]["source"]
    text = printed(capsys, "links", run, "--of", "3", "7", "-k", "2", "--show", "label", "--out", tmp_path / "l.csv")
    assert "AUC" in text and "common neighbors" in text and "likely missing edges" in text
    table = csv.read_csv(tmp_path / "l.csv")
    assert table["source"].to_pylist() == [3, 3, 7, 7] and "target label" in table.column_names
    for row in table.to_pylist():
        assert (row["source"], row["target"]) not in linked()
        assert row["score"] == pytest.approx(row["odds"] / (1 + row["odds"]))


def test_links_with_other_edges_and_of_a_file(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ends = ssge.load_dataset("sbm:nodes=300").edges
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"{a},{b}" for a, b in ends.T) + "\n")
    same = printed(capsys, "links", run, tmp_path / "edges.csv", "-k", "3", "--json")
    assert json.loads(same)["links"] == json.loads(printed(capsys, "links", run, "-k", "3", "--json"))["links"]
    vectors = run / "embedding.parquet"
    assert "A file of vectors has no edges" in failed(capsys, "links", vectors)
    assert code_of("links", vectors, tmp_path / "edges.csv", "-k", "3", "--json") == 0
    done = capsys.readouterr()
    assert "may have seen the held-out edges" in done.err
    assert {"name", "auc", "hits"} == set(json.loads(done.out)["test"][0])
    (tmp_path / "other.csv").write_text("source,target\nx,y\ny,z\n")
    assert "no edge between nodes of the embedding" in failed(capsys, "links", run, tmp_path / "other.csv")


def test_neighbors_without_linked_ones(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("neighbors", run, "5", "-k", "299", "--json")
    everything = json.loads(printed(capsys, *words))[0]["neighbors"]
    found = json.loads(printed(capsys, *words, "--exclude-linked", "sbm:nodes=300"))[0]["neighbors"]
    assert found == [near for near in everything if (5, near["id"]) not in linked()] and len(found) < 299
    out = tmp_path / "n.parquet"
    printed(capsys, "neighbors", run, "--all", "-k", "8", "--exclude-linked", "sbm:nodes=300", "--out", out)
    table = pq.read_table(out).to_pydict()
    assert not set(zip(table["id"], table["neighbor"], strict=True)) & linked() and len(table["id"]) == 2400
    message = failed(capsys, *words[:3], "--exclude-linked", "sbm:nodes=300", "--backend", "faiss")
    assert "cannot leave out linked nodes" in message


def test_duplicates(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids, vectors = read_embedding(run / "embedding.parquet")
    found = json.loads(printed(capsys, "duplicates", run, "-k", "3", "--json"))
    first = found[0]
    a, b = (vectors[ids.tolist().index(first[end]["id"])] for end in ("source", "target"))
    assert first["cosine"] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), rel=1e-5)
    text = printed(capsys, "duplicates", run, "-k", "3", "--least", "0.5", "--out", tmp_path / "d.parquet")
    assert "cosine" in text and pq.read_table(tmp_path / "d.parquet").num_rows == 3
    assert "least must be a cosine" in failed(capsys, "duplicates", run, "--least", "7")


@pytest.mark.parametrize("name", ["v.parquet", "v.csv", "v.npy", "v.txt"])
def test_export_is_read_back(run: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = read_embedding(run / "embedding.parquet")
    printed(capsys, "export", run, "--out", tmp_path / name)
    found = read_embedding(tmp_path / name)
    np.testing.assert_array_equal(found.node_ids, expected.node_ids)
    np.testing.assert_array_equal(found.vectors.astype(np.float32), expected.vectors)
    assert "exists" in failed(capsys, "export", run, "--out", tmp_path / name)
    printed(capsys, "export", run, "--unit", "--out", tmp_path / name, "--force")
    np.testing.assert_allclose(np.linalg.norm(read_embedding(tmp_path / name).vectors, axis=1), 1, rtol=1e-6)


def test_export_names_its_formats(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "export", run, "--format", "parquet", "--out", tmp_path / "wide.parquet")
    assert pq.read_schema(tmp_path / "wide.parquet").names[:2] == ["id", "e000"]
    printed(capsys, "export", run, "--format", "parquet-vector", "--out", tmp_path / "one.parquet")
    assert str(pq.read_schema(tmp_path / "one.parquet").field("vector").type).startswith("fixed_size_list")
    printed(capsys, "export", tmp_path / "one.parquet", "--format", "word2vec", "--out", tmp_path / "w.vec")
    wrong = failed(capsys, "export", run, "--format", "word2vec", "--out", tmp_path / "w.csv")
    assert "--format word2vec needs a file that ends in .txt; received w.csv" in wrong
