"""Airports of the United States: from two CSV files to neighbors, clusters and a report, by the command line.

The files come with the package bokeh_sampledata (pip install bokeh_sampledata): 514 airports with location, altitude
and size, and the routes between them in July 2026. Both are in the public domain: airports by the contributors of
OurAirports, routes by the U.S. Bureau of Transportation Statistics. The program reads only the files; it does not
import the package.

It prints every command before it runs it.

    python examples/airports.py [--out airports] [--epochs 40]

The map and the report at the end need pip install 'ssge[plots,report]'.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import ssge
from ssge.ops.neighbors import nearest

SHOWN = ("SFO", "ORD", "ANC", "HNL")
COLUMNS = ("Latitude", "Longitude", "Altitude", "Type")
FEATURES = ("table", "degree", "laplacian")


def data_folder() -> Path:
    """Return the folder with the data files of the package."""
    found = find_spec("bokeh_sampledata")
    if found is None or not found.submodule_search_locations:
        sys.exit("The data is not here: pip install 'bokeh_sampledata>=2026.1'")
    return Path(found.submodule_search_locations[0]) / "_data"


def count_airlines(routes: Path, out: Path) -> None:
    """Write one row per route; its weight is the number of airlines, one row each in the raw table."""
    table = csv.read_csv(routes).group_by(["Source", "Destination"]).aggregate([([], "count_all")])
    csv.write_csv(table.rename_columns(["source", "target", "weight"]), out)


def run(*words: str | Path) -> None:
    """Print a command and run it."""
    print(f"\n$ {shlex.join(['ssge', *map(str, words)])}", flush=True)
    subprocess.run([sys.executable, "-m", "ssge", *map(str, words)], check=True)


def airlines_at(routes: Path) -> dict[str, set[str]]:
    """Return the airlines of each airport that has any. The model sees how many fly a route, never which."""
    found: dict[str, set[str]] = {}
    for row in csv.read_csv(routes).select(["Airline", "Source", "Destination"]).to_pylist():
        for end in ("Source", "Destination"):
            found.setdefault(row[end], set()).add(row["Airline"])
    return found


def in_common(pairs: Iterable[tuple[str, str]], airlines: dict[str, set[str]]) -> float:
    """Return the mean share of airlines that two airports have in common (Jaccard index), in percent."""
    sets = [(airlines[a], airlines.get(b, set())) for a, b in pairs if a in airlines]
    return 100 * sum(len(a & b) / len(a | b) for a, b in sets) / len(sets)


def on_the_map(airports: Path, served: Iterable[str], k: int) -> list[tuple[str, str]]:
    """Return each airport with airlines and the k geographically nearest of the others."""
    table = csv.read_csv(airports)
    table = table.filter(pc.is_in(table["IATA"], pa.array(served)))
    names = table["IATA"].to_pylist()
    latitude, longitude = (np.radians(table[column].to_numpy()) for column in ("Latitude", "Longitude"))
    flat = np.cos(latitude)
    points = np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)])
    near = np.argsort(-points.T @ points, axis=1)[:, 1 : k + 1]
    return [(name, names[j]) for name, row in zip(names, near, strict=True) for j in row]


def by_features(routes: Path, airports: Path, k: int) -> list[tuple[str, str]]:
    """Return each airport with the k others whose input features are most similar."""
    graph = ssge.read_graph(routes, airports, id="IATA", columns=COLUMNS, features=FEATURES, scale="standard")
    found = nearest(np.asarray(graph.features), np.arange(graph.num_nodes), k)
    names = graph.node_ids
    return [(name, names[j]) for name, row in zip(names, found.position, strict=True) for j in row]


def main(out: Path, epochs: int) -> None:
    """Run all steps, and evaluate the neighbors by data that the model does not see: which airlines fly there."""
    data = data_folder()
    airports, routes = data / "airports.csv", out / "routes.csv"
    out.mkdir(parents=True, exist_ok=True)
    count_airlines(data / "routes.csv.gz", routes)

    run(
        "fit", routes, "--nodes", airports, "--id", "IATA",
        "--columns", *COLUMNS, "--scale", "standard", "--features", *FEATURES,
        "--widths", "64", "32", "--epochs", str(epochs),
        "--out", out / "run", "--force", "--quiet",
    )  # fmt: skip
    run("neighbors", out / "run", *SHOWN, "-k", "6")
    run("cluster", out / "run", "-k", "8", "--out", out / "clusters.csv", "--force")
    run("outliers", out / "run", "-k", "5", "--show", "Name,City")
    run("neighbors", out / "run", "--all", "-k", "5", "--out", out / "neighbors.csv", "--force")

    airlines = airlines_at(data / "routes.csv.gz")
    table = csv.read_csv(out / "neighbors.csv")
    near = list(zip(table["id"].to_pylist(), table["neighbor"].to_pylist(), strict=True))
    served = sorted(airlines)
    drawn = np.random.default_rng(0).choice(served, size=(len(served), 5))
    print("\nairlines that an airport has in common with five others:")
    for name, pairs in {
        "nearest in the embedding": near,
        "nearest by the features": by_features(routes, airports, 5),
        "nearest on the map": on_the_map(airports, served, 5),
        "at random": [(name, str(other)) for name, row in zip(served, drawn, strict=True) for other in row],
    }.items():
        print(f"  {name:24s} {in_common(pairs, airlines):.0f} %")

    run("map", out / "run", "--color", "Type", "--out", out / "map.png", "--force")
    run("report", out / "run", "--show", "Name,City", "--color", "Type", "--out", out / "report.html", "--force")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Embed the airports of the United States.")
    parser.add_argument("--out", type=Path, default=Path("airports"), help="folder for all files")
    parser.add_argument("--epochs", type=int, default=40, help="of the training")
    given = parser.parse_args()
    main(given.out, given.epochs)
