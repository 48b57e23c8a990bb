"""The five benchmark graphs whose raw files are at hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from ssge import datasets
from ssge.errors import InputError
from ssge.graph import Graph

FIVE = ("cora", "citeseer", "pubmed", "computer", "coauthor_cs")
SPARSE = {"cora", "citeseer", "coauthor_cs"}
ISOLATED = {"citeseer": 48, "computer": 281}
SPLITS = {"cora": (140, 500, 1000), "citeseer": (120, 500, 1000), "pubmed": (60, 500, 1000)}
# From the papers that introduced the graphs; CiteSeer has 15 nodes without a label, which become class 0.
CLASS_SIZES = {
    "cora": {"Theory": 351, "Neural networks": 818, "Rule learning": 180, "Reinforcement learning": 217},
    "citeseer": {
        "Artificial intelligence": 249 + 15,
        "Agents": 596,
        "Databases": 701,
        "Machine learning": 590,
    },
    "pubmed": {"Experimental diabetes": 4103},
}


@pytest.fixture(scope="module")
def graphs() -> dict[str, Graph]:
    return {}


@pytest.fixture(params=FIVE)
def graph(request: pytest.FixtureRequest, data_root: Path, graphs: dict[str, Graph]) -> Graph:
    if request.param not in graphs:
        graphs[request.param] = datasets.load(request.param)
    return graphs[request.param]


def test_sizes_are_those_of_the_facts(graph: Graph) -> None:
    facts = datasets.DATASETS[graph.name]
    assert (graph.num_nodes, graph.num_edges) == (facts.num_nodes, facts.num_edges)
    assert (graph.num_features, graph.num_classes) == (facts.num_features, facts.num_classes)


def test_edges_are_symmetric_and_without_loops(graph: Graph) -> None:
    source, target = graph.edges
    assert (source != target).all()
    key, reverse = (np.sort(a * graph.num_nodes + b) for a, b in ((source, target), (target, source)))
    assert np.array_equal(key, reverse)


def test_isolated_nodes(graph: Graph) -> None:
    assert graph.num_nodes - np.unique(graph.edges).size == ISOLATED.get(graph.name, 0)


def test_features_are_sparse_where_it_pays(graph: Graph) -> None:
    assert sp.issparse(graph.features) == (graph.name in SPARSE)
    assert graph.features.dtype == np.float32
    if sp.issparse(graph.features):
        assert graph.features.indices.dtype == np.int32  # scikit-learn refuses 64 bits


def test_values_of_the_features(graph: Graph) -> None:
    values = graph.features.data if sp.issparse(graph.features) else graph.features
    if graph.name == "computer":
        assert set(np.unique(values)) == {0.0, 1.0}
    elif graph.name == "coauthor_cs":
        assert values.max() > 1
        assert (values == np.round(values)).all()
    else:
        sums = np.asarray(graph.features.sum(axis=1)).ravel()
        empty = sums == 0
        assert empty.sum() == (15 if graph.name == "citeseer" else 0)
        np.testing.assert_allclose(sums[~empty], 1, atol=1e-5)


def test_public_split(graph: Graph) -> None:
    if graph.name not in SPLITS:
        assert graph.splits == ()
        return
    (split,) = graph.splits
    assert tuple(part.size for part in split) == SPLITS[graph.name]
    assert np.unique(np.concatenate(split)).size == sum(SPLITS[graph.name])
    assert graph.labels is not None
    assert set(np.bincount(graph.labels[split.train])) == {20}


def test_class_names_stand_for_the_right_classes(graph: Graph) -> None:
    assert graph.labels is not None
    assert len(graph.class_names) in (0, graph.num_classes)
    sizes = dict(zip(graph.class_names, np.bincount(graph.labels), strict=False))
    for name, size in CLASS_SIZES.get(graph.name, {}).items():
        assert sizes[name] == size


def test_neighbors_share_classes(graph: Graph) -> None:
    # Features, labels and edges read in different orders would give chance, about one in num_classes.
    assert graph.labels is not None
    assert (graph.labels[graph.edges[0]] == graph.labels[graph.edges[1]]).mean() > 0.7


def test_features_fit_the_labels(graph: Graph) -> None:
    # A nearest-center rule learnt on one half must hold on the test nodes: rows and labels are in one order.
    assert graph.labels is not None
    split = graph.splits[0] if graph.splits else datasets.random_splits(graph.num_nodes, 1)[0]
    features = sp.csr_array(graph.features)
    onehot = np.eye(graph.num_classes)[graph.labels[split.train]]
    centers = features[split.train].T @ (onehot / onehot.sum(axis=0))
    centers /= np.linalg.norm(centers, axis=0)
    found = (features[split.test] @ centers).argmax(axis=1)
    assert (found == graph.labels[split.test]).mean() > 0.5


def test_root_wins_over_the_environment(data_root: Path, cache: Path) -> None:
    assert datasets.load("Cora", root=data_root).num_nodes == 2708
    assert not cache.exists()


def test_wrong_checksum_names_file_expected_and_received(data_root: Path, cache: Path, tmp_path: Path) -> None:
    root = tmp_path / "data"
    shutil.copytree(data_root / "Cora", root / "Cora", copy_function=shutil.copyfile)
    broken = root / "Cora" / "raw" / "ind.cora.ty"
    broken.write_bytes(broken.read_bytes()[:-1])
    expected = next(f.sha256 for f in datasets.DATASETS["cora"].files if f.name == "ind.cora.ty")
    with pytest.raises(InputError, match=f"ind.cora.ty.*expected sha256 {expected}, received [0-9a-f]{{64}}"):
        datasets.load("cora", root=root)
