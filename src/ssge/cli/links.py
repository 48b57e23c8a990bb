"""Commands about pairs of nodes: links, duplicates."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ssge.cli.options import BY_ID, PRINTED, USE, Count, Naming, Output, Quiet, Threads, Vectors, command, set_up
from ssge.errors import InputError
from ssge.terminal import print_cells, print_json


@command(
    USE,
    "ssge links run",
    "ssge links run edges.csv -k 50 --out links.csv",
    "ssge links run --of SFO ORD -k 5",
    "ssge links embedding.parquet edges.csv --json",
)
def links(
    run: Path,
    edges: str | None = None,
    /,
    *,
    k: Count = 20,
    of: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    share: float = 0.1,
    seed: int = 0,
    threads: Threads = None,
    quiet: Quiet = False,
    output: Output = PRINTED,
    naming: Naming = BY_ID,
) -> None:
    """Predict missing links: pairs of nodes without an edge that look like pairs with one.

    The run is trained again without a tenth of the edges for calibration and another tenth for a test. A logistic
    regression separates edges from random pairs by the cosine of the embedding, the cosine of the propagated
    features, Adamic-Adar, and the degrees. Odds of 50 mean: pairs like this one are 50 times as frequent among edges as
    among random pairs; the score is odds / (1 + odds). The file of --out has the pairs, their scores and parts.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding; then only its vectors and the edges are used.
    edges
        The edges that exist: a dataset or file; default: those that the run was fitted on.
    k
        Number of pairs, overall or for each node of --of.
    of
        Only links of these nodes, each compared with all others.
    share
        Share of the edges to hold out, once for calibration and once for the test.
    seed
        Seed of the held-out edges.
    """
    set_up(quiet, threads)
    from ssge.runs.links import suggest_links
    from ssge.runs.names import pair_columns

    output.check()
    embedding, names = naming.open(run)
    nodes = names.positions(of) if of else None
    graph, record = _graph(run, edges, embedding)
    found = suggest_links(graph, embedding.vectors, record, k, nodes, share, seed)
    links = found.links
    own = {"score": links.score, "odds": links.odds, **links.parts}
    output.write([pair_columns(names, links.pairs, own)])
    if output.json:
        judged = [score._asdict() for score in found.scores]
        pairs = _pairs(names, links.pairs, own)
        print_json({"test": judged, "hits_at": found.hits_at, "weights": found.weights, "links": pairs})
        return
    print(f"test: {share:.0%} of the edges held out, against as many random pairs")
    lines = [(score.name, f"{score.auc:.3f}", f"{score.hits:.3f}") for score in found.scores]
    print_cells(("score", "AUC", f"hits@{found.hits_at}"), lines)
    print("likely missing edges")
    rows = zip(*links.pairs, links.score, links.odds, *links.parts.values(), strict=True)
    cells = [
        (f"{score:.3f}", f"{odds:,.0f}", names.title(a), names.title(b), *(f"{part:.2f}" for part in parts))
        for a, b, score, odds, *parts in rows
    ]
    print_cells(("score", "odds", "node", "node", *(name.replace("_", " ") for name in links.parts)), cells)


@command(USE, "ssge duplicates run", "ssge duplicates run -k 1000 --least 0.98 --out duplicates.csv")
def duplicates(
    run: Vectors, /, *, k: Count = 20, least: float = -1.0, output: Output = PRINTED, naming: Naming = BY_ID
) -> None:
    """Show likely duplicates: pairs of nodes that are among the nearest neighbors of each other.

    The column next has the highest cosine of either node with a third one. A pair of true duplicates is well above it;
    pairs among many similar nodes are not. The file of --out has the same columns.

    Parameters
    ----------
    k
        Number of pairs, the most similar first.
    least
        Lowest cosine of a pair.
    """
    from ssge.runs.names import pair_columns
    from ssge.tasks.duplicates import duplicates as find

    output.check()
    embedding, names = naming.open(run)
    found = find(embedding.vectors, k, least)
    own = {"cosine": found.cosine, "next": found.next}
    output.write([pair_columns(names, found.pairs, own)])
    if output.json:
        print_json(_pairs(names, found.pairs, own))
        return
    rows = zip(*found.pairs, found.cosine, found.next, strict=True)
    cells = [(f"{cosine:.3f}", f"{other:.3f}", names.title(a), names.title(b)) for a, b, cosine, other in rows]
    print_cells(("cosine", "next", "node", "node"), cells)


def _pairs(names: Any, pairs: Any, own: dict[str, Any]) -> list[dict[str, Any]]:
    """Return pairs of nodes for JSON."""
    values = zip(*(column.tolist() for column in own.values()), strict=True)
    return [
        {"source": names.of(a), "target": names.of(b), **dict(zip(own, some, strict=True))}
        for a, b, some in zip(*pairs, values, strict=True)
    ]


def _graph(run: Path, edges: str | None, embedding: Any) -> tuple[Any, Any]:
    """Return the graph of a run, or of edges alone beside a file of vectors, and the record of the run."""
    from ssge.experiments.sources import known_edges, reopen, with_edges

    if run.is_dir():
        from ssge.runs.folder import RunFolder

        folder = RunFolder(run)
        graph = reopen(folder)
        if edges is not None:
            graph = with_edges(graph, known_edges(edges, embedding.node_ids, folder.read_record()))
        return graph, folder.read_record()
    if edges is None:
        raise InputError("A file of vectors has no edges: give them, as in ssge links FILE edges.csv.")
    from ssge.graph import Graph

    ends = known_edges(edges, embedding.node_ids)
    return Graph.of(edges=ends, features=embedding.vectors[:, :1], name=edges), None
