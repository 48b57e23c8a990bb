"""Bags of ids, text, JSON, npz of edges and DuckDB as ways into a graph."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from commands import code_of

import ssge
from ssge.errors import InputError

EDGES = {"source": ["a", "b", "c"], "target": ["b", "c", "d"]}
BAGS = {"a": [3, 17], "b": [17, 17, 3], "c": [], "d": [250]}


def dense(graph: ssge.Graph) -> np.ndarray:
    return graph.features.toarray() if sp.issparse(graph.features) else np.asarray(graph.features)


def written(tmp_path: Path, value: object, name: str = "nodes.json") -> Path:
    path = tmp_path / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_json_of_lists(tmp_path: Path) -> None:
    graph = ssge.read_graph(pa.table(EDGES), written(tmp_path, BAGS))
    assert graph.schema is not None and graph.schema.names == ("features:3", "features:17", "features:250")
    assert dense(graph).tolist() == [[1, 1, 0], [1, 2, 0], [0, 0, 0], [0, 0, 1]]
    new = {"a": [17, 9], "b": [3], "c": [250, 250], "d": []}
    again = ssge.read_graph(pa.table(EDGES), written(tmp_path, new), like=graph)
    assert dense(again).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 2], [0, 0, 0]]


def test_keys_of_json_are_integers_where_the_edges_are(tmp_path: Path) -> None:
    edges = pa.table({"source": [1, 2], "target": [2, 30]})
    graph = ssge.read_graph(edges, written(tmp_path, {"1": ["x"], "2": ["y", "x"], "30": ["z"]}))
    assert graph.node_ids.tolist() == [1, 2, 30] and graph.schema is not None
    assert graph.schema.names == ("features:x", "features:y", "features:z")
    assert dense(graph).tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 1]]


def test_nodes_without_a_bag_have_an_empty_one(tmp_path: Path) -> None:
    path = written(tmp_path, {"a": [1], "b": [2], "c": [1]})
    with pytest.raises(InputError, match="'d'"):
        ssge.read_graph(pa.table(EDGES), path)
    graph = ssge.read_graph(pa.table(EDGES), path, unknown="add")
    assert dense(graph).tolist() == [[1, 0], [0, 1], [1, 0], [0, 0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "nested too deeply|must hold one JSON object"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": [' + "9" * 5000 + "]}", "cannot be read as JSON: .*digits"),
        ('{"a": [1], "a": [2]}', "node 'a' occurs more than once"),
        ('{"a": {"b": 1}}', "node 'a': a list of ids expected"),
        ('{"a": [1.5]}', "node 'a': a list of ids expected"),
        ('{"a": [true]}', "node 'a': a list of ids expected"),
        ('{"a": 5}', "node 'a': a list of ids expected"),
        ('[{"id": 1}]', "must hold one JSON object of lists"),
        ("{}", "has no nodes"),
        ('{"a": [1]', "cannot be read as JSON"),
        ('{"a": [1], "b": [], "c": [], "d": ["\\ud800"]}', "node 'd': its ids are no text"),
    ],
)
def test_hostile_json_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        ssge.read_graph(pa.table(EDGES), written(tmp_path, text))
    assert "\n" not in str(error.value) and len(str(error.value)) < 600


def test_large_integers_are_ids(tmp_path: Path) -> None:
    graph = ssge.read_graph(pa.table(EDGES), written(tmp_path, {"a": [10**30], "b": [1], "c": [1], "d": []}))
    assert graph.schema is not None and set(graph.schema.names) == {"features:1", f"features:{10**30}"}


def test_lists_of_any_length_are_bags() -> None:
    nodes = pa.table({
        "id": ["a", "b", "c", "d"],
        "tags": [["red", "new"], [], None, ["red"]],
        "codes": [[7], [7, 8, 9], [8], [9]],
    })  # fmt: skip
    graph = ssge.read_graph(pa.table(EDGES), nodes)
    assert graph.schema is not None
    assert graph.schema.names == ("tags:new", "tags:red", "codes:7", "codes:8", "codes:9")
    assert dense(graph).tolist() == [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [0, 0, 0, 1, 0], [0, 1, 0, 0, 1]]
    table = {row[0]: row for row in graph.schema.table()}
    assert table["tags"][1:4] == ("bag", "how often each id occurs", "2")


def test_equal_lists_of_integers_are_taken_for_neither() -> None:
    nodes = pa.table({"id": [*"abcd"], "likes": [[4, 9], [9, 12], [4, 4], [1, 12]], "x": [1.0, 2, 3, 4]})
    with pytest.warns(UserWarning, match="'likes' holds lists of 2 integers, quantities or ids"):
        graph = ssge.read_graph(pa.table(EDGES), nodes)
    assert graph.schema is not None and graph.schema.names == ("x",)
    bag = ssge.read_graph(pa.table(EDGES), nodes, bag=["likes"], columns=["x"])
    assert bag.schema is not None and bag.schema.names == ("x", "likes:1", "likes:4", "likes:9", "likes:12")
    assert dense(bag)[2].tolist() == [3, 0, 2, 0, 0]
    vector = ssge.read_graph(pa.table(EDGES), nodes, columns=["likes"])
    assert dense(vector).tolist() == [[4, 9], [9, 12], [4, 4], [1, 12]]
    flags = pa.table({"id": ["a", "b", "c", "d"], "flags": [[0, 1], [1, 1], [0, 0], [1, 0]]})
    assert dense(ssge.read_graph(pa.table(EDGES), flags)).tolist() == [[0, 1], [1, 1], [0, 0], [1, 0]]


def test_a_bag_in_a_text_file(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes.csv"
    nodes.write_text('id,tags\na,"x, y"\nb,[y; y]\nc,\nd,z x\n')
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\na,b\nb,c\nc,d\n")
    graph = ssge.read_graph(edges, nodes, bag=["tags"])
    assert graph.schema is not None and graph.schema.names == ("tags:x", "tags:y", "tags:z")
    assert dense(graph).tolist() == [[1, 1, 0], [0, 2, 0], [0, 0, 0], [1, 0, 1]]
    with pytest.raises(InputError, match="bag must be a list of columns"):
        ssge.read_graph(edges, nodes, bag="tags")
    with pytest.raises(InputError, match="bag and text must be different columns"):
        ssge.read_graph(edges, nodes, bag=["tags"], text=["tags"])
    with pytest.raises(InputError, match="must not hold the id"):
        ssge.read_graph(edges, nodes, bag=["id"])
    with pytest.raises(InputError, match="Did you mean 'tags'"):
        ssge.read_graph(edges, nodes, bag=["tag"])


def test_text_is_tf_idf_of_the_words_seen_first() -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["Bank of Spain", "bank of Norway", None, "The Beatles of Norway"]
    nodes = pa.table({"id": ["a", "b", "c", "d"], "page": texts})
    graph = ssge.read_graph(pa.table(EDGES), nodes, text=["page"])
    assert graph.schema is not None and graph.schema.names == ("page:bank", "page:norway", "page:of")
    model = TfidfVectorizer(min_df=2).fit([text or "" for text in texts])
    np.testing.assert_allclose(dense(graph), model.transform([text or "" for text in texts]).toarray(), rtol=1e-6)
    other = ["of of bank", "spain", "norway", ""]
    again = ssge.read_graph(pa.table(EDGES), nodes.set_column(1, "page", pa.array(other)), like=graph)
    np.testing.assert_allclose(dense(again), model.transform(other).toarray(), rtol=1e-6)
    with pytest.raises(InputError, match="no word occurs in two rows"):
        ssge.read_graph(pa.table(EDGES), pa.table({"id": [*"abcd"], "t": ["one", "two", "three", "four"]}), text=["t"])


def test_new_nodes_are_embedded_like_the_known(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    bags = {str(i): rng.choice(30, 4).tolist() for i in range(60)}
    ends = rng.integers(0, 60, size=(2, 150))
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\n" + "\n".join(f"{a},{b}" for a, b in ends.T))
    run = tmp_path / "run"
    nodes = written(tmp_path, bags)
    assert code_of("fit", edges, "--nodes", nodes, "--out", run, "--epochs", "2", "--widths", "8", "--quiet") == 0
    more = written(tmp_path, bags | {"60": [3, 99999]}, "more.json")
    edges.write_text(edges.read_text() + "\n60,1\n")
    out = tmp_path / "new.csv"
    assert code_of("embed", run, edges, "--nodes", more, "--only", "new", "--out", out, "--quiet") == 0
    assert len(out.read_text().splitlines()) == 2


MEMORY = """
import json, sys
from pathlib import Path
import numpy as np
import ssge

