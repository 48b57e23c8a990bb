from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch_geometric.data import Data

from graphs import random_graph
from ssge.errors import InputError
from ssge.estimator import SSGE, GraphEmbedder
from ssge.graph import Graph
from ssge.io.reading import read_graph
from ssge.methods import METHODS
from ssge.runs.fit import fit
from ssge.runs.folder import RunFolder
from ssge.runs.plan import plan

SUBSET = "a node's embedding rests on its neighbors, which a subset of the rows does not have"
ROUNDING = "a sparse product adds neighbors in the order of the rows; in float32 that shows at the asked 1e-7"


def small(**changes: Any) -> SSGE:
    return SSGE(**({"widths": (8, 4), "epochs": 2, "random_state": 0} | changes))


def expected_failed_checks(estimator: SSGE) -> dict[str, str]:
    single = {"check_methods_sample_order_invariance": ROUNDING} if estimator.precision == "float32" else {}
    return {"check_methods_subset_invariance": SUBSET} | single


@parametrize_with_checks([small(), small(precision="float64")], expected_failed_checks=expected_failed_checks)
def test_scikit_learn_contract(estimator: SSGE, check: Any) -> None:
    check(estimator)


@pytest.fixture
def blocks() -> Graph:
    """Return two communities of 30 nodes with noisy features; the last node is isolated."""
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 30)
    adjacency = rng.random((60, 60)) < np.where(labels[:, None] == labels, 0.3, 0.02)
    adjacency[59] = adjacency[:, 59] = False
    features = rng.normal(size=(60, 6)) + labels[:, None]
    ids = [f"n{i}" for i in range(60)]
    return Graph.of(adjacency=adjacency, features=features, labels=labels, node_ids=ids)


def matrix(graph: Graph) -> sp.csr_array:
    return sp.csr_array((np.ones(graph.num_edges), tuple(graph.edges)), shape=(graph.num_nodes,) * 2)


def test_every_way_to_give_a_graph_gives_the_same_embedding(blocks: Graph) -> None:
    z = small().fit_transform(blocks)
    assert z.shape == (60, 4) and z.dtype == np.float32 and np.isfinite(z).all()
    assert np.sqrt(np.mean(z.astype(float) ** 2)) == pytest.approx(1, abs=1e-5)
    network = nx.from_scipy_sparse_array(matrix(blocks))
    nx.set_node_attributes(network, dict(enumerate(blocks.features)), "x")
    data = Data(x=torch.tensor(blocks.features), edge_index=torch.tensor(blocks.edges))
    for source in (network, data):
        np.testing.assert_array_equal(small().fit_transform(source), z)
    for features in (blocks.features, sp.csr_matrix(blocks.features), pd.DataFrame(blocks.features)):
        for adjacency in (matrix(blocks), matrix(blocks).toarray()):
            np.testing.assert_allclose(small().fit_transform(features, adjacency=adjacency), z, atol=1e-4)


def test_a_matrix_alone_gets_the_graph_of_its_nearest_neighbors(blocks: Graph) -> None:
    X = blocks.features
    given = small().fit_transform(X, adjacency=kneighbors_graph(X, 3))
    np.testing.assert_array_equal(small(n_neighbors=3).fit_transform(X), given)
    assert not np.array_equal(small(n_neighbors=5).fit_transform(X), given)


def test_embedding_of_the_training_graph_and_of_others(blocks: Graph) -> None:
    model = small().fit(blocks)
    np.testing.assert_array_equal(model.transform(blocks), model.embedding_)
    assert model.node_ids_.tolist() == [f"n{i}" for i in range(60)]
    assert len(model.history_) == 2 and isinstance(model.encoder_, torch.nn.Module)
    order = np.random.default_rng(0).permutation(60)
    moved = model.transform(blocks.features[order], adjacency=matrix(blocks)[order][:, order])
    np.testing.assert_allclose(moved, model.embedding_[order], atol=1e-5)
    lonely = model.transform(blocks.features[-1:])
    np.testing.assert_allclose(lonely, model.embedding_[-1:], atol=1e-5)


def test_features_that_do_not_fit_are_named_with_both_sizes(blocks: Graph) -> None:
    model = small().fit(blocks)
    wider = Graph.of(edges=blocks.edges, features=np.ones((60, 7)))
    with pytest.raises(InputError, match="has 7 features, the model was built for 6"):
        model.transform(wider)
    with pytest.raises(ValueError, match="X has 7 features, but SSGE is expecting 6 features"):
        model.transform(np.ones((60, 7)))


