"""What becomes a feature is shown, and never a label by accident: the command, the card, the classifier."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commands import code_of

import ssge
from ssge.errors import InputError
from ssge.io.roles import by_name, told_by

N = 300
KINDS = np.array(["politician", "company", "show"])
SMALL = ("--epochs", "3", "--widths", "8", "6")


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def write_tables(folder: Path) -> None:
    """Write pages with an index, two ids, two classes, two features and a date; 9 of 10 links stay in a class."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=N)
    source = rng.integers(N, size=1200)
    same = np.array([rng.choice(np.flatnonzero(kind == kind[i])) for i in source])
    target = np.where(rng.random(1200) < 0.9, same, rng.integers(N, size=1200))
    pd.DataFrame({"source": source + 1000, "target": target + 1000}).to_csv(folder / "edges.csv", index=False)
    nodes = pd.DataFrame(
        {
            "id": np.arange(N) + 1000,
            "facebook_id": rng.permutation(10**6)[:N],
            "page_name": [f"Page of {i}" for i in range(N)],
            "rank": rng.permutation(N),
            "page_type": KINDS[kind],
            "class": rng.integers(2, size=N),
            "country": rng.choice(["at", "de", "ch"], size=N),
            "verified": rng.random(N) < 0.3,
            "age": rng.integers(1, 40, size=N),
            "likes": rng.normal(size=N),
            "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(300, size=N), "D"),
        }
    )
    nodes.to_csv(folder / "nodes.csv")  # with the index, as pandas does it unasked
    rows = zip(nodes["id"], nodes["page_type"], strict=True)
    (folder / "labels.csv").write_text("id,label\n" + "".join(f"{i},{kind}\n" for i, kind in rows))


