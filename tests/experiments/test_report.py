"""The page of a run, without a browser: what it holds, what it says, and that it loads nothing."""

from __future__ import annotations

import base64
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ssge.errors import InputError, UnknownNameError
from ssge.evaluation import geometry
from ssge.experiments import layout
from ssge.experiments.layout import OTHER, agreement, color_by, lay_out, tells_apart
from ssge.experiments.report import write_map_page, write_report
from ssge.experiments.report.charts import correlation_chart, loss_charts, spectrum_chart
from ssge.experiments.report.facts import score_tables, verdict
from ssge.experiments.report.points import map_data
from ssge.experiments.subject import Subject
from ssge.io.embeddings import Embedding
from ssge.ops.neighbors import nearest
from ssge.records import RunRecord, Scores
from ssge.runs.names import Names

N = 60


def planted(n: int = N) -> Subject:
    rng = np.random.default_rng(0)
    vectors = 4 * np.eye(3, 6)[np.arange(n) % 3] + rng.normal(size=(n, 6))
    return Subject(Embedding(np.arange(n), vectors.astype(np.float32)))


def named(n: int = N) -> Names:
    return Names(np.arange(n), {"name": [f"node {i}" for i in range(n)], "kind": [f"kind {i % 3}" for i in range(n)]})


def table(names: Names) -> dict[str, Any]:
    """Return names as a table of nodes, for the options of a page."""
    return {"nodes": pa.table({"id": names.node_ids, **names.columns}), "show": list(names.columns)}


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


