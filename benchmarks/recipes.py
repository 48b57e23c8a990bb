"""Recipes over several encoder seeds: tables of the README, docs/results.md, docs/speed.md and docs/baselines.md.

Writes results/recipes/<recipe>.json for each recipe whose record is missing, stale or of fewer seeds. Each run has a
process of its own, because peak memory is that of a process. Recipes of a dataset take turns, seed by seed, so that all
of them meet the same machine. Finished runs of the same code in runs/ are not run again.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import subprocess
import sys
from collections.abc import Container, Sequence
from itertools import groupby
from pathlib import Path

import pages
from pages import ROOT, table, where
from ssge.experiments.compare import Summary
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.reproduce import Scope, published, tables
from ssge.experiments.reproduce.jobs import Done
from ssge.experiments.tables import HEADINGS, Row, cells, rows
from ssge.methods import METHODS
from ssge.records import RunRecord, code_digest
from ssge.runs.recipes import Recipe, load_recipe, recipes

log = logging.getLogger(__name__)

OURS = "ssge"
GRAPHS = ("cora", "citeseer", "pubmed", "wikics", "computer", "coauthor_cs", "arxiv")
DATASETS = (*GRAPHS, "imports")
CLUSTERED = ("cora", "citeseer", "pubmed")
OVERVIEW = (*CLUSTERED, "computer", "coauthor_cs")
REFERENCES = {
    "raw features": "raw features",
    "propagated features": "propagated features, A²X",
    "mean of 8 hops": "mean of 8 hops",
    "NAFS": "NAFS",
    "spectral clustering": "spectral clustering",
    "untrained encoder": "untrained encoder",
}
"""Reference rows of the README by their names in the records, and how the README names them."""
OWN = ("blocks", "clusters")
"""Kinds of tuned recipes: other hyper-parameters than the paper's, or blocks concatenated with the learned one."""
FIGURES = (("accuracy", "encoder_std"), ("nmi", "nmi_std"), ("ari", "ari_std"))
FAMILIES = ("supervised", "traditional", "contrastive", "non-contrastive")
BOTH = ("paper", "paper-lbfgs")
RANDOM, AT_RANDOM = "random", {"afgrl", "rgrl"}
"""A further protocol for methods whose own papers split at random even where there are public splits."""


def selected(methods: Container[str], datasets: Sequence[str], published: bool) -> list[Recipe]:
    """Return the recipes to run, by dataset; of other methods' two schedules the short one, or the published one."""
    found = [load_recipe(name) for name in recipes()]
    short = {recipe.name.removesuffix("-fast") for recipe in found if recipe.name.endswith("-fast")}

    def wanted(recipe: Recipe) -> bool:
        return recipe.method == OURS or not (recipe.name.endswith("-fast") if published else recipe.name in short)

    found = [one for one in found if one.method in methods and one.dataset in datasets and wanted(one)]
    return sorted(found, key=lambda one: (datasets.index(one.dataset), one.method != OURS, one.name))


def protocols(recipe: Recipe) -> list[str]:
    """Return the protocols to score a recipe by, its own last: its summary holds the scores of all."""
    if recipe.dataset not in GRAPHS or (recipe.method == OURS and recipe.name != f"{OURS}/{recipe.dataset}"):
        return [recipe.protocol]
    names = [*([RANDOM] if recipe.method in AT_RANDOM else []), *BOTH, recipe.protocol]
    return sorted(dict.fromkeys(names), key=lambda name: name == recipe.protocol)


def folder_of(recipe: Recipe) -> Path:
    return ROOT / "runs" / code_digest(recipe.method) / recipe.name


