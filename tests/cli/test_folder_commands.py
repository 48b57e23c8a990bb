"""A graph folder on the command line: convert, fit, embed, estimate, neighbors; errors in the language of flags."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import code_of

from ssge.io.embeddings import read_embedding


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    edges = "".join(f"{a},{b}\n" for a, b in rng.integers(120, size=(400, 2)))
    nodes = "".join(
        f"{i},{a:.3f},{b:.3f},{c:.3f},{d:.3f}\n" for i, (a, b, c, d) in enumerate(rng.normal(size=(120, 4)))
    )
    (tmp_path / "edges.csv").write_text("source,target\n" + edges)
    (tmp_path / "nodes.csv").write_text("id,a,b,c,d\n" + nodes)
    return tmp_path


def test_from_tables_to_neighbors(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder, loaded or streamed, gives the embedding of the tables."""
    edges, nodes, graph = tables / "edges.csv", tables / "nodes.csv", tables / "graph"
    assert code_of("convert", edges, "--nodes", nodes, "--out", graph, "--json", "--quiet") == 0
    assert json.loads(capsys.readouterr().out)["nodes"] == 120
    how = ("--epochs", "4", "--widths", "6", "6", "--blocks", "learned", "--quiet", "--out")
    assert code_of("fit", edges, "--nodes", nodes, *how, tables / "direct") == 0
    assert code_of("fit", graph, *how, tables / "loaded") == 0
    assert code_of("fit", graph, "--memory", "8GB", *how, tables / "streamed") == 0
    names = ("direct", "loaded", "streamed")
    direct, loaded, streamed = (read_embedding(tables / name / "embedding.parquet") for name in names)
    assert np.array_equal(direct.vectors, loaded.vectors)
    assert np.allclose(direct.vectors, streamed.vectors, atol=1e-5)
    assert direct.node_ids.tolist() == streamed.node_ids.tolist()
    out = tables / "z.npy"
    assert code_of("embed", tables / "streamed", graph, "--memory", "8GB", "--out", out, "--quiet") == 0
    assert np.allclose(read_embedding(out).vectors, streamed.vectors, atol=1e-6)
    assert code_of("embed", tables / "direct", graph, "--out", tables / "y.npy", "--quiet") == 0
    capsys.readouterr()
    assert code_of("neighbors", tables / "streamed", "7", "-k", "2", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)[0]["neighbors"]) == 2
    assert code_of("estimate", graph, "--memory", "8GB", "--json", "--quiet") == 0
    assert json.loads(capsys.readouterr().out)["passes"] > 0
    assert code_of("estimate", graph, "--quiet") == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("fit", "edges.csv", "--memory", "2GB", "--out", "run"), "ssge convert edges.csv --out graph"),
        (("fit", "graph", "--memory", "two", "--out", "run"), "--memory must be an amount such as 2GB"),
        (("fit", "graph", "--memory", "2MB", "--out", "run"), "--memory must be"),
        (("fit", "graph", "--memory", "2GB", "--method", "grace", "--out", "run"), "GRACE with these settings"),
        (("fit", "graph", "--memory", "2GB", "--batch-nodes", "50", "--out", "run"), "give one of them"),
        (("fit", "graph", "--nodes", "nodes.csv", "--out", "run"), "nodes.csv"),
        (("convert", "edges.csv", "--nodes", "nodes.csv", "--out", "graph"), "holds another graph"),
        (("convert", "edges.csv", "--nodes", "nodes.csv", "--out", "nodes.csv"), "must be a new folder"),
    ],
)
def test_errors(
    tables: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(tables)
    code_of("convert", "edges.csv", "--nodes", "nodes.csv", "--out", "graph", "--quiet")
    capsys.readouterr()
    assert code_of(*words) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert told in error[-1] or "only for tables" in error[-1]
    assert not (tables / "run").exists()
