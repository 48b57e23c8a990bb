"""Commands that score: evaluate, run, compare, reproduce."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter

from ssge.cli.options import (
    AS_FOUND,
    EVALUATE,
    Device,
    Json,
    Quiet,
    Reading,
    SkipReferences,
    Threads,
    command,
    print_rows,
    set_up,
)
from ssge.errors import InputError
from ssge.terminal import print_cells, print_json, print_table
from ssge.training.allocator import kept_memory

What: TypeAlias = Literal[
    "classification", "clustering", "efficiency", "ablation", "covariance", "uniformity", "lambda", "dimension",
    "augmentation", "all",
]  # fmt: skip

SEVERAL = Parameter(consume_multiple=True)


@command(EVALUATE, "ssge evaluate run", "ssge evaluate run --protocol released-code --json")
def evaluate(
    run: Path,
    /,
    *,
    protocol: str = "paper",
    skip_references: SkipReferences = False,
    threads: Threads = None,
    force: bool = False,
    json: Json = False,
) -> None:
    """Score the embedding of a finished run: linear probe, clustering, geometry.

    The scores are kept in the record.json of the run. The table also has reference rows that need no training: a run
    should beat them. A graph without labels gets label-free figures. --json prints the run alone.

    Parameters
    ----------
    run
        Folder of the run.
    protocol
        paper, paper-lbfgs (penalty chosen on validation nodes), quick, random (no public splits), or released-code
        (its splits too); see `ssge ls protocols`.
    force
        Score again what is scored already.
    """
    set_up(threads=threads)
    from ssge.experiments import compare as comparing
    from ssge.experiments.protocols import PROTOCOLS
    from ssge.experiments.sources import reopen
    from ssge.experiments.tables import row, rows
    from ssge.runs.folder import RunFolder

    chosen = PROTOCOLS[protocol]
    folder = RunFolder(run)
    record = folder.read_record()
    graph = reopen(folder)
    name = f"{record.method} on {record.dataset}"
    if graph.labels is None:
        vectors = folder.read_embedding().vectors
        if json:
            print_json(comparing.label_free(vectors, graph))
            return
        found = comparing.label_free_rows({name: vectors}, graph, not skip_references)
        print_rows(found, False, "no labels: label-free figures")
        print("Training used these edges, so the figures are no test. ssge links holds edges out.")
        return
    record = comparing.score(folder, graph, chosen, force)
    scores = record.scores[chosen.name]
    if json:
        print(scores.model_dump_json(indent=2))
        return
    by = f"its own class scores, {scores.splits}" if record.splits else chosen.description
    others = [] if skip_references else comparing.references_beside(folder, record, chosen, graph)
    print_table([*rows(others, chosen.name), row(name, [scores])], f"{chosen.name}: {by}")


@command(
    EVALUATE,
    "ssge run ssge/cora --seeds 5",
    "ssge run ssge/cora --seeds 5 --uniformity-weight 0 --out runs/ablation",
)
def run(
    recipe: str,
    /,
    *,
    seeds: int = 5,
    protocol: str | None = None,
    out: Path | None = None,
    threads: Threads = None,
    device: Device = "cpu",
    skip_references: SkipReferences = False,
    force: bool = False,
    quiet: Quiet = False,
    json: Json = False,
    settings: Any = None,
) -> None:
    """Fit and score a recipe over several encoder seeds; print one table with the reference rows.

    Finished seeds are kept and not run again.

    Parameters
    ----------
    recipe
        Name of a recipe (ssge ls recipes) or a TOML file.
    seeds
        Encoder seeds 0, 1, ...
    protocol
        How to score; default: the recipe's.
    out
        Folder for the runs; default: runs/RECIPE.
    force
        Run and score everything again.
    """
    set_up(quiet, threads)
    from ssge.cli.train import Choice, planned
    from ssge.datasets import load
    from ssge.experiments.compare import compare
    from ssge.experiments.protocols import PROTOCOLS
    from ssge.runs.recipes import load_recipe

    chosen = load_recipe(recipe)
    planned(Choice(recipe=recipe), settings)  # refuses mistakes before the graph is read
    judged = PROTOCOLS[protocol or chosen.protocol]
    with kept_memory():
        summary = compare(
            chosen, load(chosen.dataset), judged, seeds, out or Path("runs") / chosen.name,
            settings=settings and vars(settings), device=device, force=force, quiet=quiet,
            references=None if out else Path("runs") / "references" / chosen.dataset, referenced=not skip_references,
        )  # fmt: skip
    if json:
        print(summary.model_dump_json(indent=2))
        return
    splits = summary.records[0].scores[judged.name].splits
    title = (
        f"{chosen.name}, protocol {judged.name} ({splits} split{'s' if splits[0].isdigit() else ''}), "
        f"{seeds} seed{'s' if seeds > 1 else ''}"
    )
    print_table(summary.rows(), title)
    if chosen.published:
        print("published: " + ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in chosen.published.items()))


@command(
    EVALUATE,
    "ssge compare edges.csv --nodes nodes.csv --label type --methods ssge,cca_ssg,bgrl",
    "ssge compare edges.csv --nodes nodes.csv --labels some_labels.csv --seeds 5",
    "ssge compare imports --methods ssge,dgi --seeds 3",
    "ssge compare run1 run2 run3",
)
def compare(
    sources: list[str],
    /,
    *,
    methods: str = "ssge",
    seeds: int = 3,
    labels: Path | None = None,
    label_column: str | None = None,
    protocol: str = "quick",
    out: Path | None = None,
    skip_references: SkipReferences = False,
    threads: Threads = None,
    device: Device = "cpu",
    force: bool = False,
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
    label_column
        Column of --labels with the labels; default: one named y, label, labels or class, else the only other one.
    protocol
        How to score (ssge ls protocols); own graphs have ten random splits.
    out
        Folder for the runs; default: runs/compare/NAME. Finished ones are not run again.
    force
        Run and score everything again.
    """
    set_up(quiet, threads)
    from ssge.experiments import compare as comparing
    from ssge.experiments.protocols import PROTOCOLS
    from ssge.experiments.tables import rows
    from ssge.io.labels import read_labels
    from ssge.runs.plan import plan

    chosen = PROTOCOLS[protocol]
    runs = [Path(source) for source in sources if (Path(source) / "record.json").is_file()]
    graph, origin = _graph(sources, runs, methods, reading)
    scored = graph
    if labels is not None:
        scored = comparing.label_nodes(graph, *read_labels(labels, graph.node_ids, label=label_column))
    where = out or Path("runs") / "compare" / graph.name
    if runs:
        groups = comparing.group_runs(runs)
    else:
        plans = [plan(graph.info, name.strip(), device=device) for name in methods.split(",") if name.strip()]
        if not plans:
            raise InputError("methods must name one method at least; received none.")
        groups = {}
        for planned in plans:
            config = planned.config.model_dump(mode="json")
            kept = comparing.Kept(where / planned.method.name, origin["dataset"], graph, chosen, config, force)
            groups[planned.method.title] = kept.fit(planned, seeds, quiet, origin.get("reading"))
    if scored.labels is None:
        vectors = {
            f"{name}, {folder.path if runs else folder.path.name}": folder.read_embedding().vectors
            for name, folders in groups.items()
            for folder in folders
        }
        found = comparing.label_free_rows(vectors, graph, not skip_references)
        print_rows(found, json, f"{graph.name}: no labels")
        return
    records, first = [], next(iter(groups))
    if not skip_references:
        place = None if runs else where / "references"
        records += comparing.Kept(place, origin["dataset"], scored, chosen, {}, force).references()
    for name, folders in groups.items():
        records += comparing.score_row(name, folders, scored, chosen, force=force and not runs, keep=labels is None)
    lines, others = rows(records, chosen.name), comparing.differences(records, chosen.name, first)
    if json:
        facts = {"rows": [line._asdict() for line in lines], "first": first}
        print_json(facts | {"differences": others})
        return
    print_table(lines, f"{graph.name}, protocol {chosen.name}: {chosen.description}")
    if others:
        print(f"difference from {first}, in points ± standard error")
        print_cells(
            ("", "accuracy", "NMI"), [(one["name"], _points(one["accuracy"]), _points(one["nmi"])) for one in others]
        )