def run(recipe: Recipe, seeds: int) -> Summary | str:
    """Run a recipe in a process of its own; return its summary, or why there is none."""
    command = [sys.executable, "-m", "ssge", "run", recipe.name, "--seeds", str(seeds), "--quiet", "--json"]
    command += ["--out", str(folder_of(recipe))]
    if recipe.name != f"{OURS}/{recipe.dataset}":
        command.append("--skip-references")  # those of the paper's recipe serve all
    for protocol in protocols(recipe):
        words = [*command, "--protocol", protocol]
        done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            return lines[-1] if lines else f"ended with code {done.returncode}"  # a killed process says nothing
    return Summary.model_validate_json(done.stdout)


def path_of(recipe: Recipe) -> Path:
    return pages.RESULTS / "recipes" / f"{recipe.name}.json"


def due(recipe: Recipe, seeds: int) -> bool:
    """Tell whether a record is missing, stale or of fewer seeds."""
    path = path_of(recipe)
    return not path.exists() or bool(pages.stale(path)) or len(own(Summary.read(path))) < seeds


def rename_protocol(recipe: Recipe) -> None:
    """Give a record the protocol that its recipe names now, if it was scored by that one as well."""
    path = path_of(recipe)
    if path.exists():
        found = Summary.read(path)
        if found.protocol.name != recipe.protocol and all(recipe.protocol in one.scores for one in found.records):
            found.model_copy(update={"recipe": recipe, "protocol": PROTOCOLS[recipe.protocol]}).write(path)


def measure(chosen: Sequence[Recipe], seeds: int, in_turn: bool = True) -> dict[str, str]:
    """Run recipes seed by seed in turn, or one after the other; write their records; return which failed and why."""
    failed: dict[str, str] = {}
    for count in range(1 if in_turn else seeds, seeds + 1):
        for recipe in chosen:
            if recipe.name in failed:
                continue
            log.info("%s, seed %s", recipe.name, count - 1 if in_turn else f"0-{count - 1}")
            summary = run(recipe, count)
            if isinstance(summary, str):
                log.warning("%s failed: %s", recipe.name, summary)
                failed[recipe.name] = summary
            elif count == seeds:
                path_of(recipe).parent.mkdir(parents=True, exist_ok=True)
                summary.write(path_of(recipe))
    return failed


def own(summary: Summary) -> list[RunRecord]:
    """Return the runs of the recipe, without reference rows."""
    return [record for record in summary.records if record.recipe is not None]


def overview(summaries: Sequence[Summary]) -> str:
    """Return accuracy and NMI of SSGE beside references and published figures, one column per graph with a record."""
    named = {one.recipe.name: one for one in summaries}
    found = {name: named[f"{OURS}/{name}"] for name in OVERVIEW if f"{OURS}/{name}" in named}
    if not found:
        return ""
    lines = [[title, *(_reference(one, name) for one in found.values())] for name, title in REFERENCES.items()]
    lines.append(["SSGE", *(_both(rows(own(one), one.protocol.name)[0]) for one in found.values())])
    blocks = [named.get(f"{OURS}/{name}-blocks") for name in found]
    lines.append(["SSGE, tuned recipes", *(_both(rows(own(b), b.protocol.name)[0]) if b else "-" for b in blocks)])
    lines.append(["published", *(_published(one) for one in found.values())])
    lines = [cells for cells in lines if set(cells[1:]) != {"-"}]
    seeds = sorted({len(own(one)) for one in found.values()})
    number = "-".join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))
    notes = {f"Protocol `{one.protocol.name}`, {where(own(one)[-1])}." for one in found.values()}
    text = [f"Accuracy % / NMI %, means over {number} encoder seeds; ± is the standard deviation over seeds."]
    text += sorted(notes)
    if missing := [name for name in OVERVIEW if name not in found]:
        text.append(f"No record yet: {', '.join(missing)}.")
    return table(("", *found), lines) + "\n" + "\n".join(text) + "\n"


def _reference(summary: Summary, name: str) -> str:
    some = [record for record in summary.records if record.recipe is None and record.method == name]
    return _both(rows(some, summary.protocol.name)[0]) if some else "-"


def _both(row: Row) -> str:
    std = f" ± {row.encoder_std:.1f}" if row.seeds > 1 else ""
    return ("-" if row.accuracy is None else f"{row.accuracy:.1f}{std}") + f" / {row.nmi:.1f}"


