"""The examples run as they are, what they print is right, and the pages in docs/ say what is so."""

from __future__ import annotations

import ast
import csv
import inspect
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

import ssge
from ssge.cli import application
from ssge.evaluation import geometry
from ssge.io.embeddings import read_embedding
from ssge.methods.ssge import SSGEConfig
from ssge.ops.neighbors import nearest

ROOT = Path(__file__).resolve().parent.parent


class Printed(Protocol):
    """Runs an example and returns what it, and what it starts, prints."""

    def __call__(self, name: str, *words: str | Path) -> str: ...


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Printed:
    monkeypatch.chdir(tmp_path)

    def run(name: str, *words: str | Path) -> str:
        path = str(ROOT / "examples" / f"{name}.py")
        monkeypatch.setattr(sys, "argv", [path, *map(str, words)])
        runpy.run_path(path, run_name="__main__")
        return capfd.readouterr().out

    return run


def test_every_example_is_tested_and_says_what_it_shows() -> None:
    source = Path(__file__).read_text()
    for path in sorted((ROOT / "examples").glob("*.py")):
        assert f'printed("{path.stem}"' in source
        assert f"python examples/{path.name}" in path.read_text().split('"""')[1]


def test_quickstart(tmp_path: Path, printed: Printed) -> None:
    out = printed("quickstart", tmp_path)
    assert "Graph('calls': 90 nodes" in out and "e000" in out
    ids, vectors = read_embedding(tmp_path / "model" / "embedding.parquet")
    near = ids[nearest(vectors, np.arange(90), 5).position]
    same = np.array([[other[:3] == node[:3] for other in row] for node, row in zip(ids, near, strict=True)])
    assert same.mean() > 0.8  # neighbors are of the same circle; a third would be by chance


def test_sklearn_pipeline(printed: Printed) -> None:
    out = printed("sklearn_pipeline")
    found = re.findall(r"^(raw columns|embedding|both) +([\d.]+) ± ([\d.]+) % accuracy, (\d+) columns$", out, re.M)
    accuracy = {name: float(value) for name, value, _, _ in found}
    assert accuracy["embedding"] > accuracy["raw columns"] + 20
    assert [int(columns) for *_, columns in found] == [32, 32, 64]


def test_new_nodes(printed: Printed) -> None:
    out = printed("new_nodes")
    known, new = (int(text.replace(",", "")) for text in re.search(r"([\d,]+) known nodes, (\d+) new", out).groups())  # type: ignore[union-attr]
    assert known + new == 1797
    assert float(re.search(r"([\d.]+) % of the new images", out).group(1)) > 90  # type: ignore[union-attr]


def test_pytorch_geometric(printed: Printed) -> None:
    out = printed("pytorch_geometric")
    assert float(re.search(r"([\d.]+) % of the other members", out).group(1)) > 60  # type: ignore[union-attr]
    assert "GCN: 1,632 parameters" in out and "z=[34, 16]" in out


def test_airports_as_the_page_says(tmp_path: Path, printed: Printed) -> None:
    out = printed("airports")
    page = (ROOT / "docs" / "airports.md").read_text()
    commands = re.sub(r"--nodes \S+airports\.csv", "--nodes airports.csv", out)
    ran, told = re.findall(r"^\$ (ssge .*)$", commands, re.M), re.findall(r"^(ssge .*)$", page, re.M)
    assert ran == [line for line in told if not line.startswith(("ssge links", "ssge compare"))]  # those take longer

    card = (tmp_path / "airports" / "run" / "README.md").read_text()
    rank = float(re.search(r"\| effective rank \| ([\d.]+) \|", card).group(1))  # type: ignore[union-attr]
    default, chosen = (int(re.search(rf"fills about (\d+) {what}", page).group(1)) for what in ("directions", "of 32"))  # type: ignore[union-attr]
    assert abs(rank - chosen) < 3
    airports = next(Path(word) for word in out.split() if word.endswith("/airports.csv"))
    columns = ["Latitude", "Longitude", "Altitude", "Type"]
    kinds = ["table", "degree", "laplacian"]
    routes = tmp_path / "airports" / "routes.csv"
    graph = ssge.read_graph(routes, airports, id="IATA", columns=columns, features=kinds, scale="standard")
    untold = ssge.SSGE(random_state=0).fit(graph).embedding_
    assert untold.shape[1] == 81 and abs(geometry(untold)["effective_rank"] - default) < 3
    for airport, told in re.findall(r"^\| ([A-Z]{3}) \| (.*) \|$", page, re.M):
        found = re.search(rf"nearest to {airport}\ncosine +node *\n((?: *[\d.]+ +[A-Z]{{3}} *\n)+)", out)
        assert found and len(set(told.split(", ")) & set(re.findall("[A-Z]{3}", found.group(1)))) >= 4
    shares = re.findall(r"^ *(nearest (?:in|by|on) [a-z ]+?|at random) +(\d+) %$", out, re.M)
    said_shares = re.findall(r"^\| (nearest (?:in|by|on) [a-z ]+|at random) \| (\d+) % \|$", page, re.M)
    assert len(shares) == len(said_shares) == 4
    for (name, share), (same, said_share) in zip(shares, said_shares, strict=True):
        assert name == same and abs(int(share) - int(said_share)) <= 4

    with (tmp_path / "airports" / "clusters.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 514 and len({row["cluster"] for row in rows}) == 8
    assert "| isolated nodes | 162 |" in card and "| weighted | yes |" in card and "`laplacian_16`" in card


def answers() -> list[str]:
    lines = (ROOT / "docs" / "asks.md").read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| ")][2:]  # without heading and rule
    assert len(rows) >= 16 and all("#" in row[1] for row in rows)
    found = [re.findall(r"`([^`]+)`", row[2]) for row in rows]
    assert all(found)
    return [text for texts in found for text in texts]


def test_every_answer_to_an_ask_exists() -> None:
    app = application(SSGEConfig | None)
    arguments = [one for command in ("fit", "embed") for one in app[command].assemble_argument_collection()]
    flags = {name for argument in arguments for name in argument.names}
    files = {"record.json", "embedding.parquet", "id, e000, ..."}  # the guide's test sees them
    for text in answers():
        if text.startswith("ssge "):
            app.parse_args(shlex.split(text)[1:], exit_on_error=False, print_error=False)
        elif text.startswith("python "):
            assert (ROOT / text.split()[1]).is_file(), text
        elif text.startswith("--"):
            assert text in flags, text
        elif text not in files:
            call = ast.parse(text, mode="eval").body
            assert isinstance(call, ast.Call)
            path = ast.unparse(call.func).split(".")
            thing = ssge.SSGE if path[0] == "model" else ssge
            for name in path[1:]:
                thing = getattr(thing, name)
            known = inspect.signature(thing).parameters
            assert {keyword.arg for keyword in call.keywords} <= set(known), text