def test_labels_play_no_part(blocks: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, prepare = [], METHODS["ssge"].prepare
    monkeypatch.setattr(METHODS["ssge"], "prepare", lambda m, graph: seen.append(graph) or prepare(m, graph))
    z = small().fit_transform(blocks)
    assert seen[0].labels is None and blocks.labels is not None
    shuffled = Graph.of(blocks, labels=np.random.default_rng(0).permutation(blocks.labels))
    np.testing.assert_array_equal(small().fit_transform(shuffled), z)
    np.testing.assert_array_equal(small().fit_transform(blocks, y=blocks.labels), z)
    np.testing.assert_array_equal(small().fit_transform(blocks, y=shuffled.labels), z)


def test_random_state(blocks: Graph) -> None:
    z = small(random_state=7).fit_transform(blocks)
    np.testing.assert_array_equal(small(random_state=7).fit_transform(blocks), z)
    drawn = small(random_state=np.random.RandomState(7)).fit_transform(blocks)
    np.testing.assert_array_equal(small(random_state=np.random.RandomState(7)).fit_transform(blocks), drawn)
    assert not np.array_equal(small(random_state=8).fit_transform(blocks), z)
    assert not np.array_equal(small(random_state=None).fit_transform(blocks), z)


@pytest.mark.parametrize("encoder", ["gcn", "mlp"])
@pytest.mark.parametrize("widths", [(5,), (8, 8, 5), [8, 5], np.array([8, 5]), (np.int64(8), np.int64(5))], ids=str)
def test_widths(blocks: Graph, widths: Any, encoder: Any) -> None:
    assert small(widths=widths, encoder=encoder).fit_transform(blocks).shape == (60, 5)


def test_graph_without_edges_has_a_finite_embedding() -> None:
    graph = Graph.of(edges=[], features=np.random.default_rng(0).normal(size=(12, 5)))
    assert np.isfinite(small().fit_transform(graph)).all()


def test_communities_are_separated(blocks: Graph) -> None:
    z = small(epochs=40).fit_transform(blocks)[:-1]
    score = LogisticRegression().fit(z[::2], blocks.labels[:-1][::2]).score(z[1::2], blocks.labels[:-1][1::2])
    assert score >= 0.9


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(blocks: Graph, container: Any) -> None:
    model = small().set_output(transform=container)
    frame = model.fit_transform(blocks)
    assert type(frame).__module__.startswith(container)
    assert list(frame.columns) == ["e000", "e001", "e002", "e003"]
    assert list(model.get_feature_names_out()) == list(frame.columns)
    np.testing.assert_array_equal(frame.to_numpy(), model.embedding_)
    np.testing.assert_array_equal(model.transform(blocks).to_numpy(), model.embedding_)


def test_clone_and_parameters() -> None:
    model = small(edge_drop=0.5)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(epochs=3).epochs == 3


def test_pipeline_and_search(blocks: Graph) -> None:
    X, y = blocks.features, blocks.labels
    pipeline = make_pipeline(small(epochs=5), LogisticRegression())
    assert pipeline.fit(X, y).score(X, y) > 0.6
    search = GridSearchCV(pipeline, {"ssge__widths": [(2,), (3,)]}, cv=2).fit(X, y)
    assert search.best_estimator_["ssge"].embedding_.shape[1] in (2, 3)


def test_adjacency_is_routed_through_a_pipeline(blocks: Graph) -> None:
    A = matrix(blocks)
    with sklearn.config_context(enable_metadata_routing=True):
        model = small().set_fit_request(adjacency=True).set_transform_request(adjacency=True)
        pipeline = make_pipeline(model, LogisticRegression())
        pipeline.fit(blocks.features, blocks.labels, adjacency=A)
        found = pipeline[0].transform(blocks.features, adjacency=A)
    np.testing.assert_array_equal(found, small().fit_transform(blocks.features, adjacency=A))


@pytest.mark.parametrize("precision", ["bf16", "float32", "float64"])
def test_save_and_load(blocks: Graph, tmp_path: Path, precision: Any) -> None:
    frame = pd.DataFrame(blocks.features, columns=list("abcdef"))
    model = small(precision=precision, n_neighbors=7).fit(frame, adjacency=matrix(blocks))
    model.save(tmp_path / "model")
    with pytest.raises(InputError, match="holds another run"):
        model.save(tmp_path / "model")
    model.save(tmp_path / "model", force=True)
    found = SSGE.load(tmp_path / "model")
    for mine, theirs in ((found.embedding_, model.embedding_), (found.node_ids_, model.node_ids_)):
        assert mine.dtype == theirs.dtype and mine.tobytes() == theirs.tobytes()
    np.testing.assert_array_equal(found.transform(blocks), model.transform(blocks))
    assert found.history_ == model.history_ and found.n_features_in_ == 6
    assert found.feature_names_in_.tolist() == list("abcdef")
    resolved = {**model._run.record.config, "widths": (8, 4), "blocks": ("learned",)}
    assert {name: found.get_params()[name] for name in resolved} == resolved
    assert found.get_feature_names_out().tolist() == ["e000", "e001", "e002", "e003"]
    np.testing.assert_array_equal(clone(found).fit_transform(frame, adjacency=matrix(blocks)), model.embedding_)


def test_ids_of_any_kind_are_saved(blocks: Graph, tmp_path: Path) -> None:
    model = small(random_state=np.random.RandomState(0)).fit(Graph.of(blocks, node_ids=[(0, i) for i in range(60)]))
    assert model.node_ids_[5] == (0, 5)
    model.save(tmp_path)
    found = SSGE.load(tmp_path)
    assert found.node_ids_[5] == "(0, 5)" and found.random_state == model._run.record.seed


@pytest.mark.parametrize("damage", ["no json", "no settings", "unknown", "no model", "no table", "no record", "file"])
def test_a_bad_folder_is_named(blocks: Graph, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "model"
    small().fit(blocks).save(folder)
    state = json.loads((folder / "record.json").read_text())
    changes = {"no json": "{", "no settings": "{}", "unknown": json.dumps(state | {"depth": 3})}
    files = {"no model": "model.safetensors", "no table": "embedding.parquet", "no record": "record.json"}
    if damage in changes:
        (folder / "record.json").write_text(changes[damage])
    elif damage in files:
        (folder / files[damage]).unlink()
    else:
        folder = folder / "record.json"
    with pytest.raises(InputError, match=str(folder)) as caught:
        SSGE.load(folder)
    assert "\n" not in str(caught.value)


def test_what_needs_a_fit_says_so(blocks: Graph, tmp_path: Path) -> None:
    model = small()
    for call in (lambda: model.transform(blocks), lambda: model.save(tmp_path), lambda: model.encoder_):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(InputError, match="is not a folder"):
        (tmp_path / "file").touch()
        model.fit(blocks).save(tmp_path / "file")


def test_column_names_belong_to_the_last_fit(blocks: Graph) -> None:
    model = small().fit(pd.DataFrame(blocks.features, columns=list("abcdef")))
    assert model.feature_names_in_.tolist() == list("abcdef")
    assert not hasattr(model.fit(blocks), "feature_names_in_")
    trap = pd.DataFrame(blocks.features, columns=["edge_index", "ndata", "edata", "nodes", "is_multigraph", "adj"])
    assert model.fit(trap).n_features_in_ == 6, "a table is no graph, whatever its columns are called"


@pytest.mark.parametrize(
    ("message", "changes"),
    [
        ("widths.* greater than 0; received 0", {"widths": (8, 0)}),
        ("widths.* valid integer.*; received 2.5", {"widths": (2.5,)}),
        ("n_neighbors must be an integer of 1 or more; received 0", {"n_neighbors": 0}),
        ("widths.* valid tuple; received 8", {"widths": 8}),
        ("Unknown precision 'float16'. Did you mean 'float64'?", {"precision": "float16"}),
        ("edge_drop.* less than or equal to 1; received 1.5", {"edge_drop": 1.5}),
        ("epochs.* greater than or equal to 0; received -1", {"epochs": -1}),
        ("encoder.* 'gcn' or 'mlp'; received 'gat'", {"encoder": "gat"}),
        ("lr.*; received nan", {"lr": float("nan")}),
    ],
)
def test_bad_settings_are_named_when_fitting(blocks: Graph, message: str, changes: dict[str, Any]) -> None:
    model = small(**changes)
    with pytest.raises(InputError, match=message) as caught:
        model.fit(blocks)
    assert "\n" not in str(caught.value)


def test_bad_graphs_are_named(blocks: Graph) -> None:
    with pytest.raises(InputError, match="adjacency goes with a matrix of features"):
        small().fit(blocks, adjacency=matrix(blocks))
    with pytest.raises(InputError, match=r"one row per node \(60\); received 59"):
        small().fit(blocks.features[:-1], adjacency=matrix(blocks))
    with pytest.raises(InputError, match="at least 2 nodes"):
        small().fit(Graph.of(edges=[], features=np.ones((1, 2))))


def test_verbose_shows_progress_on_standard_error(blocks: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    small(verbose=True).fit(blocks)
    shown = capsys.readouterr()
    assert "epoch 2/2" in shown.err and shown.out == ""
    small().fit(blocks)
    assert capsys.readouterr() == ("", "")


def test_to_frame_is_the_embedding_with_its_ids() -> None:
    graph = Graph.of(edges=[["a", "b"], ["b", "c"]], features=np.eye(3), node_ids=["a", "b", "c"])
    model = SSGE(widths=(2,), epochs=2, random_state=0).fit(graph)
    frame = model.to_frame()
    assert list(frame.columns) == ["id", "e000", "e001"]
    assert frame["id"].tolist() == ["a", "b", "c"]
    assert np.array_equal(frame[["e000", "e001"]].to_numpy(), model.embedding_)


def test_warm_start_begins_where_the_last_fit_ended() -> None:
    graph = random_graph()
    first = SSGE(widths=(6, 4), epochs=20, random_state=0, warm_start=True).fit(graph)
    weights = first.encoder_.affine[0].weight.detach().clone()
    second = clone(first).set_params(epochs=0)
    assert not np.array_equal(second.fit(graph).encoder_.affine[0].weight.detach(), weights)
    first.set_params(epochs=0).fit(graph)
    assert np.array_equal(first.encoder_.affine[0].weight.detach(), weights)
    with pytest.raises(InputError, match="does not fit"):
        first.set_params(widths=(6, 5)).fit(graph)


def test_a_run_of_the_command_line_is_an_estimator(tmp_path: Path) -> None:
    table = pa.table({"source": ["a", "b", "c", "d"], "target": ["b", "c", "d", "a"]})
    nodes = pa.table({"id": ["a", "b", "c", "d"], "age": [1.0, 2.0, 4.0, 3.0], "kind": ["x", "y", "x", "y"]})
    graph = read_graph(table, nodes)
    planned = plan(graph.info, "ssge", settings={"widths": (3, 2), "epochs": 2})
    run = fit(graph, planned, RunFolder(tmp_path / "run"))
    model = SSGE.load(tmp_path / "run")
    assert np.array_equal(model.embedding_, run.embedding.vectors)
    assert model.get_params()["widths"] == (3, 2)
    assert len(model.history_) == 2
    again = read_graph(table, nodes.slice(0, 4), like=model)
    assert np.allclose(model.transform(again), model.embedding_)
    model.save(tmp_path / "saved")
    assert SSGE.load(tmp_path / "saved").schema_ == graph.schema


def test_transform_of_some_nodes_takes_their_ids() -> None:
    graph = Graph.of(random_graph(n=40), node_ids=[f"n{i}" for i in range(40)])
    model = SSGE(widths=(6, 4), epochs=2, random_state=0).fit(graph)
    some = model.transform(graph, nodes=["n7", "n3"])
    assert np.allclose(some, model.transform(graph)[[7, 3]], atol=1e-6)
    with pytest.raises(InputError, match="nodes must be ids of random: Unknown node 'n99'"):
        model.transform(graph, nodes=["n99"])
    for wrong in (5, "n7"):
        with pytest.raises(InputError, match=f"nodes must be a sequence of ids of random; received {wrong!r}"):
            model.transform(graph, nodes=wrong)
    with pytest.raises(InputError, match="nodes must be ids of random"):
        model.transform(graph, nodes=[["n7"]])
    numbered = Graph.of(graph, node_ids=np.arange(40))
    assert np.array_equal(model.transform(numbered, nodes=["7", 3]), model.transform(numbered, nodes=[7, 3]))


def test_a_warm_start_keeps_the_widths_that_followed_the_first_graph() -> None:
    small_graph, grown = random_graph(n=60, p=40), random_graph(n=400, p=40, m=900)
    assert SSGE(epochs=0).fit(grown).embedding_.shape[1] > SSGE(epochs=0).fit(small_graph).embedding_.shape[1]
    model = SSGE(epochs=1, random_state=0, warm_start=True).fit(small_graph)
    config = model._run.method.config
    again = model.fit(grown)._run.method.config
    assert (again.widths, again.uniformity_weight) == (config.widths, config.uniformity_weight)
    width = 40 + 40 + config.widths[-1]  # features, propagated or not, beside what is learned
    assert model.embedding_.shape == (400, width + 3)  # and the lengths of the rows of each


def read(n: int, plans: str, **options: Any) -> Graph:
    """Return a ring of n nodes with an age and a plan."""
    ids = [f"u{i}" for i in range(n)]
    edges = pa.table({"source": ids, "target": ids[1:] + ids[:1]})
    nodes = pa.table(
        {"id": ids, "age": [20.0 + i for i in range(n)], "plan": [plans[i % len(plans)] for i in range(n)]}
    )
    return read_graph(edges, nodes, **options)


@pytest.mark.parametrize(
    ("plans", "options"), [("ac", {}), ("ab", {"scale": "standard"}), ("ab", {"columns": ["plan"]})], ids=str
)
def test_features_made_in_another_way_are_refused(plans: str, options: dict[str, Any]) -> None:
    old = {key: value for key, value in options.items() if key == "scale"}
    model = SSGE(widths=(2,), epochs=1, random_state=0, warm_start=True).fit(read(8, "ab", **old))
    before = model.embedding_.copy()
    for call in (model.transform, model.fit):
        with pytest.raises(InputError, match=r"read it with ssge\.read_graph\(\.\.\., like=model\)"):
            call(read(10, plans, **options))
    assert np.array_equal(model.embedding_, before)
    same = read(10, plans, like=model)
    assert model.transform(same).shape == model.fit(same).embedding_.shape == (10, 2)


def test_a_schema_of_an_earlier_estimator_does_not_stay(tmp_path: Path) -> None:
    SSGE(widths=(2,), epochs=1).fit(read(8, "ab")).save(tmp_path)
    assert (tmp_path / "features.json").exists()
    small().fit(random_graph()).save(tmp_path, force=True)
    assert not (tmp_path / "features.json").exists() and SSGE.load(tmp_path).schema_ is None


def test_settings_of_any_method_are_parameters(blocks: Graph, tmp_path: Path) -> None:
    model = GraphEmbedder("cca_ssg", widths=(8, 4), epochs=2, random_state=0)
    assert model.get_params()["widths"] == (8, 4) and clone(model).get_params() == model.get_params()
    z = model.set_params(epochs=3).fit_transform(blocks)
    assert len(model.history_) == 3 and z.shape == (60, 4)
    model.save(tmp_path)
    with pytest.raises(InputError, match="model of CCA-SSG"):
        SSGE.load(tmp_path)
    again = GraphEmbedder.load(tmp_path)
    assert again.method == "cca_ssg"
    np.testing.assert_array_equal(again.fit_transform(blocks), z)
    with pytest.raises(InputError, match="Did you mean 'widths'"):
        GraphEmbedder("cca_ssg", width=8).fit(blocks)
    with pytest.raises(InputError, match="Unknown method 'cca'"):
        GraphEmbedder("cca").fit(blocks)
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        small().set_params(depth=3)


def test_ssge_has_every_setting_by_name(blocks: Graph) -> None:
    missing = set(METHODS["ssge"].Config.model_fields) - set(SSGE().get_params())
    assert not missing
    same = GraphEmbedder("ssge", widths=(8, 4), epochs=2, random_state=0).fit_transform(blocks)
    np.testing.assert_array_equal(small().fit_transform(blocks), same)


def test_a_recipe_gives_its_settings() -> None:
    graph = random_graph()
    model = GraphEmbedder("bgrl", recipe="bgrl/cora", widths=(8,), epochs=1, heads=1, random_state=0).fit(graph)
    assert model._run.record.recipe == "bgrl/cora" and model._run.record.config["encoder"] == "gat"
    with pytest.raises(InputError, match="method must be bgrl"):
        GraphEmbedder("ssge", recipe="bgrl/cora").fit(graph)


def test_a_single_node_needs_no_list() -> None:
    model = SSGE(widths=(4,), epochs=1, random_state=0).fit(random_graph())
    one, listed = (model.neighbors(ids, k=3) for ids in (np.int64(5), [5]))
    assert one["neighbor"].tolist() == listed["neighbor"].tolist() and len(one) == 3
