"""What a run leaves for the next command: ids, columns, labels; and folders and files that must not be mixed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from commands import code_of as run

from graphs import random_graph
from ssge.cli.options import Reading
from ssge.datasets import load
from ssge.errors import InputError, InterruptedRun
from ssge.estimator import SSGE
from ssge.io.embeddings import read_embedding
from ssge.methods import METHODS
from ssge.runs import fit as running
from ssge.runs.folder import RunFolder
from ssge.runs.plan import plan

N = 40


def stopped(folder: RunFolder) -> None:
    """Train one of two epochs of a run."""
    graph = load("karate")
    running.fit(graph, plan(graph.info, settings={"epochs": 2}), folder, observers=[lambda line: True])


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


def write_tables(folder: Path, name: str, n: int, label: str | None = "team") -> None:
    """Write a ring of n people with integer ids; the team of the first 40 is known, that of later ones as asked."""
    edges = [f"{i},{(i + step) % n}" for i in range(n) for step in (1, 5)]
    (folder / f"{name}_edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    teams = [f",{'red' if i % 2 else 'blue'}" if i < N or label == "team" else "," for i in range(n)]
    head = "id,age,size" if label is None else "id,age,size,team"
    people = [f"{i},{20 + i % 9},{i % 4}{'' if label is None else teams[i]}" for i in range(n)]
    (folder / f"{name}_nodes.csv").write_text("\n".join([head, *people]) + "\n")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with tables of today and of tomorrow, and the run of today's."""
    folder = tmp_path_factory.mktemp("again")
    write_tables(folder, "old", N)
    write_tables(folder, "new", N + 6)
    write_tables(folder, "partly", N + 6, "some")
    write_tables(folder, "bare", N + 6, None)
    words = ("--columns", "age", "--label", "team", "--epochs", "2", "--widths", "4", "3", "--quiet")
    tables = (folder / "old_edges.csv", "--nodes", folder / "old_nodes.csv")
    assert run("fit", *tables, *words, "--out", folder / "run") == 0
    return folder


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ssge(capsys: pytest.CaptureFixture[str], here: Path) -> Iterator[Command]:
    """Return a function that runs a command and returns its exit code and what it printed."""

    def done(*words: str | Path) -> Done:
        capsys.readouterr()
        return Done(run(*words), *capsys.readouterr())

    yield done


def one_line(done: Done, message: str) -> None:
    assert done.code == 2 and done.out == "", done
    assert message in done.err and len(done.err.splitlines()) == 1, done.err


def as_text_ids(name: str) -> tuple[str, ...]:
    """Write tables of Parquet with the same ids as text; return the words that give them to a command."""
    edges = pa.csv.read_csv(f"{name}_edges.csv").cast(pa.schema([("source", pa.string()), ("target", pa.string())]))
    nodes = pa.csv.read_csv(f"{name}_nodes.csv")
    nodes = nodes.set_column(0, "id", nodes.column("id").cast(pa.string()))
    pq.write_table(edges, f"{name}_edges.parquet")
    pq.write_table(nodes, f"{name}_nodes.parquet")
    return (f"{name}_edges.parquet", "--nodes", f"{name}_nodes.parquet")


def test_ids_that_come_as_text_later_are_the_same_nodes(here: Path, ssge: Command) -> None:
    words = as_text_ids("new")
    done = ssge("embed", "run", *words, "--only", "new", "--out", "new.csv")
    assert done.code == 0, done.err
    assert [str(i) for i in read_embedding(here / "new.csv").node_ids] == [str(i) for i in range(N, N + 6)]
    assert f"6 nodes are new, {N} were known." in done.err
    whole = ssge("embed", "run", *words, "--out", "all.csv")
    assert whole.code == 0 and f"6 nodes are new; the {N} known before have cosine" in whole.err


def test_a_warm_started_run_is_scored_with_its_own_columns(here: Path, ssge: Command) -> None:
    tables = ("new_edges.csv", "--nodes", "new_nodes.csv")
    assert ssge("fit", *tables, "--warm-start", "run", "--epochs", "1", "--out", "run2").code == 0
    again = RunFolder(here / "run2")
    assert again.read_record().reading["label"] == "team"
    done = ssge("evaluate", "run2", "--protocol", "quick", "--json")
    assert done.code == 0, done.err
    assert len(json.loads(done.out)["accuracies"]) == 10
    card = (again.path / "README.md").read_text()
    assert "Feature columns: `age`." in card and "## Scores" in card
    assert f"{here / 'new_edges.csv'} --nodes {here / 'new_nodes.csv'} --out FILE" in card


@pytest.mark.parametrize("name", ["bare", "partly"])
def test_a_label_that_not_all_nodes_have_is_not_inherited(here: Path, ssge: Command, name: str) -> None:
    tables = (f"{name}_edges.csv", "--nodes", f"{name}_nodes.csv")
    done = ssge("fit", *tables, "--warm-start", "run", "--epochs", "1", "--out", "run2")
    assert done.code == 0, done.err
    assert "The label 'team' is left out" in done.err
    assert "label" not in RunFolder(here / "run2").read_record().reading


