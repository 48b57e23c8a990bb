"""The import graph: small packages written by the test, and two real ones."""

from __future__ import annotations

import importlib.util
import logging
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from ssge import datasets
from ssge.datasets import imports
from ssge.datasets.imports import Import, read_module, read_package, resolve
from ssge.errors import InputError

TREE = {
    "__init__.py": "from .shapes import Circle\nfrom . import colors\nraise SystemExit('was run')\n",
    "colors.py": "class DarkRed:\n    '''A deep hue.'''\n",
    "shapes/__init__.py": "from .round import Circle as Circle\nfrom .round import Disc as Plate\n",
    "shapes/round.py": "import toy.colors\nclass Circle: pass\nclass Disc: pass\n",
    "shapes/user.py": "def f():\n    from .. import Circle\n    from ..shapes import Plate, Nothing\n",
    "shapes/loop.py": "from .loop2 import *\nfrom ....far import away\nimport os, numpy.linalg\n",
    "tests/test_shapes.py": "import toy\n",
    "shapes/test_round.py": "import toy\n",
    "externals/other.py": "import toy\n",
    "broken.py": "def (:\n",
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / "site" / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "site" / "toy"


def test_own_code_only_and_nothing_runs(toy: Path) -> None:
    assert list(read_package("toy", toy)) == [
        "toy",
        "toy.colors",
        "toy.shapes",
        "toy.shapes.loop",
        "toy.shapes.round",
        "toy.shapes.user",
    ]


def test_imports_lead_to_the_module_that_defines(toy: Path) -> None:
    modules = read_package("toy", toy)

    def targets(name: str) -> list[str | None]:
        return [resolve(item, modules) for item in modules[name].imports]

    assert targets("toy") == ["toy.shapes.round", "toy.colors"]
    assert targets("toy.shapes.round") == ["toy.colors"]
    assert targets("toy.shapes.user") == ["toy.shapes.round", "toy.shapes.round", "toy.shapes"]
    assert targets("toy.shapes.loop") == [None, None, None]


def test_re_exports_in_a_circle_end() -> None:
    modules = {
        "a": read_module("a", b"from b import x", True),
        "b": read_module("b", b"from a import x", True),
    }
    assert resolve(Import("a", "x", "x"), modules) in {"a", "b"}


def test_words_are_split_and_imports_not_counted() -> None:
    source = b'''"""Sums HTTPServer parts.

    >>> from secret.place import thing
    """
import hidden
from veiled import (
    covert,
    masked,
)
def row_sum2d(someArgument):
    if True:
        import buried
    return someArgument.dot_product  # really
'''
    words = read_module("m", source, False).words
    assert {"sums", "http", "server", "parts", "row", "sum", "some", "argument", "dot", "product"} <= set(words)
    assert words["argument"] == 2
    assert words.keys().isdisjoint({"secret", "place", "thing", "hidden", "veiled", "covert", "masked", "buried"})


@pytest.fixture
def two_packages(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    monkeypatch.setattr(imports, "PACKAGES", ("networkx", "joblib"))
    return cache


def test_graph_of_two_real_packages(two_packages: Path) -> None:
    graph = datasets.load("imports")
    ids = graph.node_ids.tolist()
    assert ids == sorted(ids)
    assert graph.num_nodes > 250
    assert graph.num_features == 2000
    assert sp.issparse(graph.features)
    np.testing.assert_allclose(sp.linalg.norm(graph.features, axis=1).max(), 1, atol=1e-5)
    assert {"networkx.algorithms", "networkx.generators", "joblib"} <= set(graph.class_names)
    assert graph.labels is not None
    assert np.bincount(graph.labels).min() >= imports.SMALLEST_CLASS
    names = [graph.class_names[label] for label in graph.labels]
    assert all(i.startswith(c) for i, c in zip(ids, names, strict=True))
    joined = {(ids[a], ids[b]) for a, b in graph.edges.T.tolist()}
    assert ("joblib.parallel", "joblib.logger") in joined
    assert ("joblib.logger", "joblib.parallel") in joined


def test_second_time_reads_the_cache(two_packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = datasets.load("imports")
    monkeypatch.setattr(imports, "read_package", None)  # a second reading of the source would fail
    second = datasets.load("imports")
    assert np.array_equal(first.edges, second.edges)
    assert np.array_equal(first.node_ids, second.node_ids)
    assert first.class_names == second.class_names
    assert (first.features != second.features).nnz == 0


def test_corrupt_cache_is_built_anew(two_packages: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = datasets.load("imports")
    (folder,) = two_packages.glob("imports-*")
    for name in ("graph.json", "features.npy", "incoming.indices.npy"):
        whole = (folder / name).read_bytes()
        for broken in (b"", whole[: len(whole) // 2], b"PK" + bytes(1000)):
            (folder / name).write_bytes(broken)
            again = datasets.load("imports")
            assert np.array_equal(first.edges, again.edges)
            assert (first.features != again.features).nnz == 0
            assert (folder / name).read_bytes() == whole  # built twice, the same to the byte
    assert "is built again" in caplog.text


def test_other_versions_have_another_cache(two_packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.load("imports")
    monkeypatch.setattr(imports, "version_of", lambda distribution: "0.0")
    datasets.load("imports")
    assert len(list(two_packages.glob("imports-*"))) == 2


def test_packages_are_found_without_being_run(
    toy: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.syspath_prepend(str(toy.parent))
    monkeypatch.setattr(imports, "PACKAGES", ("toy", "joblib", "no_such_package"))
    monkeypatch.setattr(imports, "SMALLEST_CLASS", 2)
    caplog.set_level(logging.INFO)
    graph = datasets.load("imports")
    assert "toy" not in sys.modules
    assert {"toy.shapes", "toy", "joblib"} == set(graph.class_names)
    assert "no_such_package is not installed" in caplog.text
    assert "broken.py left out" in caplog.text


def test_one_package_is_too_few(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: real(name) if name == "numpy" else None)
    with pytest.raises(InputError, match=r"two or more of numpy, .*installed: numpy\."):
        datasets.load("imports")


def test_small_classes_are_merged_and_then_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "SMALLEST_CLASS", 3)
    empty = read_module("m", b"", False)
    package = read_module("m", b"", True)
    packages = ("a", "a.big", "a.small", "b", "b.small")
    others = ("a.top", "a.big.x", "a.big.y", "a.small.x", "b.small.x.y")
    modules = dict.fromkeys(packages, package) | dict.fromkeys(others, empty)
    assert imports._classes(modules) == {
        "a": "a",
        "a.big": "a.big",
        "a.big.x": "a.big",
        "a.big.y": "a.big",
        "a.small": "a",
        "a.small.x": "a",
        "a.top": "a",
        "b": "b",
        "b.small": "b",
        "b.small.x.y": "b",
    }
    monkeypatch.setattr(imports, "SMALLEST_CLASS", 4)
    assert "b" not in imports._classes(modules)


def test_features_are_tf_idf_of_the_chosen_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imports, "SMALLEST_CLASS", 1)
    monkeypatch.setattr(imports, "MOST_MODULES", 0.5)
    texts = {"numpy": "apple apple pear", "numpy.a": "apple common", "numpy.b": "common plum", "numpy.c": "common"}
    modules = {name: read_module(name, f"'''{text}'''".encode(), False) for name, text in texts.items()}
    built = imports.build(modules)
    idf = {word: 1 + np.log((1 + 4) / (1 + count)) for word, count in {"apple": 2, "pear": 1, "plum": 1}.items()}
    expected = np.zeros((4, 3))  # common is in three modules of four, more than a half
    expected[0, :2] = (1 + np.log(2)) * idf["apple"], idf["pear"]
    expected[1, 0], expected[2, 2] = idf["apple"], idf["plum"]
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(built.features.toarray(), expected, rtol=1e-6)
