"""Commands that use an embedding, as a user meets them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import code_of as run

from ssge.evaluation import kmeans
from ssge.foreign import ids_of
from ssge.io.embeddings import Embedding, write_embedding
from ssge.ops.neighbors import nearest
from ssge.tasks.outliers import outlier_scores

N, CLASSES = 60, np.array(["ant", "bee", "cat"])
Command = Callable[..., str]


def planted() -> Embedding:
    rng = np.random.default_rng(0)
    z = 3 * np.eye(3, 6)[np.arange(N) % 3] + rng.normal(size=(N, 6))
    return Embedding(ids_of([f"node.{i}" for i in range(N)]), z.astype(np.float32))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_embedding(tmp_path / "e.parquet", *planted())
    return tmp_path / "e.parquet"


@pytest.fixture
def ssge(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command and returns what it prints."""

    def printed(*words: str | Path) -> str:
        assert run(*words) == 0
        return capsys.readouterr().out

    return printed


@pytest.fixture
def failing(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a mistaken command and returns the one line it prints."""

    def explained(*words: str | Path) -> str:
        assert run(*words) == 2
        done = capsys.readouterr()
        assert done.out == "" and "Traceback" not in done.err
        return done.err.strip().splitlines()[-1]

    return explained


def test_neighbors_of_some_nodes(file: Path, ssge: Command) -> None:
    ids, z = planted()
    expected = nearest(z, np.array([7, 2]), 4)
    found = json.loads(ssge("neighbors", file, "node.7", "node.2", "-k", "4", "--json"))
    assert [entry["id"] for entry in found] == ["node.7", "node.2"]
    for entry, position, cosine in zip(found, *expected, strict=True):
        assert [near["id"] for near in entry["neighbors"]] == ids[position].tolist()
        np.testing.assert_allclose([near["cosine"] for near in entry["neighbors"]], cosine, rtol=1e-6)
    text = ssge("neighbors", file, "node.7", "-k", "4")
    assert "nearest to node.7" in text and f"{expected.score[0, 0]:.3f}  {ids[expected.position[0, 0]]}" in text


def test_integer_ids_are_found_as_text(tmp_path: Path, ssge: Command, failing: Command) -> None:
    write_embedding(tmp_path / "e.csv", np.arange(N) + 100, planted().vectors)
    found = json.loads(ssge("neighbors", tmp_path / "e.csv", "107", "--metric", "euclidean", "-k", "1", "--json"))
    expected = nearest(planted().vectors, np.array([7]), 1, "euclidean")
    assert found[0]["id"] == 107 and found[0]["neighbors"][0]["id"] == 100 + int(expected.position[0, 0])
    assert found[0]["neighbors"][0]["distance"] == pytest.approx(float(expected.score[0, 0]), rel=1e-5)
    assert "Unknown node '1070'. Did you mean '107'?" in failing("neighbors", tmp_path / "e.csv", "1070")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_neighbors_of_all_nodes(file: Path, tmp_path: Path, ending: str, ssge: Command) -> None:
    out = tmp_path / f"n.{ending}"
    assert ssge("neighbors", file, "--all", "-k", "3", "--out", out) == f"180 rows: {out}\n"
    frame = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert frame.columns.tolist() == ["id", "rank", "neighbor", "cosine"]
    ids, z = planted()
    expected = nearest(z, np.arange(N), 3)
    assert frame["id"].tolist() == np.repeat(ids, 3).tolist() and frame["rank"].tolist() == [1, 2, 3] * N
    assert frame["neighbor"].tolist() == ids[expected.position.ravel()].tolist()
    np.testing.assert_allclose(frame["cosine"], expected.score.ravel(), rtol=1e-6)
    again = json.loads(ssge("neighbors", file, "--all", "-k", "3", "--out", out, "--force", "--json"))
    assert again == {"rows": 180, "file": str(out)}


def test_clusters(file: Path, tmp_path: Path, ssge: Command) -> None:
    out = tmp_path / "c.csv"
    groups = json.loads(ssge("cluster", file, "-k", "3", "--out", out, "--json"))
    frame = pd.read_csv(out)
    assert frame.columns.tolist() == ["id", "cluster", "distance"] and frame["id"].tolist() == planted()[0].tolist()
    theirs = kmeans(planted().vectors, 3, 0).cluster
    assert len(set(zip(frame["cluster"], theirs.tolist(), strict=True))) == 3
    for group in groups:
        members = frame[frame["cluster"] == group["cluster"]].sort_values("distance")
        assert group["size"] == len(members) and group["central"] == members["id"].tolist()[:5]
    text = ssge("cluster", file, "-k", "3").splitlines()
    assert text[0].split() == ["cluster", "size", "most", "central", "members"]
    assert text[1].split()[:2] == ["0", str(groups[0]["size"])] and groups[0]["central"][0] in text[1]


def test_classify(file: Path, tmp_path: Path, ssge: Command, capsys: pytest.CaptureFixture[str]) -> None:
    labels, out = tmp_path / "labels.csv", tmp_path / "p.parquet"
    known = [f"node.{i},{CLASSES[i % 3]}" for i in range(30)] + ["node.30,", "elsewhere,ant"]
    labels.write_text("\n".join(["id,label", *known]) + "\n")
    assert run("classify", file, "--labels", labels, "--out", out, "--json") == 0
    done = capsys.readouterr()
    found = json.loads(done.out)
    assert found["labeled"] == 30 and found["folds"] == 5 and found["majority"] == pytest.approx(1 / 3)
    assert "1 of 31 labeled ids are not in the embedding, such as 'elsewhere'" in done.err
    assert found["accuracy"]["mean"] > 0.7 and sum(found["predicted"].values()) == 30
    frame = pd.read_parquet(out)
    assert frame.columns.tolist() == ["id", "predicted", "p_ant", "p_bee", "p_cat"]
    assert frame["id"].tolist() == [f"node.{i}" for i in range(30, N)]
    assert (frame["predicted"].to_numpy() == CLASSES[np.arange(30, N) % 3]).mean() > 0.8
    text = ssge("classify", file, "--labels", labels)
    assert "5-fold cross-validation over 30 labeled nodes" in text and "predicted for 30 nodes" in text
    assert re.search(r"accuracy % of the most frequent class +33\.3\n", text)


def test_columns_of_the_labels(file: Path, tmp_path: Path, ssge: Command, failing: Command) -> None:
    frame = pd.DataFrame({"topic": np.arange(N) % 2, "name": planted()[0], "y": np.arange(N) % 3})
    frame.to_parquet(tmp_path / "nodes.parquet")
    words = ["classify", file, "--labels", tmp_path / "nodes.parquet"]
    assert list(json.loads(ssge(*words, "--id", "name", "--json"))["predicted"]) == ["0", "1", "2"]
    assert list(json.loads(ssge(*words, "--id", "name", "--label", "topic", "--json"))["predicted"]) == ["0", "1"]
    assert "nam" in failing(*words, "--id", "nam") and "Did you mean 'name'" in failing(*words, "--id", "nam")
    assert "must be two columns" in failing(*words, "--id", "name", "--label", "name")
    assert "60 of 60 labeled ids are not in the embedding" in failing(*words, "--id", "topic")


def test_columns_are_found_as_fit_finds_them(
    file: Path, tmp_path: Path, ssge: Command, failing: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.csv"
    rows = [f"{i}, node.{i} , {CLASSES[i % 3]} ,{i % 2}" for i in range(N)]
    for names in ("rank,Name,labels,even", "rank,name,Class,even"):
        labels.write_text("\n".join([names, *rows]) + "\n")
        assert run("classify", file, "--labels", labels, "--json") == 0
        done = capsys.readouterr()
        _, name, label, _ = names.split(",")
        assert f"labels.csv: ids are in column {name!r}, labels in {label!r}." in done.err
        assert list(json.loads(done.out)["predicted"]) == CLASSES.tolist()
    labels.write_text("\n".join(["rank,name,kind,even", *rows]) + "\n")
    assert "label must name the column of the labels" in failing("classify", file, "--labels", labels)
    assert list(json.loads(ssge("classify", file, "--labels", labels, "--label", "3", "--json"))["predicted"]) == [
        "0", "1",
    ]  # fmt: skip
    labels.write_text("\n".join(["name,kind", *(f"node.{i},{CLASSES[i % 3]}" for i in range(N))]) + "\n")
    assert list(json.loads(ssge("classify", file, "--labels", labels, "--json"))["predicted"]) == CLASSES.tolist()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_that_are_none(file: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    labels = tmp_path / f"labels.{ending}"
    none = ["", "NA", "NaN", "nan", "null", "  "]
    given = [*(CLASSES[i % 3] for i in range(30)), *none]
    frame = pd.DataFrame({"id": [f"node.{i}" for i in range(len(given))], "label": given})
    frame.to_csv(labels, index=False) if ending == "csv" else frame.to_parquet(labels)
    assert run("classify", file, "--labels", labels, "--json") == 0
    done = capsys.readouterr()
    assert "6 of 36 rows have no label." in done.err
    assert json.loads(done.out)["labeled"] == 30 and list(json.loads(done.out)["predicted"]) == CLASSES.tolist()


def test_numbers_that_are_missing_are_no_labels(file: Path, tmp_path: Path, ssge: Command) -> None:
    values = [i % 2 if i < 40 else np.nan for i in range(N)]  # pandas would write null in place of NaN
    pq.write_table(pa.table({"id": planted()[0], "y": pa.array(values, pa.float64())}), tmp_path / "labels.parquet")
    found = json.loads(ssge("classify", file, "--labels", tmp_path / "labels.parquet", "--json"))
    assert found["labeled"] == 40 and len(found["predicted"]) == 2


def test_a_second_label_of_a_node_is_named(file: Path, tmp_path: Path, failing: Command) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\nnode.1,ant\nelsewhere,ant\nnode.2,bee\nelsewhere,ant\nnode.1 ,ant\n")
    line = failing("classify", file, "--labels", labels)
    assert line == f"ssge: {labels}, line 6: the id 'node.1' has a label already, {labels}, line 2."
    labels.write_text("id,label\nnode.1,ant\n,bee\n")
    assert "line 3, column 'id': the id is missing" in failing("classify", file, "--labels", labels)


def test_ids_are_printed_as_they_are(tmp_path: Path, ssge: Command) -> None:
    ids = ids_of(["[/n1]", "[n2]", "[bold]x", "a:star:b", "plain"])
    write_embedding(tmp_path / "e.parquet", ids, np.random.default_rng(0).normal(size=(5, 3)))
    for words in (("neighbors", "[/n1]", "-k", "4"), ("cluster", "-k", "1"), ("outliers",)):
        text = ssge(words[0], tmp_path / "e.parquet", *words[1:])
        assert all(name in text for name in ids.tolist()), text


def test_outliers(file: Path, tmp_path: Path, ssge: Command) -> None:
    ids, z = planted()
    scores = outlier_scores(z)
    order = np.argsort(-scores)
    top = json.loads(ssge("outliers", file, "-k", "5", "--out", tmp_path / "o.csv", "--json"))
    assert [entry["id"] for entry in top] == ids[order[:5]].tolist()
    np.testing.assert_allclose(pd.read_csv(tmp_path / "o.csv")["score"], scores[order])
    assert ssge("outliers", file, "-k", "2").splitlines()[1].split() == [f"{scores[order[0]]:.3f}", ids[order[0]]]


def test_a_run_folder_will_do(tmp_path: Path, ssge: Command) -> None:
    ssge("fit", "sbm:nodes=80,classes=2", "--out", tmp_path / "run", "--epochs", "2", "--widths", "8", "--quiet")
    assert len(ssge("outliers", tmp_path / "run", "-k", "3").splitlines()) >= 4


def test_mistakes_are_one_line(file: Path, tmp_path: Path, failing: Command) -> None:
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "none.csv").write_text("id,label\nnode.1,\nnode.2,NA\n")
    for message, words in {
        "Did you mean 'node.7'": ["neighbors", file, "nod.7"],
        "Name the nodes, or give --all": ["neighbors", file],
        "--all needs --out": ["neighbors", file, "--all"],
        "k must be 1..59": ["neighbors", file, "node.7", "-k", "60"],
        "there.csv exists; choose another file": ["neighbors", file, "--all", "--out", tmp_path / "there.csv"],
        "there.csv exists": ["outliers", file, "--out", tmp_path / "there.csv"],
        "Unknown ending of a table '.txt'": ["cluster", file, "-k", "2", "--out", tmp_path / "c.txt"],
        "number of clusters must be 1..60": ["cluster", file, "-k", "0"],
        f"No such run or file: {tmp_path / 'missing.parquet'}.": ["cluster", tmp_path / "missing.parquet", "-k", "2"],
        "No such run or file: nosuch.": ["neighbors", "nosuch", "1"],
        "k must be 1 or more": ["outliers", file, "-k", "0"],
        "seed must be 0..2^32-1; received -1": ["cluster", file, "-k", "2", "--seed", "-1"],
        "received no labels": ["classify", file, "--labels", tmp_path / "none.csv"],
        "neighbors must be 1 or more; received 0": ["outliers", file, "--neighbors", "0"],
    }.items():
        assert message in failing(*words)
    assert (tmp_path / "there.csv").read_text() == "mine"


@pytest.mark.parametrize("command", [("neighbors", "=1+1", "-k", "1"), ("cluster", "-k", "2"), ("outliers", "-k", "1")])
def test_ids_are_no_formulas_in_a_safe_csv(tmp_path: Path, ssge: Command, command: tuple[str, ...]) -> None:
    file, (name, *words) = tmp_path / "e.parquet", command
    write_embedding(file, ids_of(["=1+1", "@x", "-y", "z"]), planted().vectors[:4])
    for flags, first in (((), "=1+1"), (("--safe-csv",), "'=1+1")):
        ssge(name, file, *words, "--out", tmp_path / "t.csv", "--force", *flags)
        assert first in pd.read_csv(tmp_path / "t.csv")["id"].tolist()
