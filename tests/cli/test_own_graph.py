"""A user's own graph, end to end: tables in, a run's folder, new nodes, a grown graph, mistakes in one line.

The guide in docs/own-graph.md is run here too.
"""

from __future__ import annotations

import json
import pickle
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from commands import code_of

from ssge.evaluation import kmeans
from ssge.io.embeddings import Embedding, find_ids, read_embedding
from ssge.runs.folder import RunFolder

ROOT = Path(__file__).resolve().parent.parent.parent
N, NEW = 240, 12
EDGES, NODES, GROWN, GROWN_NODES = "calls.csv", "people.csv", "more_calls.csv", "more_people.csv"
NAMED = ("--source", "caller", "--target", "called", "--weight", "minutes", "--id", "key")
SMALL = ("--widths", "8", "6", "--quiet")


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


def write_tables(folder: Path, n: int, edges: str, nodes: str, seed: int = 0) -> None:
    """Write the first n people and the calls among them; whom a person calls does not depend on n."""
    rng = np.random.default_rng(seed)
    total = N + NEW
    ages, partner = rng.integers(20, 60, size=total), rng.integers(total, size=(total, 5))
    minutes = rng.integers(1, 9, size=(total, 5))
    people, calls = ["key,age,spend,plan,team"], ["caller,called,minutes"]
    for i in range(n):
        plan = "gold" if i >= N else ("free", "paid")[i % 2]  # gold is a level that only later people have
        age, spend = ages[i] + (0, 40, 20)[i % 3], (10, 20, 60)[i % 3] + i % 7
        people.append(f"u{i:03d},{age},{spend},{plan},{('red', 'green', 'blue')[i % 3]}")
        for j, length in zip(partner[i] // 3 * 3 + i % 3, minutes[i], strict=True):
            if j < n and j != i:
                calls.append(f"u{i:03d},u{j:03d},{length}")
    (folder / nodes).write_text("\n".join(people) + "\n")
    (folder / edges).write_text("\n".join(calls) + "\n")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the tables of today and of tomorrow, and the run of today's."""
    folder = tmp_path_factory.mktemp("own")
    write_tables(folder, N, EDGES, NODES)
    write_tables(folder, N + NEW, GROWN, GROWN_NODES)
    done = fit(folder, "run", "--columns", "age", "plan", "--scale", "standard")
    assert done == 0
    return folder


@pytest.fixture
def here(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of one's own with the same tables and the same run, and work in it."""
    for name in (EDGES, NODES, GROWN, GROWN_NODES):
        (tmp_path / name).write_bytes((trained / name).read_bytes())
    (tmp_path / "run").symlink_to(trained / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fit(folder: Path, out: str, *words: str, nodes: str = NODES, epochs: int = 3) -> int:
    tables = (folder / EDGES, "--nodes", folder / nodes)
    return code_of("fit", *tables, *NAMED, *words, *SMALL, "--epochs", str(epochs), "--out", folder / out)


@pytest.fixture
def ssge(capsys: pytest.CaptureFixture[str], here: Path) -> Command:
    """Return a function that runs a command and returns its exit code and what it printed."""

    def done(*words: str | Path) -> Done:
        capsys.readouterr()
        code = code_of(*words)
        return Done(code, *capsys.readouterr())

    return done


def rows(found: Embedding, ids: list[str]) -> np.ndarray:
    return found.vectors[find_ids(found.node_ids, ids)]


def test_the_folder_of_a_run_holds_all_that_is_needed(trained: Path) -> None:
    run = RunFolder(trained / "run")
    names = {path.name for path in run.path.iterdir()}
    assert names == {
        "README.md", "SHA256SUMS", "config.toml", "embedding.parquet", "features.json", "history.jsonl",
        "model.safetensors", "record.json",
    }  # fmt: skip
    schema = run.read_schema()
    assert schema is not None and schema.names == ("age", "plan=free", "plan=paid")
    ages = [int(line.split(",")[1]) for line in (trained / NODES).read_text().splitlines()[1:]]
    np.testing.assert_allclose(schema.columns[0].means, np.mean(ages))
    np.testing.assert_allclose(schema.columns[0].deviations, np.std(ages))
    record = run.read_record()
    assert record.graph["num_nodes"] == N and record.graph["num_features"] == 3
    assert record.reading["weight"] == "minutes" and record.reading["id"] == "key"
    found = run.read_embedding()
    assert found.node_ids.tolist() == [f"u{i:03d}" for i in range(N)] and found.vectors.shape == (N, 6)
    card = (run.path / "README.md").read_text()
    assert f"{N} nodes, 6 columns" in card and "`plan=paid`" in card and "| weighted | yes |" in card


def test_new_nodes_alone_have_the_vectors_of_the_whole_graph(here: Path, ssge: Command) -> None:
    whole = ssge("embed", "run", GROWN, "--nodes", GROWN_NODES, "--out", "all.parquet")
    alone = ssge("embed", "run", GROWN, "--nodes", GROWN_NODES, "--only", "new", "--out", "new.parquet", "--json")
    assert whole.code == alone.code == 0
    assert json.loads(alone.out) == {"nodes": NEW, "columns": 6, "file": "new.parquet"}
    everyone, new = read_embedding(here / "all.parquet"), read_embedding(here / "new.parquet")
    assert new.node_ids.tolist() == [f"u{i:03d}" for i in range(N, N + NEW)]
    np.testing.assert_allclose(new.vectors, rows(everyone, new.node_ids.tolist()), rtol=1e-4, atol=1e-5)
    assert f"{NEW} nodes are new; the {N} known before have cosine" in whole.err
    assert "column 'plan': 12 rows have a level not seen before (['gold']), encoded as zeros." in alone.err
    refused = ssge("embed", "run", EDGES, "--nodes", NODES, "--only", "new", "--out", "none.parquet")
    assert refused.code == 2 and f"has seen all {N} nodes" in refused.err and not (here / "none.parquet").exists()


def test_the_same_tables_give_the_vectors_of_the_run(here: Path, ssge: Command) -> None:
    assert ssge("embed", "run", EDGES, "--nodes", NODES, "--out", "again.parquet").code == 0
    ids, again = read_embedding(here / "again.parquet")
    np.testing.assert_allclose(again, rows(RunFolder(here / "run").read_embedding(), ids.tolist()), atol=1e-6)


@pytest.mark.parametrize("ending", ["csv", "npy", "txt", "vec", "emb"])
def test_every_format_reads_back_equal(here: Path, ssge: Command, ending: str) -> None:
    for name in ("e.parquet", f"e.{ending}"):
        assert ssge("embed", "run", GROWN, "--nodes", GROWN_NODES, "--out", name).code == 0
    expected, found = read_embedding(here / "e.parquet"), read_embedding(here / f"e.{ending}")
    assert found.node_ids.tolist() == expected.node_ids.tolist()
    assert np.array_equal(found.vectors.astype(np.float32), expected.vectors)
    again = ssge("embed", "run", GROWN, "--nodes", GROWN_NODES, "--out", f"e.{ending}")
    assert again.code == 2 and "exists; choose another file, or --force" in again.err


def test_warm_start_begins_with_weights_settings_and_columns(here: Path, ssge: Command) -> None:
    same = ssge("fit", EDGES, "--nodes", NODES, "--warm-start", "run", "--epochs", "0", "--out", "same")
    assert same.code == 0 and f"0 nodes are new; the {N} known before have cosine 1.000" in same.err
    np.testing.assert_allclose(
        RunFolder(here / "same").read_embedding().vectors, RunFolder(here / "run").read_embedding().vectors, atol=1e-5
    )
    grown = ssge("fit", GROWN, "--nodes", GROWN_NODES, "--warm-start", "run", "--epochs", "2", "--out", "grown")
    assert grown.code == 0 and f"{NEW} nodes are new; the {N} known before have cosine" in grown.err
    before, after = RunFolder(here / "run"), RunFolder(here / "grown")
    assert after.read_record().warm_start == "run" and after.read_record().config["widths"] == [8, 6]
    assert after.read_record().config["epochs"] == 2 and len(after.read_history()) == 2
    assert after.read_schema() == before.read_schema()
    assert "| started from | run |" in (after.path / "README.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--widths", "8", "5"), "The model to start from does not fit"),
        (("--columns", "age"), "--columns are those of the run"),
        (("--scale", "none"), "--scale is 'standard' in the run"),
    ],
)
def test_a_warm_start_that_does_not_fit(here: Path, ssge: Command, words: tuple[str, ...], message: str) -> None:
    done = ssge("fit", GROWN, "--nodes", GROWN_NODES, "--warm-start", "run", *words, "--out", "grown", "--quiet")
    assert done.code == 2 and message in done.err and len(done.err.splitlines()) == 1
    assert not (here / "grown" / "record.json").exists()


