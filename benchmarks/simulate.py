"""What one epoch on a graph of any size would take per rank, derived from costs that `scale.py` measured.

    python benchmarks/simulate.py --nodes 1e9 --edges 1e10 --ranks 1 8 32 128

Nothing is run. The model is SSGE with a two-layer GCN whose layers take the product with A first: six sparse products
an epoch (A X, A H and back through A, of two views) and products of rows with weights. W ranks divide the columns of
the sparse products and the rows of everything else, and exchange one for the other before and after each product, as
`torchrun` does here. Every rank reads all edges from its own disk and draws for itself which ones a view has dropped.
Costs are those of one core; the network is assumed.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

NETWORK = 3e9
"""Bytes a second that a rank sends; 25 Gbit/s."""
IN_MEMORY = 72
"""Bytes per edge of a graph in memory, by count: its list of edges, two directions of indices and weights, their order,
the ids of edges by which views draw, and the entries that two views keep."""
DEGREES = 32
"""Bytes per node of the degrees of two views, and of one that is being counted."""


class Epoch(NamedTuple):
    """What a rank needs for an epoch; times in seconds, the rest in bytes."""

    ranks: int
    in_memory: float
    memory: float
    disk: float
    sent: float
    draws: float
    products: float
    dense: float
    files: float
    network: float

    @property
    def seconds(self) -> float:
        """All of it, one after another."""
        return self.draws + self.products + self.dense + self.files + self.network


def simulate(
    n: float, m: float, p: int, d: int, ranks: int, costs: dict[str, float], network: float = NETWORK
) -> Epoch:
    """Derive an epoch on n nodes, m directed edges, p features and two layers of width d from measured costs."""
    columns = 2 * (p + 2 * d)  # of all sparse products
    share = n / ranks
    passes = 6 + 2  # products, and the degrees of two views
    scratch = 4 * share * (2 * (p + d) + 4 * max(p, d))
    moved = 4 * share * (2 * (3 * p + 6 * d))  # what goes into each stage is written once and read twice, gradients too
    flops = share * (2 * 6 * p * d + 12 * d * d)
    sent = 0.0 if ranks == 1 else 2 * 4 * share * columns * (1 - 1 / ranks)
    return Epoch(
        ranks,
        in_memory=IN_MEMORY * m + 4 * n * p + 4 * share * 8 * d,
        memory=DEGREES * n + 4 * n * max(p, d) / ranks,
        disk=4 * m + 8 * n + 4 * n * p + scratch,
        sent=sent,
        draws=passes * m * (costs["draw_seconds_per_edge"] + costs["read_seconds_per_edge"]),
        products=(m + n) * columns / ranks * costs["product_seconds_per_entry_and_column"],
        dense=flops / costs["dense_flops"],
        files=moved / min(costs["write_bytes_per_second"], costs["read_bytes_per_second"]),
        network=sent / NETWORK,
    )


def table_of(costs: dict[str, float], n: float, m: float, p: int, d: int, ranks: list[int]) -> str:
    """Return the epochs of several numbers of ranks as a table in Markdown."""
    from pages import table

    rows = []
    for count in ranks:
        one = simulate(n, m, p, d, count, costs)
        sizes = [f"{value / 1e9:,.0f} GB" for value in (one.in_memory, one.memory, one.disk, one.sent)]
        parts = [f"{value:,.0f} s" for value in (one.draws, one.products, one.dense, one.files, one.network)]
        rows.append((str(count), *sizes, *parts, f"{one.seconds / 3600:,.1f} h"))
    headings = ("ranks", "memory, graph in memory", "memory, streamed", "disk", "sent", "draws", "sparse products",
                "dense products", "files", "network", "epoch")  # fmt: skip
    return table(headings, rows, left=())


def limits(costs: dict[str, float], n: float, m: float, p: int, d: int, ranks: list[int]) -> str:
    """Say what breaks first."""
    last = simulate(n, m, p, d, max(ranks), costs)
    parts = {"draws": last.draws, "sparse products": last.products, "dense products": last.dense,
             "files": last.files, "network": last.network}  # fmt: skip
    longest = max(parts, key=parts.__getitem__)
    pointers = m + n > 2**31
    return (
        f"1. Edges in memory: {IN_MEMORY * m / 1e9:,.0f} GB on every rank, whatever their number"
        f"{', and more entries than 32-bit row pointers count' if pointers else ''}. So several processes with the "
        "graph in memory break first; the edges must stay on disk.\n"
        f"2. Degrees: {DEGREES * n / 1e9:,.0f} GB on every rank. They would have to be divided next.\n"
        f"3. Time: at {last.ranks} ranks {longest} take {parts[longest] / last.seconds:.0%} of the epoch. "
        f"Reading and drawing the edges takes {last.draws / 3600:,.1f} h on every rank and does not fall with their "
        "number.\n"
    )


def check(record: Any) -> list[tuple[int, float, float]]:
    """Return nodes, measured and derived processor seconds of an epoch, for the sizes that were measured."""
    costs = record.figures["costs"]
    return [
        (line["nodes"], line["epoch_cpu_seconds"],
         simulate(line["nodes"], line["edges"], line["features"], line["width"], 1, costs).seconds)
        for line in record.figures["sizes"] if line["epochs"] > 1
    ]  # fmt: skip


def main() -> None:
    from pages import RESULTS, Record

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=float, default=1e9)
    parser.add_argument("--edges", type=float, default=1e10, help="directed")
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--width", type=int, default=128, help="of both layers")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 8, 32, 128])
    options = parser.parse_args()
    record = Record.model_validate_json((RESULTS / "scale.json").read_text())
    sizes = (options.nodes, options.edges, options.features, options.width, options.ranks)
    print(table_of(record.figures["costs"], *sizes))
    print(limits(record.figures["costs"], *sizes))
    for nodes, measured, derived in check(record):
        print(f"{nodes:,} nodes on one core: measured {measured:.1f} s, derived {derived:.1f} s an epoch")


if __name__ == "__main__":
    main()
