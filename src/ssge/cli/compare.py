"""The command that compares methods or runs on one graph: compare."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ssge.cli.options import (
    AS_FOUND,
    JUDGE,
    Device,
    Json,
    Quiet,
    Reading,
    SkipReferences,
    Switch,
    Threads,
    command,
    set_up,
)
from ssge.terminal import print_cells, print_json, print_table


@command(
    JUDGE,
    "ssge compare edges.csv --nodes nodes.csv --label type --methods ssge,cca_ssg,bgrl",
    "ssge compare edges.csv --nodes nodes.csv --labels some_labels.csv --seeds 5",
    "ssge compare imports --methods ssge,dgi --seeds 3",
    "ssge compare run1 run2 run3",
)
def compare(
    sources: Annotated[list[str], Parameter(negative="")],
    /,
    *,
    methods: str = "ssge",
    seeds: int = 3,
    labels: Path | None = None,
    protocol: str = "quick",
    out: Path | None = None,
    skip_references: SkipReferences = False,
    threads: Threads = None,
    device: Device = "cpu",
    force: Switch = False,
    quiet: Quiet = False,
    json: Json = False,
    reading: Reading = AS_FOUND,
) -> None:
    """Compare methods on a graph, or finished runs: one table, reference rows, paired differences.

    Methods are fitted with their defaults for the graph. Without labels the table has label-free figures.

    Parameters
    ----------
    sources
        A graph (dataset or file, as for fit), or folders of runs on one graph.
    methods
        Names with commas between them (ssge ls methods); the first is the one that others are compared with.
    seeds
        Encoder seeds of each method: 0, 1, ...
    labels
        CSV, TSV or Parquet file with the labels of some nodes, columns as for classify; default: those of the graph.
    protocol
        How to score (ssge ls protocols); own graphs have ten random splits.
    out
        Folder for the runs; default: runs/compare/NAME. Finished ones are not run again.
    force
        Run and score everything again.
    """
    set_up(quiet, threads)
    from ssge.experiments.own import LABEL_FREE, compare_methods, compare_runs, label_free_rows
    from ssge.experiments.protocols import PROTOCOLS

    judged = PROTOCOLS[protocol]
    runs = [Path(source) for source in sources if (Path(source) / "record.json").is_file()]
    graph, origin = _graph(sources, runs, methods, reading)
    labeled = None if labels is None else _labeled(graph, labels)
    where = out or Path("runs") / "compare" / graph.name
    how = {**origin, "device": device, "force": force, "quiet": quiet}
    if graph.labels is None and labeled is None:
        found = label_free_rows(_vectors(graph, runs, methods, seeds, where, how, not skip_references), graph)
        if json:
            print_json([dict(zip(("name", *LABEL_FREE[1:]), line, strict=True)) for line in found])
        else:
            print_cells(LABEL_FREE, found, f"{graph.name}: no labels")
        return
    if runs:
        comparison = compare_runs(runs, judged, labeled, not skip_references)
    else:
        comparison = compare_methods(
            methods.split(","), graph, judged, seeds, where, labeled=labeled, referenced=not skip_references, **how
        )
    rows, differences = comparison.rows(), comparison.differences()
    if json:
        lines = {"rows": [row._asdict() for row in rows], "first": comparison.first}
        print_json(lines | {"differences": [one._asdict() for one in differences]})
        return
    print_table(rows, f"{graph.name}, protocol {judged.name}: {judged.description}")
    if differences:
        print(f"difference from {comparison.first}, in points ± standard error")
        cells = [(one.name, _points(one.accuracy), _points(one.nmi)) for one in differences]
        print_cells(("", "accuracy", "NMI"), cells)


def _points(difference: tuple[float, float] | None) -> str:
    return "-" if difference is None else f"{difference[0]:+.2f} ± {difference[1]:.2f}"


def _graph(sources: list[str], runs: list[Path], methods: str, reading: Reading) -> tuple[Any, dict[str, Any]]:
    """Return the graph to compare on, and where it came from."""
    from ssge.cli.train import origin_of
    from ssge.errors import InputError
    from ssge.experiments.sources import open_graph, reopen, suited_to
    from ssge.runs.folder import RunFolder

    if runs:
        if len(runs) < len(sources):
            other = next(source for source in sources if Path(source) not in runs)
            raise InputError(f"Give one graph, or folders of runs; {other} is no run.")
        return reopen(RunFolder(runs[0])), {}
    if len(sources) != 1:
        raise InputError(f"Give one graph, or folders of runs; received {len(sources)} graphs.")
    options = suited_to(methods.partition(",")[0], sources[0], reading.given())
    return open_graph(sources[0], options), origin_of(sources[0], options)


def _labeled(graph: Any, labels: Path) -> Any:
    from ssge.experiments.own import label_nodes
    from ssge.io.embeddings import Embedding
    from ssge.io.labels import read_labels

    rows, given = read_labels(labels, Embedding(graph.node_ids, graph.features))
    return label_nodes(graph, rows, given)


def _vectors(
    graph: Any, runs: list[Path], methods: str, seeds: int, out: Path, how: dict[str, Any], referenced: bool
) -> dict[str, Any]:
    """Return the embeddings to compare without labels, by name."""
    from ssge.experiments.own import fit_methods, label_free_references
    from ssge.runs.folder import RunFolder

    vectors = label_free_references(graph) if referenced else {}
    if runs:
        return vectors | {run.name: RunFolder(run).read_embedding().vectors for run in runs}
    fitted = fit_methods(methods.split(","), graph, seeds, out, **how)
    return vectors | {
        f"{title}, seed {seed}": folder.read_embedding().vectors
        for title, folders in fitted.items()
        for seed, folder in enumerate(folders)
    }