def test_labels_never_change_a_byte_of_the_embedding(here: Path) -> None:
    lines = (here / NODES).read_text().splitlines()
    teams = np.random.default_rng(1).permutation([line.rsplit(",", 1)[1] for line in lines[1:]])
    shuffled = [f"{line.rsplit(',', 1)[0]},{team}" for line, team in zip(lines[1:], teams, strict=True)]
    (here / "shuffled.csv").write_text("\n".join([lines[0], *shuffled]) + "\n")
    (here / "without.csv").write_text("\n".join(line.rsplit(",", 1)[0] for line in lines) + "\n")
    (here / "usual.csv").write_text("\n".join([lines[0].replace("team", "label"), *lines[1:]]) + "\n")
    assert fit(here, "labeled", "--label", "team") == 0
    assert fit(here, "permuted", "--label", "team", nodes="shuffled.csv") == 0
    assert fit(here, "ignored", "--ignore", "team") == 0
    assert fit(here, "none", nodes="without.csv") == 0
    assert fit(here, "found", nodes="usual.csv") == 0
    expected = RunFolder(here / "none").embedding.read_bytes()
    assert fit(here, "guessed") == 0  # calls join people of one team
    for run in ("labeled", "permuted", "ignored", "found", "guessed"):
        assert RunFolder(here / run).embedding.read_bytes() == expected, run
    assert fit(here, "named", "--columns", "age", "spend", "plan", "team") == 0
    assert RunFolder(here / "named").embedding.read_bytes() != expected


