"""Every method on every benchmark graph at hand, under one protocol, in one page.

Runs each method's recipe in a process of its own, because peak memory is that of a process, keeps the summaries in
``results/baselines/<method>-<dataset>.json`` and writes docs/baselines.md from them. What is there is not run again; a
run that fails is recorded, named in the page, and tried again next time. With ``--table-only`` nothing is run.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

from ssge.datasets import DATASETS
from ssge.errors import UnknownNameError
from ssge.experiments.compare import Summary
from ssge.experiments.recipes import load_recipe, recipes
from ssge.experiments.tables import Row, rows
from ssge.files import atomic
from ssge.methods import METHODS
from ssge.records import RunRecord

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "baselines"
TABLES = ROOT / "results" / "paper"
FAILURES = RESULTS / "failures.json"
PAGE = ROOT / "docs" / "baselines.md"
GRAPHS = ("cora", "citeseer", "pubmed", "wikics", "computer", "coauthor_cs", "arxiv")
FAMILIES = ("supervised", "traditional", "contrastive", "non-contrastive")
REFERENCE = "ssge"
"""The method whose summary keeps the reference rows, and whose encoder is the untrained one of the page."""
IN_TIME = {"ssge"}
"""Methods whose published schedules are short: a ``-fast`` recipe of theirs is another thing, not a way out."""
PROTOCOLS = ("paper-lbfgs", "paper")
"""Runs are scored by both, in this order: the second one's summary holds the scores of both."""
RANDOM, AT_RANDOM = "random", {"afgrl", "rgrl"}
"""A further protocol for methods whose own papers split at random even where there are public splits."""
HEADINGS = (
    "", "family", "accuracy %", "accuracy %, penalty chosen", "NMI %", "ARI %", "parameters", "train s", "peak MB",
    "published accuracy %", "recipe",
)  # fmt: skip
SUPERVISED = (
    "Supervised methods have seen the labels of the training nodes and are scored by their own class scores, each seed "
    "on one split; GAT keeps the epoch that validation nodes choose, as its recipes say. Their NMI and ARI are those "
    "of k-means on class scores, not of an unsupervised clustering."
)
CLUSTERING = "Spectral clustering gives clusters alone, so it has no accuracy."


def chosen(method: str, dataset: str, published: bool) -> str | None:
    """Return the recipe to run: the shortened one where the published schedule is too long, else the published."""
    name, fast = f"{method}/{dataset}", f"{method}/{dataset}-fast"
    if fast in recipes() and method not in IN_TIME and not published:
        return fast
    return name if name in recipes() else None


def small(summary: Summary) -> Summary:
    """Return a summary without what others hold too: only one method's keeps the reference rows."""
    if summary.recipe.method == REFERENCE:
        return summary
    own = [record for record in summary.records if record.recipe is not None]
    return summary.model_copy(update={"records": own})


def measure(recipe: str, seeds: int, force: bool) -> Summary | str:
    """Run a recipe in a process of its own; return its summary, or why there is none."""
    command = [sys.executable, "-m", "ssge", "run", recipe, "--seeds", str(seeds), "--quiet", "--json"]
    command += [] if recipe.startswith(f"{REFERENCE}/") else ["--skip-references"]  # the page has those of one method
    protocols = (RANDOM, *PROTOCOLS) if recipe.partition("/")[0] in AT_RANDOM else PROTOCOLS
    for protocol in protocols:
        again = ["--force"] if force and protocol == protocols[0] else []
        words = [*command, "--protocol", protocol, *again]
        done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            return lines[-1] if lines else f"ended with code {done.returncode}"  # a killed process says nothing
    return Summary.model_validate_json(done.stdout)