def resident(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))

nodes, edges, n, ids = sys.argv[1], sys.argv[2], 22_000, 20_000
rng = np.random.default_rng(0)
json.dump({str(i): rng.integers(0, ids, rng.integers(5, 25)).tolist() for i in range(n)}, open(nodes, "w"))
np.savetxt(edges, rng.integers(0, n, (60_000, 2)), fmt="%d", delimiter=",", header="source,target", comments="")
ssge.SSGE((8,), epochs=1, random_state=0).fit(ssge.load_dataset("sbm:nodes=5000"))  # imports, fixed buffers
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak of the process begins anew
model = ssge.SSGE((32, 16), epochs=2, random_state=0).fit(edges, nodes=nodes)
used = resident("VmHWM") - before
print(model.n_features_in_, model.embedding_.shape[0], used)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory in kibibytes, as Linux does")
def test_a_large_bag_is_never_dense(tmp_path: Path) -> None:
    """As a dense matrix of float32 the features alone take 1,678 MiB; the whole fit must take far less."""
    words = [sys.executable, "-c", MEMORY, str(tmp_path / "nodes.json"), str(tmp_path / "edges.csv")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    features, nodes, used = done.stdout.split()
    assert (int(features), int(nodes)) == (20_000, 22_000)
    assert float(used) < 800, f"{used} MiB"


def test_npz_of_edges_features_and_labels(tmp_path: Path) -> None:
    features, labels = np.eye(4, 3), np.array([0, 1, 1, 0])
    for edges in (np.array([[0, 1], [1, 2], [2, 3]]), np.array([[0, 1, 2], [1, 2, 3]])):
        np.savez(tmp_path / "g.npz", edges=edges, node_features=features, node_labels=labels, train_masks=np.ones(4))
        graph = ssge.read_graph(tmp_path / "g.npz")
        assert graph.num_nodes == 4 and graph.num_edges == 6 and graph.labels is not None
        assert graph.labels.tolist() == [0, 1, 1, 0] and dense(graph).tolist() == features.tolist()
    np.savez(tmp_path / "g.npz", edges=np.array([[0, 9]]), node_features=features)
    with pytest.raises(InputError, match=r"g\.npz: edges"):
        ssge.read_graph(tmp_path / "g.npz")
    np.savez(tmp_path / "g.npz", edges=np.array([[0.5, 1]]), node_features=features)
    with pytest.raises(InputError, match="edges must be whole numbers, m x 2 or 2 x m; received float64"):
        ssge.read_graph(tmp_path / "g.npz")
    np.savez(tmp_path / "g.npz", edges=np.array([{"a": 1}], dtype=object), node_label=labels)
    with pytest.raises(InputError, match=r"received \['node_label'\] beside pickled objects, .*\['edges'\]"):
        ssge.read_graph(tmp_path / "g.npz")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    import duckdb

    path = tmp_path / "flights.db"
    pq.write_table(pa.table({"secret": [1]}), tmp_path / "other.parquet")
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table routes as select i as source, (i * 7 + 1) % 40 as target from range(40) t(i)")
        connection.execute(
            "create table airports as select i as id, i % 5 as size, 'A' || i as name from range(40) t(i)"
        )
        connection.execute(f"create view leak as select * from read_parquet('{tmp_path / 'other.parquet'}')")
    return path


def test_duckdb_tables_and_queries(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = ssge.read_graph(f"duckdb:///{database}?edges=routes&nodes=airports", columns=["size"])
    assert graph.num_nodes == 40 and dense(graph)[:6, 0].tolist() == [0, 1, 2, 3, 4, 0] and graph.name == "flights"
    query = f"duckdb:///{database}?edges=select source, target from routes where source < 20&nodes=airports"
    assert ssge.read_graph(query, columns=["size"]).num_edges < graph.num_edges
    run, url = tmp_path / "run", f"duckdb:///{database}?edges=routes&nodes=airports"
    words = ("--columns", "size", "--epochs", "2", "--widths", "8", "--quiet")
    assert code_of("fit", url, "--out", run, *words) == 0
    assert code_of("embed", run, url, "--out", tmp_path / "again.npy", "--quiet") == 0
    np.testing.assert_allclose(np.load(tmp_path / "again.npy"), ssge.SSGE.load(run).embedding_, rtol=1e-5, atol=1e-6)
    capsys.readouterr()
    assert code_of("neighbors", run, "A7", "-k", "2", "--show", "name") == 0
    assert "nearest to A7 (7)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("?edges=route", "route"),
        ("", "needs edges=TABLE"),
        ("?edges=routes&node=airports", "Did you mean 'nodes'"),
        ("?edges=drop table routes", "one SELECT"),
        ("?edges=select 1; select 2", "one SELECT"),
        ("?edges=leak", "disabled|Permission|not allowed|external"),
        ("?edges=select * from read_csv('/etc/passwd')", "disabled|Permission|not allowed|external"),
        (".gone?edges=routes", "No such file"),
    ],
)
def test_databases_are_read_and_nothing_else(database: Path, rest: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        ssge.read_graph(f"duckdb:///{database}{rest}")
    assert "\n" not in str(error.value)