def test_a_labeled_graph_is_scored(here: Path, ssge: Command) -> None:
    assert fit(here, "labeled", "--label", "team", "--columns", "age", "spend", "--scale", "standard", epochs=20) == 0
    done = ssge("evaluate", "labeled", "--protocol", "quick", "--json")
    scores = json.loads(done.out)
    assert done.code == 0 and scores["splits"].startswith("10 random") and len(scores["accuracies"]) == 10
    assert np.mean(scores["accuracies"]) > 0.9  # three teams that call only each other
    assert "## Scores" in (here / "labeled" / "README.md").read_text()
    without = ssge("evaluate", "run")
    assert without.code == 0 and "no labels" in without.out and "edge AUC" in without.out


def test_the_embedding_finds_the_teams(here: Path, ssge: Command) -> None:
    assert fit(here, "good", "--columns", "age", "spend", "--scale", "standard", epochs=30) == 0
    found = RunFolder(here / "good").read_embedding()
    groups = kmeans(found.vectors, 3, 0).cluster
    pairs = {(int(group), i % 3) for i, group in enumerate(groups)}
    assert len(pairs) == 3
    near = json.loads(ssge("neighbors", "good", "u003", "-k", "4", "--json").out)[0]["neighbors"]
    assert {int(entry["id"][1:]) % 3 for entry in near} == {0}


