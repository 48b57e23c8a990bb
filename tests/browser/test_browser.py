"""The report of a real run in a real browser: it draws, answers and loads nothing, on desk and phone, in the dark."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import Opened
from PIL import Image

import ssge
from ssge.experiments.report import write_map_page, write_report
from ssge.experiments.subject import Subject
from ssge.io.embeddings import Embedding

Open = Callable[..., Opened]
LOOKS = {"desk": (1280, 900, "light"), "phone": (390, 844, "light"), "dark": (1280, 900, "dark")}


@pytest.fixture(scope="session")
def model() -> Any:
    return ssge.SSGE((32, 16), epochs=20, random_state=0).fit(ssge.load_dataset("digits"))


@pytest.fixture(scope="session")
def report(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of handwritten digits, each named by what it shows and by its number."""
    path = tmp_path_factory.mktemp("pages") / "report.html"
    labels = ssge.load_dataset("digits").labels
    assert labels is not None
    table = {
        "id": model.node_ids_,
        "title": [f"digit {i} of {len(labels)}" for i in range(len(labels))],
        "digit": labels,
    }
    return model.report(path, show="title", color="digit", nodes=_frame(table), id="id", layout="pca")


def _frame(columns: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array(values) for name, values in columns.items()})


def pixels(page: Any, selector: str = "#plot") -> np.ndarray:
    return np.asarray(Image.open(BytesIO(page.locator(selector).screenshot())).convert("RGB"), dtype=int)


def differing(before: np.ndarray, after: np.ndarray) -> int:
    return int((np.abs(before - after).sum(axis=2) > 30).sum())


def place_of(page: Any, node: int) -> tuple[float, float]:
    """Return where a node is in the window, from the axes of the map."""
    found = page.evaluate(
        """node => {
            const data = JSON.parse(document.getElementById("map-data").textContent);
            const plot = document.getElementById("plot");
            const read = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer)[node];
            const box = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout;
            return [box.x + xaxis._offset + xaxis.d2p(read(data.x)), box.y + yaxis._offset + yaxis.d2p(read(data.y))];
        }""",
        node,
    )
    return found[0], found[1]


def data_of(page: Any) -> Any:
    return json.loads(page.locator("#map-data").text_content())


def lonely(page: Any) -> int:
    """Return a node that no other hides."""
    data = data_of(page)
    x, y = (np.frombuffer(base64.b64decode(data[axis]), "<f4") for axis in "xy")
    distance = np.hypot(x[:, None] - x, y[:, None] - y)
    np.fill_diagonal(distance, np.inf)
    return int(distance.min(axis=1).argmax())


@pytest.mark.parametrize("look", LOOKS)
def test_the_map_answers(look: str, report: Path, opened: Open) -> None:
    shown = opened(report, *LOOKS[look])
    page = shown.page
    assert page.evaluate("document.documentElement.scrollWidth") <= LOOKS[look][0]  # nothing is wider than the window
    page.locator("#plot").scroll_into_view_if_needed()

    # Drawn: points in the colors of several classes on the background of the page.
    whole = pixels(page)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 23, 28)" if look == "dark" else "rgb(255, 255, 255)")
    ground = np.array([int(part) for part in background[4:-1].split(",")])
    assert 1000 < (np.abs(whole - ground).sum(axis=2) > 60).sum() < whole[..., 0].size / 2
    assert len(np.unique(whole.reshape(-1, 3), axis=0)) > 50

    # Hover: the name and the columns of the node beneath.
    node = lonely(page)
    data = data_of(page)
    page.mouse.move(*place_of(page, node))
    page.locator("#tip").wait_for(state="visible")
    told = page.locator("#tip").inner_text()
    assert data["columns"]["title"][node] in told and f"id: {data['ids'][node]}" in told and "digit: " in told

    # Click: its neighbors are listed and joined to it.
    page.mouse.click(*place_of(page, node))
    assert page.locator("#node h3").inner_text() == data["columns"]["title"][node]
    near = np.frombuffer(base64.b64decode(data["neighbors"]), "<i4").reshape(-1, data["k"])[node]
    listed = page.locator("#node li .word").all_inner_texts()
    assert listed == [data["columns"]["title"][j] for j in near]
    joined = page.evaluate("document.getElementById('plot').data[1].x.length")
    assert joined == 3 * data["k"]
    page.mouse.move(0, 0)
    assert differing(whole, pixels(page)) > 20

    # Search, by keyboard alone.
    page.locator("#find").focus()
    page.keyboard.type("digit 7 of")
    assert "digit 7 of 1797" in page.locator("#hits").inner_text()
    page.keyboard.press("Enter")
    assert page.locator("#node h3").inner_text() == "digit 7 of 1797"
    assert page.locator("#hits").is_hidden()

    # Filter: a class that is switched off is gone from the map.
    before = pixels(page)
    first = page.locator("#class-list label").first
    count = int(first.locator(".count").inner_text())
    first.locator("input").uncheck()
    page.wait_for_function(f"document.getElementById('plot').data[0].x.length === {data['n'] - count}")
    assert f"{data['n'] - count:,} nodes shown" in page.locator("#chosen").inner_text()
    assert differing(before, pixels(page)) > 200
    shown.check()