def _points(difference: tuple[float, float] | None) -> str:
    return "-" if difference is None else f"{difference[0]:+.2f} ± {difference[1]:.2f}"


def _graph(sources: list[str], runs: list[Path], methods: str, reading: Reading) -> tuple[Any, dict[str, Any]]:
    """Return the graph to compare on, and where it came from."""
    from ssge.cli.train import origin_of
    from ssge.experiments.sources import open_graph, reopen, suited_to
    from ssge.runs.folder import RunFolder

    if runs:
        if len(runs) < len(sources):
            other = next(source for source in sources if Path(source) not in runs)
            raise InputError(f"Give one graph, or folders of runs; {other} is no run.")
        folder = RunFolder(runs[0])
        return reopen(folder), {"dataset": folder.read_record().dataset}
    if len(sources) != 1:
        raise InputError(f"Give one graph, or folders of runs; received {len(sources)} graphs.")
    options = suited_to(methods.partition(",")[0], sources[0], reading.given())
    return open_graph(sources[0], options), origin_of(sources[0], options)


@command(
    EVALUATE,
    "ssge reproduce ablation --datasets cora citeseer",
    "ssge reproduce classification --methods ssge cca_ssg bgrl --seeds 3",
    "ssge reproduce all --fast --datasets cora citeseer   # under an hour on two cores",
)
def reproduce(
    what: What,
    /,
    *,
    datasets: Annotated[list[str] | None, SEVERAL] = None,
    methods: Annotated[list[str] | None, SEVERAL] = None,
    seeds: int | None = None,
    fast: bool = False,
    minutes: float | None = None,
    out: Path = Path("reproduction"),
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Reproduce a table or figure of the paper: ours beside the published, as Markdown, CSV and LaTeX or PNG and SVG.

    Finished runs are kept in the folder and not run again, so an interrupted command continues.

    Parameters
    ----------
    what
        A table: classification, clustering, efficiency, ablation. A figure: covariance, uniformity, lambda, dimension,
        augmentation. Or all.
    datasets
        Some of the paper's seven; default: all. Those that cannot be loaded are listed with the reason.
    methods
        Some of the paper's; default: all.
    seeds
        Encoder seeds; default: 10 of SSGE and 3 of other methods, or 1 if fast.
    fast
        Less thorough: one seed, few points per figure, quick probe, schedules cut to --minutes.
    minutes
        Longest training; default: 20, or 1 if fast. A longer one is a gap in the table, and cut if fast.
    out
        Folder for runs and results.
    """
    set_up(quiet, threads)
    from ssge.experiments.reproduce import EXPERIMENTS, Scope, published
    from ssge.experiments.reproduce import reproduce as carry_out
    from ssge.methods import METHODS
    from ssge.registry import Registry

    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds must be 1 or more; received {seeds}.")
    if minutes is not None and not minutes > 0:
        raise InputError(f"--minutes must be positive; received {minutes:g}.")
    known: Registry[str] = Registry("dataset of the paper")
    for name in published.DATASETS:
        known.add(name, name)
    scope = Scope(
        out,
        tuple(known[name] for name in datasets or published.DATASETS),
        tuple(METHODS.canonical(name) for name in methods or published.METHODS),
        seeds=(seeds, seeds) if seeds else (1, 1) if fast else (10, 3),
        fast=fast,
        minutes=minutes or (1.0 if fast else 20.0),
    )
    with kept_memory():
        written = carry_out(EXPERIMENTS if what == "all" else [what], scope, quiet)
    for name, paths in written.items():
        for path in paths:
            print(path)
        if not paths:
            print(f"{name}: nothing to write for these datasets")