USED = ("country=at", "country=ch", "country=de", "verified", "age", "likes")
LEFT_OUT = {
    "": "index of a data frame",
    "facebook_id": "an id by its name",
    "page_name": "an id: 300 texts that all differ",
    "rank": "an id: 300 integers that all differ",
    "page_type": "a label: 9",
    "class": "a label by its name",
    "since": "dates",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaks")
    write_tables(folder)
    return folder


@pytest.fixture
def command(tables: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def run(*words: str | Path) -> Done:
        capsys.readouterr()
        return Done(code_of(*words), *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def leaky(tables: Path) -> Path:
    """Return a run that was fitted on the labels, by name."""
    words = ("fit", tables / "edges.csv", "--nodes", tables / "nodes.csv", "--columns", "age", "page_type")
    assert code_of(*words, *SMALL, "--quiet", "--out", tables / "leaky") == 0
    return tables / "leaky"


def test_what_looks_like_something_else_is_no_feature(tables: Path) -> None:
    with pytest.warns(UserWarning, match="left out of the features") as caught:
        graph = ssge.read_graph(tables / "edges.csv", tables / "nodes.csv")
    assert graph.schema is not None and graph.schema.names == USED
    found = {entry.name: entry.why for entry in graph.schema.left_out}
    assert set(found) == {"id", *LEFT_OUT}
    assert found["id"] == "the id"
    assert all(words in found[name] for name, words in LEFT_OUT.items())
    messages = [str(one.message) for one in caught]
    assert len(messages) == 1 and "'page_type' looks like a label: 9" in messages[0] and "columns=[" in messages[0]
    assert "'id'" not in messages[0]


def test_a_named_column_is_used_and_its_looks_are_noted(tables: Path) -> None:
    named = ["age", "page_type", "facebook_id"]
    graph = ssge.read_graph(tables / "edges.csv", tables / "nodes.csv", columns=named)
    assert graph.schema is not None and graph.schema.names[:2] == ("age", "page_type=company")
    notes = {column.name: column.note for column in graph.schema.columns}
    assert notes["age"] == "" and "label" in notes["page_type"] and "id" in notes["facebook_id"]
    ignored = ssge.read_graph(tables / "edges.csv", tables / "nodes.csv", columns=named, ignore=["page_type"])
    assert ignored.schema is not None and ignored.schema.names == ("age", "facebook_id")


def test_the_command_shows_the_columns_and_the_card_lists_them(tables: Path, command: Callable[..., Done]) -> None:
    out = tables / "shown"
    done = command("fit", tables / "edges.csv", "--nodes", tables / "nodes.csv", *SMALL, "--out", out)
    assert done.code == 0
    lines = {line.split()[0]: line for line in done.err.splitlines() if line.startswith("  ")}
    assert lines["column"].split() == ["column", "kind", "encoding", "features", "missing", "used"]
    assert " ".join(lines["country"].split()) == "country category one feature per level 3 0 % yes"
    assert "no: looks like a label" in lines["page_type"]
    assert "--columns" in done.err and "columns=[" not in done.err
    card = (out / "README.md").read_text()
    assert "## Columns" in card and "| age | number | as it is | 1 | 0 % | yes |" in card
    assert "| page_type |" in card and "makes every score too good" in card


def test_labels_that_a_column_determines_are_refused(leaky: Path, tables: Path, command: Callable[..., Done]) -> None:
    done = command("classify", leaky, "--labels", tables / "labels.csv", "--quiet")
    assert done.code == 2 and done.out == "" and len(done.err.splitlines()) == 1
    assert "'page_type'" in done.err and "--ignore page_type" in done.err and "--allow-leak" in done.err
    allowed = command("classify", leaky, "--labels", tables / "labels.csv", "--allow-leak", "--json")
    assert allowed.code == 0 and "'page_type'" in allowed.err
    assert json.loads(allowed.out)["accuracy"]["mean"] > 0.9
    some = (tables / "labels.csv").read_text().splitlines()
    (tables / "some.csv").write_text("\n".join([some[0], *some[40:90][::-1]]) + "\n")  # of other rows, in another order
    assert "'page_type'" in command("classify", leaky, "--labels", tables / "some.csv", "--quiet").err
    other = pd.read_csv(tables / "nodes.csv")[["id", "verified"]]
    other.to_csv(tables / "other.csv", index=False)
    assert command("classify", leaky, "--labels", tables / "other.csv", "--label", "verified").code == 0


def test_without_the_table_there_is_nothing_to_compare(
    leaky: Path, tables: Path, tmp_path: Path, command: Callable[..., Done]
) -> None:
    labels = shutil.copy(tables / "labels.csv", tmp_path)
    (tables / "nodes.csv").rename(tables / "elsewhere.csv")
    try:
        done = command("classify", leaky, "--labels", labels)
    finally:
        (tables / "elsewhere.csv").rename(tables / "nodes.csv")
    assert done.code == 0 and "not compared" in done.err


def test_a_column_that_says_the_given_label_is_used_with_a_warning() -> None:
    """Labels must not decide what becomes a feature: with them and without them the embedding has the same bytes."""
    rng = np.random.default_rng(1)
    team = rng.integers(4, size=200)
    nodes = pa.table(
        {"id": np.arange(200), "team": team, "code": np.array(["q", "x", "w", "z"])[team], "v": team % 2.0}
    )
    edges = pa.table({"source": rng.integers(200, size=400), "target": rng.integers(200, size=400)})
    with pytest.warns(UserWarning, match=r"'code' says the label 'team': each of its values goes with one class"):
        graph = ssge.read_graph(edges, nodes, label="team")
    assert graph.schema is not None and len(graph.schema.names) == 5
    assert ssge.read_graph(edges, nodes, ignore=["team"]).schema.names == graph.schema.names  # type: ignore[union-attr]


def test_nothing_left_is_an_error_that_names_what_there_was() -> None:
    nodes = pa.table({"id": ["a", "b"], "class": [0, 1]})
    with pytest.raises(InputError, match=r"no node features: .*'class' looks like a label.*columns=\[\.\.\.\]"):
        ssge.read_graph(pa.table({"source": ["a"], "target": ["b"]}), nodes)


def test_chance_is_no_leak() -> None:
    rng = np.random.default_rng(2)
    classes = rng.integers(3, size=120)
    columns = {
        "same": classes * 5.0,
        "noisy": np.where(rng.random(120) < 0.1, 9, classes),
        "finer": classes * 10 + rng.integers(3, size=120),
        "unique": np.arange(120.0),
        "pairs": np.arange(120) // 2,
        "random": rng.integers(3, size=120),
    }
    assert told_by(columns, classes) == ["same", "finer"]
    assert told_by({"constant": np.zeros(200)}, (np.arange(200) == 0).astype(int)) == []  # 99.5 % are of one class
    assert told_by({"same": classes[:10]}, classes[:10]) == []


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("", "index"), ("Unnamed: 0", "index"), ("__index_level_0__", "index"), ("index", "index"),
        ("y", "label"), ("Label", "label"), ("class_id", "label"), ("y_true", "label"), ("groundTruth", "label"),
        ("new_id", "id"), ("userID", "id"), ("uuid", "id"), ("date", "date"),
        ("age", None), ("valid", None), ("width", None), ("target_price", None), ("klass", None), ("identity", None),
        ("first_class_fare", None), ("yield", None), ("candidate", None), ("days_since_date", None),
    ],
)  # fmt: skip
def test_names(name: str, role: str | None) -> None:
    found = by_name(name)
    assert found is None if role is None else found is not None and role in found


def test_no_markup_of_a_table_reaches_the_card(tmp_path: Path, command: Callable[..., Done]) -> None:
    """Names of columns, levels and files come from anybody, and the card is shown as Markdown."""
    name, level = "<script>x</script>|[a](b)\x1b[2J", "<img src=x>|`c`"
    pd.DataFrame({"source": [1, 2, 3, 4], "target": [2, 3, 4, 1]}).to_csv(tmp_path / "<b>e|.csv", index=False)
    nodes = pd.DataFrame({"id": [1, 2, 3, 4], name: [0.5, 1.5, 2.5, 0.5], "v": [level, "y", level, "y"]})
    nodes.to_csv(tmp_path / "n.csv", index=False)
    words = ("--nodes", tmp_path / "n.csv", "--out", tmp_path / "run", *SMALL)
    assert command("fit", tmp_path / "<b>e|.csv", *words).code == 0
    card = (tmp_path / "run" / "README.md").read_text()
    outside = re.sub(r"(`+)[^`].*?\1(?!`)", "", card, flags=re.DOTALL)  # what is no code
    assert "script" in outside and not re.search(r"(?<!\\)(<script|<img|<b>|\[a\])", outside)
    assert all(line.isprintable() for line in card.splitlines())
    table = [line for line in outside.split("## Columns")[1].split("##")[0].splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in table] == [7] * 5