def test_a_run_cannot_start_from_its_own_folder(here: Path, ssge: Command) -> None:
    before = RunFolder(here / "run").embedding.read_bytes()
    words = ("fit", "new_edges.csv", "--nodes", "new_nodes.csv", "--warm-start", "run", "--force")
    one_line(ssge(*words, "--out", here / "run"), "--out must be another folder than --warm-start")
    assert RunFolder(here / "run").embedding.read_bytes() == before


def test_a_warm_start_keeps_the_method(here: Path, ssge: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("fit", "old_edges.csv", "--nodes", "old_nodes.csv", "--warm-start", "run", "--quiet", "--epochs", "1")
    one_line(ssge(*words, "--out", "x", "--method", "sge"), "Unknown method 'sge'")
    monkeypatch.setitem(METHODS._items, "other", METHODS["ssge"])
    monkeypatch.setitem(METHODS._names, "other", "other")
    one_line(ssge(*words, "--out", "x", "--method", "other"), "method must be ssge, that of run; received other.")
    assert ssge(*words, "--out", "x", "--method", "SSGE").code == 0


def test_resume_is_offered_only_where_it_would_help(here: Path, ssge: Command) -> None:
    words = ("fit", "karate", "--out", "run", "--quiet")
    complete = ssge(*words)
    one_line(complete, "run holds another run (record.json)")
    assert "--resume" not in complete.err
    with pytest.raises(InterruptedRun):
        stopped(RunFolder(here / "half"))
    one_line(ssge("fit", "karate", "--out", "half", "--quiet"), "half holds another run (config.toml)")
    one_line(ssge("fit", "karate", "--out", "half", "--quiet"), "or --resume it,")
    for command in (("evaluate", "half"), ("neighbors", "half", "1"), ("outliers", "half")):
        one_line(ssge(*command), "The run in half is not finished; continue with ssge fit ... --resume.")


def test_a_saved_estimator_is_a_run(here: Path, ssge: Command) -> None:
    model = SSGE(widths=(4, 3), epochs=1, random_state=0).fit(random_graph())
    with pytest.raises(InputError, match="run holds another run"):
        model.save("run")
    assert RunFolder(here / "run").read_record().graph["num_nodes"] == N
    model.save("model")
    one_line(ssge("fit", "karate", "--out", "model", "--quiet"), "model holds another run (record.json)")
    assert ssge("neighbors", "model", "1", "-k", "2").code == 0
    assert ssge("fit", "karate", "--out", "model", "--force", "--quiet", "--epochs", "1").code == 0
    assert SSGE.load("model").embedding_.shape[0] == 34


def test_a_failed_replacement_leaves_the_old_run_whole(here: Path, ssge: Command) -> None:
    before = {file.name: file.read_bytes() for file in (here / "run").iterdir()}
    one_line(ssge("fit", "karate", "--out", "run", "--force", "--lr", "1e30", "--quiet"), "not finite")
    assert {file.name: file.read_bytes() for file in (here / "run").iterdir()} == before


@pytest.mark.parametrize(("out", "there"), [("z.npy", "z.ids.parquet"), ("z.npy", "z.npy"), ("z.vec", "z.vec")])
def test_embed_replaces_nothing_unasked(here: Path, ssge: Command, out: str, there: str) -> None:
    (here / there).write_text("mine")
    words = ("embed", "run", "old_edges.csv", "--nodes", "old_nodes.csv", "--out", out)
    one_line(ssge(*words), f"{there} exists; choose another file, or --force")
    assert (here / there).read_text() == "mine"
    assert ssge(*words, "--force").code == 0
    assert read_embedding(here / out).node_ids.size == N


def test_an_ending_is_refused_before_any_work(here: Path, ssge: Command) -> None:
    one_line(ssge("embed", "nowhere", "nothing.csv", "--out", "z.xlsx"), "Unknown ending of an embedding file '.xlsx'")


def test_columns_are_handed_on_as_they_were_typed(here: Path, ssge: Command) -> None:
    given = Reading(source="0", id="2020", columns=("3", "age"), ignore=("1",)).given()
    assert given == {"source": "0", "id": "2020", "columns": ["3", "age"], "ignore": ["1"]}
    (here / "years.csv").write_text("id,2020\n" + "".join(f"{i},{i % 7}\n" for i in range(N)))
    words = ("fit", "old_edges.csv", "--nodes", "years.csv", "--columns", "2020", "--epochs", "0", "--quiet")
    done = ssge(*words, "--out", "years")
    assert done.code == 0, done.err
    assert RunFolder(here / "years").read_schema().names == ("2020",)  # type: ignore[union-attr]


def test_too_little_memory_is_told_before_anything_is_written(
    here: Path, ssge: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(running, "check_memory", lambda *arguments: asked.append(arguments))
    assert ssge("fit", "karate", "--out", "x", "--epochs", "0", "--precision", "float64", "--quiet").code == 0
    ((graph, planned),) = asked
    assert planned.method.name == "ssge"
    assert graph.num_nodes == 34 and planned.config.epochs == 0 and planned.precision == "float64"
    monkeypatch.undo()
    monkeypatch.chdir(here)
    one_line(ssge("fit", "karate", "--out", "y", "--widths", "99999999", "--quiet"), "Training needs about")
    assert not (here / "y").exists()