class Parts(HTMLParser):
    """What a page would load, and the texts of its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.policy = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = dict(attrs)
        self.loads += [found[key] for key in ("src", "href", "action", "data", "poster") if key in found]
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]


def test_a_page_holds_all_it_needs(tmp_path: Path) -> None:
    page = write_report(tmp_path / "r.html", planted(), color="kind", **table(named())).read_text("utf-8")
    parts = Parts(page)
    assert all(address.startswith(("#", "data:,")) for address in parts.loads) and parts.loads
    assert "default-src 'none'" in parts.policy and "http" not in parts.policy
    again = write_report(tmp_path / "again.html", planted(), color="kind", **table(named())).read_text("utf-8")
    assert page == again


def test_the_map_knows_the_neighbors_of_the_command() -> None:
    subject = planted()
    data, _ = map_data(subject.embedding.vectors, named(), ["kind"])
    rows = np.array([int(i) for i in data["ids"]])
    assert sorted(rows) == list(range(N))
    expected = nearest(subject.embedding.vectors, rows, data["k"])
    found = rows[unpacked(data["neighbors"], "<i4").reshape(N, -1)]
    assert np.array_equal(found, expected.position)
    np.testing.assert_allclose(unpacked(data["cosines"], "<i2").reshape(N, -1) / 1e4, expected.score, atol=6e-5)
    assert data["name"] == "name" and data["columns"]["name"] == [f"node {i}" for i in rows]
    assert [column["name"] for column in data["colors"]] == ["kind", "cluster (k-means)"]


def test_neighbors_of_very_many_nodes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = planted().embedding.vectors
    exact = map_data(vectors, named(), [])[0]["neighbors"]
    monkeypatch.setattr("ssge.experiments.report.points._MOST_EXACT", 10)
    assert map_data(vectors, named(), [])[0]["neighbors"] == exact


def test_a_choice_of_nodes_is_told(tmp_path: Path) -> None:
    data, _ = map_data(planted().embedding.vectors, named(), [], points=40)
    assert data["n"] == 40 and unpacked(data["neighbors"], "<i4").max() < 40
    page = write_map_page(tmp_path / "m.html", planted(), points=40).read_text("utf-8")
    assert "40 of 60 nodes, chosen at random" in page
    with pytest.raises(InputError, match="points must be 1 or more"):
        map_data(planted().embedding.vectors, named(), [], points=0)


@pytest.mark.parametrize("n", [2, 3])
def test_tiny_embeddings_have_pages(n: int, tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", planted(n), color="kind", **table(named(n)))
    with pytest.raises(InputError, match="at least 2 nodes"):
        write_report(tmp_path / "r.html", planted(1))


def test_columns_color_by_classes_or_by_a_scale() -> None:
    few = color_by("x", [3, 1, 1, None, 2])
    assert few.classes == ["1", "2", "3"] and few.codes.tolist() == [2, 0, 0, -1, 1]
    many = color_by("x", [*range(20), None, float("nan")])
    assert many.numbers is not None and many.numbers[:3].tolist() == [0, 1, 2] and np.isnan(many.numbers[-2:]).all()
    assert color_by("x", [True, False]).classes == ["False", "True"]
    wide = color_by("x", [f"w{i}" for i in range(200)] + ["w0"])
    assert len(wide.classes) == 100 and wide.classes[0] == "w0" and wide.classes[-1] == OTHER
    assert wide.codes[99] == 99 and not tells_apart(wide)
    assert tells_apart(few._replace(codes=np.zeros(9, int))) and tells_apart(many)


def test_agreement_of_neighbors_and_by_chance() -> None:
    column = color_by("x", ["a", "a", "a", "b"])
    assert agreement(column, np.array([[1], [3], [0], [2]])) == (0.5, (9 + 1) / 16)
    assert agreement(color_by("x", list(range(20))), np.zeros((20, 1), int)) is None


def test_the_verdict_needs_no_labels() -> None:
    rng = np.random.default_rng(0)
    sound = rng.normal(size=(500, 16))
    line = rng.normal(size=(500, 1)) @ rng.normal(size=(1, 16)) + 1e-3 * sound
    assert verdict(geometry(sound), 16)["level"] == "good"
    assert list(verdict(geometry(line), 16).values())[:2] == ["bad", "Collapsed"]
    strangers = verdict(geometry(sound) | {"held_out_edges": 0.5}, 16)
    assert strangers["level"] == "doubtful" and strangers["reasons"][0].startswith("Nodes that an edge joins")
    assert "1 of 17 columns are constant" in " ".join(verdict(geometry(np.c_[sound, np.ones(500)]), 17)["reasons"])


def test_charts_say_what_they_show() -> None:
    history = [{"epoch": i, "total": 10.0 - i, "alignment": -2.0, "seconds": 0.1} for i in range(1, 6)]
    total, alignment = loss_charts(history)
    assert total["words"] == "Total falls from 9 to 5 over 5 epochs."
    assert alignment["words"] == "Alignment stays at −2 over 5 epochs."
    assert total["rows"][0] == ("1", "9") and total["data"]["y"] == [9, 8, 7, 6, 5]
    white = np.random.default_rng(0).normal(size=(4000, 4))
    assert (
        "Half of the variation lies in 2 of 4 directions; the effective rank is 4.0." in spectrum_chart(white)["words"]
    )
    twice = correlation_chart(np.c_[white, white[:, 0]])
    assert "1.00 at most" in twice["words"]
    shades = unpacked(twice["data"]["values"], "u1").reshape(5, 5)
    assert shades[0, 4] == 255 and shades[0, 1] < 20


def record(**facts: Any) -> RunRecord:
    graph = {"num_nodes": N, "num_edges": 10, "num_features": 6}
    return RunRecord(dataset="tables", seed=0, config={}, graph=graph, **facts)


def scored(accuracy: float) -> dict[str, Scores]:
    found = {"effective_rank": 5.0}
    own = {"accuracies": [accuracy], "valid_accuracies": [accuracy], "nmi": [0.5], "ari": [0.4]}
    return {"quick": Scores(protocol="quick", probe={}, splits="random", geometry=found, **own)}


def test_scores_stand_beside_their_references(tmp_path: Path) -> None:
    (tmp_path / "seed-0").mkdir()
    record(method="raw features", scores=scored(0.6)).write(tmp_path / "raw-features-0.json")
    record(method="other graph", scores=scored(0.9)).model_copy(update={"dataset": "x"}).write(tmp_path / "o-0.json")
    subject = planted()._replace(record=record(method="ssge", scores=scored(0.8)), folder=tmp_path / "seed-0")
    (table,) = score_tables(subject)
    assert [line[:2] for line in table["rows"]] == [("raw features", "60.00"), ("SSGE", "80.00")]
    page = write_report(tmp_path / "r.html", subject).read_text("utf-8")
    assert "Protocol quick" in page and "Reference rows are missing" not in page


def test_what_is_not_installed_is_told_before_any_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(InputError, match=re.escape("pip install 'ssge[report]'")):
        write_report(tmp_path / "r.html", planted())
    with pytest.raises(InputError, match=r"path must end in \.html"):
        write_report(tmp_path / "r.pdf", planted())


def test_layouts_by_either_library_keep_groups_together(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, group = planted().embedding.vectors, np.arange(N) % 3
    for there in (True, False):
        monkeypatch.setattr(layout.importlib.util, "find_spec", lambda name, there=there: there or None)
        placed = lay_out(vectors)
        near = nearest(placed.points, np.arange(N), 5, "euclidean").position
        assert (group[near] == group[:, None]).mean() > 0.95 and placed.method == "t-SNE" and not placed.scaled
    monkeypatch.setattr(layout, "MOST_WITHOUT", 20)
    assert lay_out(vectors).method == lay_out(vectors, method="pca").method == "principal components"
    assert lay_out(vectors, method="tsne").method == "t-SNE"
    with pytest.raises(UnknownNameError, match="Did you mean 'tsne'"):
        lay_out(vectors, method="t-sne")  # type: ignore[arg-type]


def test_components_are_those_of_a_singular_value_decomposition() -> None:
    for shape in ((40, 7), (7, 40)):
        z = np.random.default_rng(1).normal(size=shape)
        left, singular, _ = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
        found = lay_out(z, method="pca").points
        np.testing.assert_allclose(np.abs(found), np.abs(left * singular)[:, :2], atol=1e-8)


def test_the_data_of_a_page_are_json(tmp_path: Path) -> None:
    names = Names(np.arange(N), {"a": [None] * 30 + [float("nan")] * 30, "b": [float("inf")] * N})
    page = write_map_page(tmp_path / "m.html", planted(), color="a,b", **table(names)).read_text("utf-8")
    found = re.search(r'id="map-data">(.*?)</script>', page, re.S)
    assert found and json.loads(found[1], parse_constant=pytest.fail)["columns"]["a"] == [""] * N