def _published(summary: Summary) -> str:
    accuracy, std, nmi = (summary.recipe.published.get(key) for key in ("accuracy", "accuracy_deviation", "nmi"))
    if accuracy is None:
        return "-"
    return (
        f"{accuracy:.1f}" + (f" ± {std:.1f}" if std is not None else "") + f" / {'-' if nmi is None else f'{nmi:.1f}'}"
    )


def of_our_own(summaries: Sequence[Summary]) -> str:
    """Return tuned recipes beside those of the paper and the published figures; empty without records."""
    named = {one.recipe.name: one for one in summaries if one.recipe.method == OURS}
    lines, notes = [], set()
    for dataset in GRAPHS:
        paper = named.get(f"{OURS}/{dataset}")
        for one in (named[name] for kind in OWN if (name := f"{OURS}/{dataset}-{kind}") in named):
            found = [rows(own(run), run.protocol.name)[0] if run else None for run in (one, paper)]
            cells = [over_seeds(row, *pair) if row else "-" for pair in FIGURES for row in found]
            published = [one.recipe.published.get(key) for key in ("accuracy", "nmi", "ari")]
            last = ["-" if figure is None else f"{figure:g}" for figure in published]
            lines.append(
                [one.recipe.name, str(len(own(one))), *cells[:2], last[0], *cells[2:4], last[1], *cells[4:], last[2]]
            )
            notes.add(f"Protocol `{one.protocol.name}`, {where(own(one)[-1])}.")
    each = ("tuned recipe", "the paper's recipe", "published")
    headings = ("", "seeds", *(f"{figure}, {kind}" for figure in ("accuracy %", "NMI %", "ARI %") for kind in each))
    return table(headings, lines) + "\n" + "\n".join(sorted(notes)) + "\n" if lines else ""


def results(summaries: Sequence[Summary]) -> str:
    """Return a table for each recipe of SSGE with the paper's settings."""
    ours = [one for one in summaries if one.recipe.name == f"{OURS}/{one.recipe.dataset}"]
    return "\n".join(map(result, sorted(ours, key=lambda one: (DATASETS.index(one.recipe.dataset), one.recipe.name))))


def result(summary: Summary) -> str:
    """Return one recipe's table, headed by protocol, splits, seeds and machine."""
    runs, published = own(summary), summary.recipe.published
    lines = [cells(row) for row in summary.rows()]
    if published:
        figures = [published.get(key) for key in ("accuracy", "accuracy_deviation", "nmi", "ari")]
        accuracy, deviation, nmi, ari = ("-" if figure is None else f"{figure:g}" for figure in figures)
        lines.append(("published", accuracy, deviation, "-", nmi, ari, "-", "-"))
    name, protocol = summary.recipe.name.split("/")[-1], summary.protocol.name
    splits = runs[-1].scores[protocol].splits
    head = f"**{name}**: protocol `{protocol}` ({splits}), encoder seeds 0-{len(runs) - 1}, {where(runs[-1])}"
    return f"{head}\n\n{table(HEADINGS, lines)}"