def test_a_schema_names_the_columns_it_lacks(here: Path, ssge: Command) -> None:
    (here / "poor.csv").write_text("\n".join(f"u{i:03d},free" for i in range(-1, N)).replace("u-01,free", "key,plan"))
    done = ssge("embed", "run", EDGES, "--nodes", "poor.csv", "--out", "e.csv", "--quiet")
    assert done.code == 2 and done.err == "ssge: poor.csv lacks columns that the run expects: age.\n"
    assert not (here / "e.csv").exists()


def test_options_of_reading_are_for_files(here: Path, ssge: Command) -> None:
    done = ssge("fit", "karate", "--nodes", NODES, "--scale", "standard", "--out", "x")
    assert done == (2, "", "ssge: nodes, scale: only for a graph of your own; karate is a dataset.\n")
    assert "Did you mean 'karate'" in ssge("fit", "karat", "--out", "x").err
    assert not (here / "x").exists()


TWO = "key,age\nu000,1\nu001,2\n"
ONE = "caller,called,minutes\nu000,u001,1\n"
WRONG: dict[str, tuple[str, str, str, tuple[str, ...]]] = {  # edges, nodes, what the message says, further words
    "duplicate id": (ONE, TWO + "u000,3\n", "nodes.csv, line 4, column 'key': the id 'u000' occurs more", ()),
    "empty id": (ONE, TWO + ",2\n", "nodes.csv, line 4, column 'key': the id is missing", ()),
    "missing value": (ONE, TWO + "u002,\n", "nodes.csv, line 4, column 'age': the value is missing", ()),
    "a word among numbers": (ONE, TWO + "u002,x\n", "nodes.csv, line 4, column 'age'", ()),
    "infinite": (ONE, TWO + "u002,inf\n", "nodes.csv, line 4, column 'age': a value is infinite", ()),
    "unknown end": (ONE + "u000,zed,1\n", TWO, "edges.csv, line 3, column 'called': the node 'zed'", ()),
    "no weight": (ONE + "u001,u000,\n", TWO, "edges.csv, line 3, column 'minutes': a weight", ()),
    "NaN weight": (ONE + "u001,u000,nan\n", TWO, "edges.csv, line 3, column 'minutes': a weight", ()),
    "negative weight": (ONE + "u001,u000,-2\n", TWO, "edges.csv, line 3, column 'minutes': a weight", ()),
    "one column": ("caller\nu000\n", TWO, "edges.csv has one column only", ()),
    "ragged": (ONE + "u000\n", TWO, "edges.csv, line 3: 3 fields", ()),
    "empty": (" \n", TWO, "edges.csv is empty", ()),
    "not text": ("\0\0\0", TWO, "edges.csv is UTF-16 text without a mark; save it as UTF-8", ()),
    "unknown column": (ONE, TWO, "Did you mean 'age'", ("--columns", "agee")),
    "text": (ONE, "key,name\nu000,one\nu001,two\nu002,six\n", "no node features: ", ()),
    "unknown kind": (ONE, TWO, "Did you mean 'structural'", ("--features", "structral")),
    "too large": (ONE, TWO, "more than --limit 10 bytes", ("--limit", "10")),
    "bad delimiter": (ONE, TWO, "delimiter must be one ASCII character", ("--delimiter", "::")),
}


@pytest.mark.parametrize("case", WRONG, ids=list(WRONG))
def test_mistakes_in_tables_are_one_line(here: Path, ssge: Command, case: str) -> None:
    edges, nodes, message, words = WRONG[case]
    (here / "edges.csv").write_text(edges)
    (here / "nodes.csv").write_text(nodes)
    done = ssge("fit", "edges.csv", "--nodes", "nodes.csv", *NAMED, *words, "--out", "wrong", "--quiet")
    assert done.code == 2 and done.out == ""
    assert message in done.err and len(done.err.splitlines()) == 1 and done.err.startswith("ssge: ")
    assert not (here / "wrong").exists()