def run(
    datasets: Iterable[str], methods: Sequence[str], seeds: int, *, force: bool = False, published: bool = False
) -> None:
    """Run what is not there yet, one comparison after another; the page is renewed after each."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for dataset, method in product(datasets, methods):
        recipe, path = chosen(method, dataset, published), RESULTS / f"{method}-{dataset}.json"
        if recipe is None or (path.exists() and not force):
            continue
        log.info("%s, %d seeds", recipe, seeds)
        found, failures = measure(recipe, seeds, force), read_failures()
        if isinstance(found, Summary):
            small(found).write(path)
            failures.pop(recipe, None)
        else:
            log.warning("%s failed: %s", recipe, found)
            failures[recipe] = found
        with atomic(FAILURES) as temporary:
            temporary.write_text(json.dumps(failures, indent=1, sort_keys=True) + "\n")
        renew()


def read_failures() -> dict[str, str]:
    """Return why runs failed, by recipe."""
    found: dict[str, str] = json.loads(FAILURES.read_text()) if FAILURES.exists() else {}
    return found


def read_summaries() -> list[Summary]:
    """Return all summaries that are there, by family, then by title; SSGE's own table stands in where none is here."""
    found = [Summary.read(path) for path in RESULTS.glob("*-*.json")]
    own = {summary.recipe.dataset for summary in found if summary.recipe.method == REFERENCE}
    found += [Summary.read(path) for name in GRAPHS if name not in own and (path := TABLES / f"{name}.json").exists()]

    def place(summary: Summary) -> tuple[int, bool, str]:
        cls = METHODS[summary.recipe.method]
        family = FAMILIES.index(cls.family) if cls.family in FAMILIES else len(FAMILIES)
        return family, cls.name == REFERENCE, cls.title  # our own method last

    return sorted(found, key=place)


def line(row: Row, summary: Summary, own: bool) -> str:
    """Return one line of a table; ``own`` if it is the summary's method and not a reference row."""
    records = [record for record in summary.records if record.method == row.name]
    cls, recipe = METHODS[summary.recipe.method], summary.recipe
    name = "untrained SSGE encoder" if row.name == "untrained encoder" else row.name
    cells = [
        name,
        cls.family if own else "reference",
        "-" if row.accuracy is None else spread(row.accuracy, row.encoder_std, row.seeds),
        with_penalty_chosen(row, records),
        spread(row.nmi, row.nmi_std, row.seeds),
        spread(row.ari, row.ari_std, row.seeds),
    ]
    if own:
        published, deviation = recipe.published.get("accuracy"), recipe.published.get("accuracy_deviation")
        cells += [
            f"{records[0].parameters:,}",
            f"{row.seconds or 0:.1f}",
            f"{max(record.peak_memory_mb for record in records):,.0f}",
            "-" if published is None else f"{published:g}" + (f" ± {deviation:g}" if deviation is not None else ""),
            f"`{recipe.name}`",
        ]
    else:
        cells += ["-"] * 5
    return "| " + " | ".join(cells) + " |"


def with_penalty_chosen(row: Row, records: Sequence[RunRecord]) -> str:
    """Return the accuracy of the same runs by the other probe."""
    if row.accuracy is None or any(PROTOCOLS[0] not in record.scores for record in records):
        return "-"
    (other,) = rows(records, PROTOCOLS[0])
    assert other.accuracy is not None
    return spread(other.accuracy, other.encoder_std, other.seeds)


def spread(mean: float, deviation: float, seeds: int) -> str:
    """Return a figure with its deviation over encoder seeds, if there are several."""
    return f"{mean:.2f}" + (f" ± {deviation:.2f}" if seeds > 1 else "")


def table(dataset: str, summaries: Sequence[Summary], failures: dict[str, str]) -> str:
    """Return the section of one dataset: what its figures rest on, the table, and notes."""
    references = [
        (row, summary)
        for summary in summaries
        if summary.recipe.method == REFERENCE
        for row in summary.rows()
        if row.name != title(summary)
    ]
    own = [(row, summary) for summary in summaries for row in summary.rows() if row.name == title(summary)]
    lines = [line(row, summary, False) for row, summary in references] + [line(*pair, True) for pair in own]
    notes = [f"Not run, `{recipe}`: {reason}" for recipe, reason in sorted(failures.items())]
    notes += at_random([summary for _, summary in own])
    notes += [SUPERVISED] if any(METHODS[summary.recipe.method].supervised for summary in summaries) else []
    notes += [CLUSTERING] if any(row.accuracy is None for row, _ in references) else []
    head = ["| " + " | ".join(HEADINGS) + " |", "| --- | --- |" + " ---: |" * 8 + " --- |"]
    basis = sorted({basis_of(summary) for summary in summaries})
    parts = ["\n".join(basis), "\n".join([*head, *lines]) if lines else "", *notes]
    return "\n\n".join([f"## {dataset}", *(part for part in parts if part)])