def test_the_lasso_exports_ids(report: Path, opened: Open) -> None:
    shown = opened(report)
    page = shown.page
    page.locator("#plot").scroll_into_view_if_needed()
    page.get_by_role("button", name="Lasso").click()
    box = page.locator("#plot").bounding_box()
    corners = [(0.3, 0.3), (0.6, 0.3), (0.6, 0.6), (0.3, 0.6), (0.3, 0.3)]
    points = [(box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point, steps=5)
    page.mouse.up()
    page.wait_for_function("document.getElementById('chosen').textContent.includes('in the lasso')")
    count = int(page.locator("#chosen").inner_text().split()[0].replace(",", ""))
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download ids").click()
    with Path(waiting.value.path()).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert 10 < len(rows) == count < 1797 and rows[0].keys() == {"id", "title", "digit"}
    page.get_by_role("button", name="Clear").click()
    assert "1,797 nodes shown" in page.locator("#chosen").inner_text()
    shown.check()


def test_the_page_is_used_by_keyboard(report: Path, opened: Open) -> None:
    page = opened(report).page
    page.locator("#plot").focus()
    span = "(() => { const r = document.getElementById('plot').layout.xaxis.range; return r[1] - r[0]; })()"
    before = page.evaluate(span)
    page.keyboard.press("+")
    page.wait_for_function(f"{span} < 0.8 * {before}")
    page.keyboard.press("0")
    page.wait_for_function(f"Math.abs({span} - {before}) < 1e-3 * {before}")
    page.locator("#find").fill("digit 12 of")
    page.locator("#find").press("Enter")
    page.keyboard.press("Tab")
    for name in ("move", "lasso", "closer", "farther", "whole"):
        assert page.evaluate("document.activeElement.id") == name
        page.keyboard.press("Tab")
    page.locator("#node li button").first.press("Enter")  # the panel moves to the neighbor
    assert page.locator("#node h3").inner_text() != "digit 12 of 1797"


def test_every_chart_has_words_and_a_table(report: Path, opened: Open) -> None:
    shown = opened(report)
    page = shown.page
    charts = page.locator(".chart")
    assert charts.count() >= 5
    for i in range(charts.count()):
        chart = charts.nth(i)
        assert chart.get_attribute("role") == "img" and len(chart.get_attribute("aria-label")) > 30
        assert chart.locator("svg.main-svg").count() >= 1
        assert page.locator("figure").nth(i).locator("details tbody tr").count() >= 3
    names = page.evaluate(
        """[...document.querySelectorAll("button, select, input")].map((e) =>
            e.textContent || e.ariaLabel || e.labels?.length)"""
    )
    assert all(names)
    shown.check()


def test_many_points_are_drawn_by_webgl_and_stay_usable(opened: Open, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 12_500
    group = rng.integers(0, 5, n)
    plane = (6 * rng.normal(size=(5, 2))[group] + rng.normal(size=(n, 2))).astype(np.float32)
    nodes = _frame({"id": np.arange(n), "group": [f"group {g}" for g in group]})
    subject = Subject(Embedding(np.arange(n), plane))
    path = write_map_page(tmp_path / "map.html", subject, nodes=nodes, color="group", points=12_000)
    shown = opened(path)
    page = shown.page
    assert "12,000 of 12,500 nodes, chosen at random" in page.locator("#map > .note").inner_text()
    assert page.evaluate("document.getElementById('plot').data[0].type") == "scattergl"
    assert len(np.unique(pixels(page).reshape(-1, 3), axis=0)) > 20
    data, before = data_of(page), pixels(page)
    page.locator("#find").fill(data["ids"][123])
    page.locator("#find").press("Enter")
    assert page.locator("#node h3").inner_text() == data["ids"][123]
    x, y = place_of(page, 123)
    box = page.locator("#plot").bounding_box()
    around = np.s_[int(y - box["y"]) - 9 : int(y - box["y"]) + 9, int(x - box["x"]) - 9 : int(x - box["x"]) + 9]
    assert differing(before[around], pixels(page)[around]) > 20  # the ring is above the points
    page.locator("#class-list input").first.uncheck()
    page.wait_for_function("document.getElementById('plot').data[0].x.length < 11000")
    shown.check()


EVIL = "</script><script>window.harmed=1</script><img src=x onerror='window.harmed=1'><a href='javascript:1'>x</a>"


def test_what_files_hold_is_text(model: Any, opened: Open, tmp_path: Path) -> None:
    n = len(model.node_ids_)
    record = model._run.record.model_copy(deep=True)
    record.name = record.dataset = EVIL
    record.reading = {EVIL: EVIL}
    record.node_columns = [(EVIL,) * 6]
    record.feature_names = [EVIL]
    ids = np.array([f"{i} {EVIL}" for i in range(n)], dtype=object)
    subject = Subject(Embedding(ids, model.embedding_), record, model._run.history)
    nodes = _frame({"id": ids, EVIL: [f"{i % 3} {EVIL}" for i in range(n)]})
    shown = opened(write_report(tmp_path / "evil.html", subject, nodes=nodes, color=[EVIL], layout="pca"))
    page = shown.page
    node = lonely(page)
    page.locator("#plot").scroll_into_view_if_needed()
    page.mouse.move(*place_of(page, node))
    page.locator("#tip").wait_for(state="visible")
    page.mouse.click(*place_of(page, node))
    page.locator("#find").fill("0 </script")
    page.locator("#find").press("Enter")
    assert page.evaluate("window.harmed") is None
    assert page.locator("body img, body a[href^=javascript]").count() == 0
    assert EVIL in page.locator("h1").inner_text() and EVIL in page.locator("#node h3").inner_text()
    shown.check()