def test_files_that_are_no_tables(here: Path, ssge: Command) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (here / "opened",)  # type: ignore[return-value]

    (here / "graph.pkl").write_bytes(pickle.dumps(Bomb()))
    (here / "graph.csv").write_bytes(pickle.dumps(Bomb()))
    (here / "graph.npz").write_text("no archive")
    for words, message in {
        ("nowhere.csv",): "No such file: nowhere.csv",
        (EDGES, "--nodes", "nowhere.csv"): "No such file: nowhere.csv",
        (EDGES,): "has no node features: --features structural makes",
        ("graph.pkl",): "graph.pkl is a pickle",
        ("graph.csv",): "graph.csv is a pickle",
        ("graph.npz",): "graph.npz ends in .npz but does not begin like such a file",
        (EDGES, "--nodes", NODES, "--id", "kye"): "Did you mean 'key'",
        (EDGES, "--label", "team"): "give --nodes",
        (EDGES, "--nodes", NODES, "--warm-start", "nowhere"): "No such run: nowhere",
    }.items():
        done = ssge("fit", *words, "--out", "wrong", "--quiet")
        assert done.code == 2 and message in done.err and len(done.err.splitlines()) == 1, (words, done)
    assert not (here / "wrong").exists() and not (here / "opened").exists()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


def write_guide_s_tables(folder: Path, n: int, edges: str, nodes: str) -> None:
    """Write tables under the names that the guide uses: with weights, minutes, and a column with missing values."""
    write_tables(folder, n, edges, nodes)
    (folder / edges).write_text(
        "source,target,weight,minutes\n"
        + "".join(f"{a},{b},{1 + int(m) % 2},{m}\n" for a, b, m in table(folder / edges))
    )
    (folder / nodes).write_text(
        "id,age,plan,spend,team\n"
        + "".join(f"{i},{a},{p},{'' if int(s) % 9 == 0 else s},{t}\n" for i, a, s, p, t in table(folder / nodes))
    )


def table(path: Path) -> list[list[str]]:
    return [line.split(",") for line in path.read_text().splitlines()[1:]]


def test_the_guide_runs_from_its_first_line_to_its_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_guide_s_tables(tmp_path, N, "edges.csv", "nodes.csv")
    write_guide_s_tables(tmp_path, N + NEW, "grown_edges.csv", "grown_nodes.csv")
    (tmp_path / "labels.csv").write_text(
        "id,label\n" + "".join(f"{i},{t}\n" for i, *_, t in table(Path("nodes.csv"))[:90])
    )
    commands = [line for block in blocks("own-graph.md", "bash") for line in block.splitlines()]
    assert len(commands) > 15
    for line in commands:
        words = shlex.split(line)
        assert words[0] == "ssge" and code_of(*words[1:]) == 0, line
    for code in blocks("own-graph.md", "python"):
        names: dict[str, object] = {}
        exec(compile(code, "own-graph.md", "exec"), names)
    assert names["vectors"].shape[0] == N + NEW  # type: ignore[attr-defined]
    new = read_embedding(tmp_path / "new.csv")
    assert new.node_ids.size == NEW
    assert RunFolder(tmp_path / "filled").read_schema().names[-1] == "spend missing"  # type: ignore[union-attr]
    assert RunFolder(tmp_path / "gathered").read_schema().names[-1] == "sum(minutes)"  # type: ignore[union-attr]
    assert RunFolder(tmp_path / "run2").read_record().warm_start == "run"
    listed = re.findall(r"^\| (`.*?`) \|", (ROOT / "docs" / "own-graph.md").read_text(), re.MULTILINE)
    files = {name for cell in listed for name in re.findall(r"`([\w.]+)`", cell)}
    assert files == {path.name for path in (tmp_path / "run").iterdir()}