def at_random(summaries: Sequence[Summary]) -> list[str]:
    """Return what methods whose papers split at random reach so, in one sentence, if the others have public splits."""
    found = []
    for summary in summaries:
        records = [record for record in summary.records if record.method == title(summary)]
        if all(RANDOM in r.scores and r.scores[RANDOM].splits != r.scores[PROTOCOLS[1]].splits for r in records):
            (row,) = rows(records, RANDOM)
            assert row.accuracy is not None
            found.append(f"{row.name} {spread(row.accuracy, row.encoder_std, row.seeds)}")
    sentence = f"On ten random splits (protocol `{RANDOM}`), as their own papers split: {', '.join(found)}."
    return [sentence] if found else []


def title(summary: Summary) -> str:
    """Return the name of the summary's own row."""
    return METHODS[summary.recipe.method].title


def basis_of(summary: Summary) -> str:
    """Say under which protocol, with how many seeds and on what the figures of a summary were made."""
    records = [record for record in summary.records if record.method == title(summary)]
    last, protocol = records[-1], summary.protocol
    splits = "trained and scored on one split per seed" if last.splits else last.scores[protocol.name].splits
    return (
        f"- Protocol `{protocol.name}` ({splits}), encoder seeds 0-{len(records) - 1}, threads: {last.threads}, "
        f"{last.machine['cores']} cores of {last.machine['processor']}, torch {last.machine['torch']}."
    )


def page(summaries: Sequence[Summary], failures: dict[str, str]) -> str:
    """Return the page of all datasets that have a summary or a failure."""
    parts = [HEAD]
    for dataset in [name for name in GRAPHS if name in DATASETS]:
        some = [summary for summary in summaries if summary.recipe.dataset == dataset]
        failed = {key: reason for key, reason in failures.items() if key.split("/")[1].removesuffix("-fast") == dataset}
        if some or failed:
            parts.append(table(dataset, some, failed))
    return "\n\n".join(parts) + "\n"


HEAD = """# Baselines

Every method on the benchmark graphs, each by its own recipe, all scored alike; written by `make baselines` from
the records in `results/baselines/`.

Accuracy is that of a linear probe on frozen embeddings: first that of the SSGE paper (protocol `paper`), whose steps
and penalty were tuned for embeddings as small as SSGE's own; then logistic regression to convergence with the penalty
chosen on validation nodes (`paper-lbfgs`), which does not depend on scale and is near to what the papers of BGRL and
G-BT use; their recipes name it. NMI and ARI are those of k-means on rows of unit norm. All are per cent; ± is the
deviation over encoder seeds, each a training of its own. Seconds are those of one training, no benchmark: other work
may have run beside it. Peak memory is that of the process that trained, libraries and graph included. The published
accuracy is the one that the SSGE paper prints for the method, often taken over from earlier papers with other splits
and probes. Where a published schedule is too long for this machine, a shortened recipe was run: its name ends in
`-fast`."""


def renew() -> None:
    """Write the page from the summaries that are there."""
    with atomic(PAGE) as temporary:
        temporary.write_text(page(read_summaries(), read_failures()))


def known(kind: str, names: Sequence[str], allowed: Sequence[str]) -> Sequence[str]:
    """Return the names, all of which must be allowed."""
    for name in names:
        if name not in allowed:
            raise UnknownNameError(kind, name, allowed)
    return names


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=GRAPHS)
    parser.add_argument("--methods", nargs="+", default=None, help="default: all that have recipes, SSGE first")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--published", action="store_true", help="published schedules even where a -fast recipe exists")
    parser.add_argument("--force", action="store_true", help="run again what is there")
    parser.add_argument("--table-only", action="store_true", help="make the page from the records, run nothing")
    options = parser.parse_args()
    if not options.table_only:
        every = sorted({load_recipe(name).method for name in recipes()}, key=lambda name: (name != REFERENCE, name))
        run(
            known("dataset", options.datasets, GRAPHS),
            known("method", options.methods or every, every),
            options.seeds,
            force=options.force,
            published=options.published,
        )
    renew()