def fast(summaries: Sequence[Summary]) -> str:
    """Return fast recipes of SSGE beside those of the paper; empty if there is no pair."""
    named = {one.recipe.name: one for one in summaries if one.recipe.method == OURS}
    pairs = {name: (named[f"{OURS}/{name}"], named[f"{OURS}/{name}-fast"]) for name in GRAPHS
             if {f"{OURS}/{name}", f"{OURS}/{name}-fast"} <= set(named)}  # fmt: skip
    if not pairs:
        return ""
    headings = (
        "graph", "epochs, learning rate, λ (, batch)", "fast", "accuracy %", "fast", "difference ± its standard error",
        "NMI %", "fast", "time, fast / paper",
    )  # fmt: skip
    lines = []
    for name, both in pairs.items():
        paper, short = (rows(own(one), one.protocol.name)[0] for one in both)
        schedule = ("epochs", "lr", "uniformity_weight", "batch_nodes")
        settings = [", ".join(f"{own(one)[0].config[k]:g}" for k in schedule if own(one)[0].config[k]) for one in both]
        accuracy = [f"{row.accuracy:.2f} ± {row.encoder_std:.2f}" for row in (paper, short)]
        error = sum(row.encoder_std**2 / row.seeds for row in (paper, short)) ** 0.5
        difference = f"{(short.accuracy or 0) - (paper.accuracy or 0):+.2f} ± {error:.2f}"
        time = (short.seconds or 0) / (paper.seconds or 1)
        nmi = [f"{row.nmi:.1f}" for row in (paper, short)]
        lines.append([name, *settings, *accuracy, difference, *nmi, f"{time:.2f}"])
    notes = {f"Protocol `{two.protocol.name}`, {len(own(two))} encoder seeds, {where(own(two)[-1])}."
             for _, two in pairs.values()}  # fmt: skip
    return table(headings, lines) + "\n" + "\n".join(sorted(notes)) + "\n"


def classification(summaries: Sequence[Summary]) -> str:
    """Return the paper's classification table, made of the records."""
    return tables.classification(*_reproduced(summaries, OVERVIEW)).markdown(heading=False)


def clustering(summaries: Sequence[Summary]) -> str:
    """Return the paper's clustering table, made of the records."""
    return tables.clustering(*_reproduced(summaries, CLUSTERED)).markdown(heading=False)


def _reproduced(summaries: Sequence[Summary], datasets: tuple[str, ...]) -> tuple[Scope, Done]:
    """Return the scope and the finished jobs of ``ssge reproduce``, with the records in place of its runs."""
    scope = Scope(ROOT, datasets, published.METHODS)
    named = {one.recipe.name: one for one in summaries}
    jobs = tables.compared(scope, published.METHODS, datasets).values()
    return scope, Done({job: named[job.recipe] for job in jobs if job.recipe in named})


def baselines(summaries: Sequence[Summary]) -> str:
    """Return the page of all methods, one section for each dataset."""

    def place(summary: Summary) -> tuple[int, bool, str]:
        cls = METHODS[summary.recipe.method]
        return FAMILIES.index(cls.family), cls.name == OURS, cls.title  # our own method last

    parts = []
    for dataset in GRAPHS:
        some = [one for one in summaries if one.recipe.dataset == dataset]
        some = [one for one in some if one.recipe.method != OURS or one.recipe.name == f"{OURS}/{dataset}"]
        if some:
            parts.append(section(dataset, sorted(some, key=place)))
    return "\n\n".join(parts) + "\n"


def section(dataset: str, summaries: Sequence[Summary]) -> str:
    """Return the section of one dataset: what its figures rest on, the table, and notes."""
    rest = [run for one in summaries if one.recipe.method == OURS for run in one.records if run.recipe is None]
    references = [line(list(found), None) for _, found in groupby(rest, key=lambda run: run.method)]
    lines = references + [line(own(one), one) for one in summaries]
    headings = (
        "", "family", "accuracy %", "accuracy %, penalty chosen", "NMI %", "ARI %", "parameters", "train s", "peak MB",
        "published accuracy %", "recipe",
    )  # fmt: skip
    basis = sorted({f"- {basis_of(one)}" for one in summaries})
    body = ["\n".join(basis), table(headings, lines, (0, 1, 10)).rstrip("\n"), *by_own_probe(summaries)]
    body += at_random(summaries)
    return "\n\n".join([f"## {dataset}", *body])


