"""Commands that judge: evaluate, run."""

from pathlib import Path
from typing import Any

from ssge.cli.options import JUDGE, Device, Json, Quiet, SkipReferences, Switch, Threads, command, given, set_up
from ssge.terminal import print_cells, print_json, print_table


@command(JUDGE, "ssge evaluate run", "ssge evaluate run --protocol released-code --json")
def evaluate(
    run: Path,
    /,
    *,
    protocol: str = "paper",
    skip_references: SkipReferences = False,
    threads: Threads = None,
    force: Switch = False,
    json: Json = False,
) -> None:
    """Score the embedding of a finished run: linear probe, clustering, geometry.

    The scores are kept in the run's record.json. The table has reference rows beside the run: what it does not beat
    needs no training. A graph without labels gets label-free figures. --json prints the run alone.

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
    from ssge.experiments.compare import score
    from ssge.experiments.own import LABEL_FREE, label_free, label_free_references, label_free_rows, references_of
    from ssge.experiments.protocols import PROTOCOLS
    from ssge.experiments.sources import reopen
    from ssge.experiments.tables import row
    from ssge.runs.folder import RunFolder

    chosen = PROTOCOLS[protocol]
    folder = RunFolder(run)
    record = folder.read_record()
    graph = reopen(folder)
    name = f"{record.method} on {record.dataset}"
    if graph.labels is None:
        vectors = folder.read_embedding().vectors
        if json:
            print_json(label_free(vectors, graph))
            return
        beside = {} if skip_references else label_free_references(graph)
        print_cells(LABEL_FREE, label_free_rows(beside | {name: vectors}, graph), "no labels: label-free figures")
        print("Training has seen the edges: these figures describe, they do not test. ssge links holds edges out.")
        return
    record = score(folder, graph, chosen, force)
    scores = record.scores[chosen.name]
    if json:
        print(scores.model_dump_json(indent=2))
        return
    by = f"its own class scores, {scores.splits}" if record.splits else chosen.description
    beside_rows = [] if skip_references else references_of(graph, chosen, record.dataset)
    print_table([*beside_rows, row(name, [scores])], f"{chosen.name}: {by}")


@command(
    JUDGE,
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
    force: Switch = False,
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
    from ssge.cli.train import check_settings
    from ssge.datasets import load
    from ssge.experiments.compare import compare
    from ssge.experiments.protocols import PROTOCOLS
    from ssge.runs.recipes import load_recipe
    from ssge.training.allocator import kept_memory

    chosen = load_recipe(recipe)
    check_settings(chosen.method, settings)
    judged = PROTOCOLS[protocol or chosen.protocol]
    with kept_memory():
        summary = compare(
            chosen, load(chosen.dataset), judged, seeds, out or Path("runs") / chosen.name, settings=given(settings),
            references=None if out else Path("runs") / "references" / chosen.dataset, referenced=not skip_references,
            device=device, force=force, quiet=quiet,
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