def line(records: list[RunRecord], summary: Summary | None) -> list[str]:
    """Return one line of a table; without a summary it is that of a reference row."""
    scored = {name: rows(records, name)[0] for name in BOTH if all(name in one.scores for one in records)}
    row = next(iter(scored.values()))
    name = "untrained SSGE encoder" if row.name == "untrained encoder" else row.name
    cls = None if summary is None else METHODS[summary.recipe.method]
    accuracy = [over_seeds(scored[name], "accuracy", "encoder_std") if name in scored else "-" for name in BOTH]
    clusters = [over_seeds(row, "nmi", "nmi_std"), over_seeds(row, "ari", "ari_std")]
    found = [name, cls.family if cls else "reference", *accuracy, *clusters]
    if summary is None:
        return found + ["-"] * 5
    published, deviation = (summary.recipe.published.get(key) for key in ("accuracy", "accuracy_deviation"))
    return [
        *found,
        f"{records[0].parameters:,}",
        f"{row.seconds or 0:.1f}",
        f"{max(record.peak_memory_mb for record in records):,.0f}",
        "-" if published is None else f"{published:g}" + (f" ± {deviation:g}" if deviation is not None else ""),
        f"`{summary.recipe.name}`",
    ]


def over_seeds(row: Row, mean: str, std: str) -> str:
    """Return a figure with its deviation over encoder seeds, if there are several."""
    if getattr(row, mean) is None:
        return "-"
    return f"{getattr(row, mean):.2f}" + (f" ± {getattr(row, std):.2f}" if row.seeds > 1 else "")


def by_own_probe(summaries: Sequence[Summary]) -> list[str]:
    """Return what methods reach by the probe of their own papers, in one sentence, if it has no column."""
    some = [one for one in summaries if one.protocol.name not in BOTH]
    found = [(rows(own(one), one.protocol.name)[0], one.protocol.name) for one in some]
    figures = [f"{row.name} {over_seeds(row, 'accuracy', 'encoder_std')} (`{name}`)" for row, name in found]
    return [f"By the probe of their own papers: {', '.join(figures)}."] if figures else []


def at_random(summaries: Sequence[Summary]) -> list[str]:
    """Return what methods whose papers split at random reach so, in one sentence, if the others have public splits."""
    found = []
    for records in map(own, summaries):
        if all(RANDOM in r.scores and r.scores[RANDOM].splits != r.scores[BOTH[0]].splits for r in records):
            (row,) = rows(records, RANDOM)
            found.append(f"{row.name} {over_seeds(row, 'accuracy', 'encoder_std')}")
    sentence = f"On ten random splits (protocol `{RANDOM}`), as their own papers split: {', '.join(found)}."
    return [sentence] if found else []


def basis_of(summary: Summary) -> str:
    """Say on which splits, with how many seeds and on what the figures of a summary were made."""
    runs = own(summary)
    splits = runs[-1].scores[summary.protocol.name].splits
    splits = f"One split per seed ({splits}), for training and scoring" if runs[-1].splits else f"Splits: {splits}"
    return f"{splits}; encoder seeds 0-{len(runs) - 1}; {where(runs[-1])}."


def main() -> int:
    every = sorted({load_recipe(name).method for name in recipes()})
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=every, choices=every)
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--recipes", nargs="+", help="these alone")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--published", action="store_true", help="published schedules even where a -fast recipe exists")
    parser.add_argument("--force", action="store_true", help="run again what is there")
    parser.add_argument("--one-by-one", action="store_true", help="all seeds of a recipe in one process")
    options = parser.parse_args()
    chosen = selected(options.methods, options.datasets, options.published)
    if options.recipes:
        chosen = [load_recipe(name) for name in options.recipes]
    failed: dict[str, str] = {}
    for dataset in options.datasets:
        some = [one for one in chosen if one.dataset == dataset]
        for recipe in some:
            rename_protocol(recipe)
        some = [one for one in some if options.force or due(one, options.seeds)]
        for recipe in some if options.force else ():
            shutil.rmtree(folder_of(recipe), ignore_errors=True)
        failed |= measure(some, options.seeds, not options.one_by_one)
        pages.renew(pages.group_of("recipes"))
    for name, reason in failed.items():
        log.warning("not run, %s: %s", name, reason)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
