"""Which script writes which records, and which page is made of which records.

    python benchmarks/pages.py            renew all pages from the records; nothing is computed
    python benchmarks/pages.py --stale    list the records that the code, recipes and settings of today do not give
    python benchmarks/pages.py --list     list scripts, records and pages

A record is a `Summary` of runs or, for everything else, a `Record`. Both hold date, commit, machine and a digest of the
code that decided the figures.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from ssge.evaluation import mean_std
from ssge.experiments.compare import Summary
from ssge.experiments.protocols import PROTOCOLS, Protocol
from ssge.files import atomic
from ssge.records import BLOCKS, RunRecord, code_digest, commit, digest_of, machine, meaning
from ssge.runs.plan import resolve_config
from ssge.runs.recipes import Recipe, load_recipe, recipes

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
TRAINING = ("training.trainer", "evaluation", "methods.ssge")
DEFAULT = (*TRAINING, BLOCKS)
EFFICIENCY = ("methods.dgi", "methods.mvgrl", "methods.grace", "methods.homogcl")


class Page(NamedTuple):
    """A file, or the part of it between ``<!-- block: begin -->`` and ``end``, and the function that makes it."""

    path: str
    block: str | None
    make: str


class Group(NamedTuple):
    """Records of one script (a pattern below ``results``), the modules that decide them, and their pages.

    Summaries need no modules: each of their runs names the code of its own method. Only scripts that embed with the
    default name the module of its blocks.
    """

    script: str
    records: str
    code: tuple[str, ...] = ()
    pages: tuple[Page, ...] = ()


GROUPS = (
    Group("recipes", "recipes/*/*.json", (), (
        Page("README.md", "summary", "overview"),
        Page("docs/results.md", "results", "results"),
        Page("docs/results.md", "own", "of_our_own"),
        Page("docs/reproduce.md", "classification", "classification"),
        Page("docs/reproduce.md", "clustering", "clustering"),
        Page("docs/speed.md", "fast", "fast"),
        Page("docs/baselines.md", "baselines", "baselines"),
    )),
    Group("gaps", "gaps.json", ("training.trainer", "runs.estimate"), (Page("docs/reproduce.md", "gaps", "block"),)),
    Group("quality", "quality.json", (*DEFAULT, "experiments.references"), (
        Page("docs/quality.md", "tables", "block"),
        Page("README.md", "quality", "sentence"),
    )),
    Group("selection", "selection.json", DEFAULT, (Page("docs/selection.md", "tables", "block"),)),
    Group("clusters", "clusters.json", TRAINING, (Page("docs/clustering.md", "clusters", "block"),)),
    Group("bias", "bias.json", TRAINING, (Page("docs/clustering.md", "bias", "block"),)),
    Group("eigenvalue_floor", "eigenvalue_floor.json", TRAINING),
    Group("unseen_nodes", "unseen_nodes.json", TRAINING, (Page("docs/own-graph.md", "new nodes", "block"),)),
    Group("links", "links.json", (*DEFAULT, "tasks.links"), (Page("docs/links.md", "table", "block"),)),
    Group("outliers", "outliers.json", (*TRAINING, "tasks.outliers")),
    Group("speed", "speed.json", TRAINING, (
        Page("docs/speed.md", "speed", "block"),
        Page("README.md", "speed", "sentence"),
    )),
    Group("precision", "precision.json", TRAINING, (Page("docs/speed.md", "precision", "block"),)),
    Group("training_time", "training_time.json", TRAINING, (Page("docs/speed.md", "training time", "block"),)),
    Group("scaling", "scaling.json", TRAINING, (Page("docs/scaling.png", None, "block"),)),
    Group("family", "family.json", (*TRAINING, "methods.cca_ssg", "methods.g_bt")),
    Group("efficiency", "efficiency.json", (*TRAINING, *EFFICIENCY), (
        Page("docs/baselines.md", "efficiency", "block"),
    )),
    Group("claims", "claims.json", TRAINING, (
        Page("docs/claims.md", "table", "block"),
        Page("docs/lambda.png", None, "over_lambda"),
        Page("docs/dimension.png", None, "over_dimension"),
        Page("docs/augmentation.png", None, "over_augmentation"),
    )),
    Group("walks", "walks.json", ("ops.walks",)),
    Group("scale", "scale.json", (*TRAINING, "io.convert"), (
        Page("docs/scale.md", "scale", "block"),
        Page("docs/scale.md", "simulation", "simulated"),
    )),
    Group("reading", "reading.json", ("io.reading",)),
    Group("ranks", "ranks.json", (*TRAINING, "ops.collective", "ops.sharded"), (
        Page("docs/distributed.md", "ranks", "block"),
    )),
    Group("sampled", "sampled.json", (*TRAINING, "ops.neighbor_sampling"), (
        Page("docs/distributed.md", "sampled", "block"),
    )),
    Group("sampled_memory", "sampled_memory.json", (*TRAINING, "ops.neighbor_sampling"), (
        Page("docs/distributed.md", "sampled memory", "block"),
    )),
    Group("sampling", "sampling.json", ("ops.neighbor_sampling",), (
        Page("docs/distributed.md", "sampling", "block"),
    )),
    Group("scoring", "scoring.json", ("evaluation", "experiments.protocols"), (
        Page("docs/speed.md", "scoring", "block"),
    )),
)  # fmt: skip


WRITERS = {"table", *(page.make for group in GROUPS for page in group.pages)}
"""Functions of scripts that only write pages."""


class Record(BaseModel):
    """Figures that are not those of single runs, and what they rest on.

    Attributes
    ----------
    settings
        Resolved settings of the recipes that were run, by name.
    code
        Digests of the script and of the package's modules behind it.
    """

    model_config = ConfigDict(extra="forbid")

    date: str = ""
    commit: str = ""
    code: dict[str, str] = {}
    machine: dict[str, str] = {}
    threads: int | None = None
    settings: dict[str, dict[str, Any]] = {}
    figures: Any


def group_of(script: str) -> Group:
    """Return the group of a script."""
    return next(group for group in GROUPS if group.script == script)


def write(script: str, figures: Any, used: Iterable[str] = (), out: Path | None = None) -> None:
    """Write the record of a script with its stamp and renew its pages; with ``out``, write that file alone."""
    import torch

    group = group_of(script)
    record = Record(
        date=datetime.now(UTC).isoformat(timespec="seconds"), commit=commit(), code=code_of(group), machine=machine(),
        threads=torch.get_num_threads(), settings={name: settings_of(load_recipe(name)) for name in used},
        figures=figures,
    )  # fmt: skip
    with atomic(out or RESULTS / group.records) as temporary:
        temporary.write_text(record.model_dump_json(indent=1) + "\n")
    if out is None:
        renew(group)


def read(path: Path) -> Record | Summary:
    """Read a record of either kind."""
    text = path.read_text()
    return (Summary if "recipe" in json.loads(text) else Record).model_validate_json(text)


def figures_of(script: str) -> Any:
    """Return the figures that a script wrote before, if its code and settings are still those; else an empty dict."""
    path = RESULTS / group_of(script).records
    if not path.exists() or stale(path):
        return {}
    record = read(path)
    assert isinstance(record, Record)
    return record.figures


def code_of(group: Group) -> dict[str, str]:
    """Return the digests of a group's script and of the package's modules behind it."""
    code = digest_of(*group.code, without="" if BLOCKS in group.code else BLOCKS)
    return {f"benchmarks/{group.script}.py": _script_digest(group.script), "ssge": code}


def _script_digest(script: str) -> str:
    """Return a digest of a script and of those that it imports, without the functions that only write tables."""
    waiting, seen = [script], dict[str, str]()
    while waiting:
        name = waiting.pop()
        path = Path(__file__).with_name(f"{name}.py")
        if name in seen or name == "pages" or not path.exists():
            continue
        tree = meaning(path.read_text("utf-8"))
        tree.body = [one for one in tree.body if getattr(one, "name", "") not in WRITERS]
        seen[name] = ast.dump(tree)
        waiting += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return hashlib.sha256(str(sorted(seen.items())).encode()).hexdigest()[:16]


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """Return all settings of a recipe as a record holds them."""
    return resolve_config(recipe.method, recipe.config).model_dump(mode="json")


def stale(path: Path) -> list[str]:
    """Return what differs between a record and the code, recipes and settings of today."""
    found = read(path)
    if isinstance(found, Summary):
        runs = [(run, found.recipe.method if run.recipe else run.method) for run in found.records]
        today = all(run.code == code_digest(name, run.config) for run, name in runs)
        changed = [] if today else [_since(found.records[-1].code)]
    else:
        now = code_of(next(group for group in GROUPS if path in RESULTS.glob(group.records)))
        changed = [_since(found.code.get(name, ""), name) for name, one in now.items() if found.code.get(name) != one]
    return list(dict.fromkeys([*differences(found), *changed]))


def _since(code: str, name: str = "ssge") -> str:
    return f"code of {name} has changed" if code else f"code of {name} is unknown: the record has no digest"


def differences(found: Record | Summary) -> list[str]:
    """Return what differs between settings and protocol of a record and those of its recipes as they are now."""
    if isinstance(found, Summary):
        return list(dict.fromkeys(_summary_differences(found)))
    named = found.settings.items()
    return [f"{name}, {line}" for name, held in named for line in _unequal(held, _settings_now(name))]


def _summary_differences(summary: Summary) -> Iterator[str]:
    old = summary.recipe
    if old.name not in recipes():
        yield f"recipe {old.name} is gone"
        return
    recipe = load_recipe(old.name)
    for record in summary.records:
        if record.config:  # else a reference row that depends on the graph alone
            yield from _unequal(record.config, settings_of(recipe))
    for fact in ("method", "dataset", "published"):
        if getattr(old, fact) != getattr(recipe, fact):
            yield f"{fact} {getattr(old, fact)}, the recipe has {getattr(recipe, fact)}"
    if summary.protocol.name != recipe.protocol:
        yield f"protocol {summary.protocol.name}, the recipe names {recipe.protocol}"
    elif _judging(summary.protocol) != _judging(PROTOCOLS[recipe.protocol]):
        yield f"protocol {recipe.protocol} has changed"


def _settings_now(name: str) -> dict[str, Any]:
    return settings_of(load_recipe(name)) if name in recipes() else {}


def _unequal(held: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in {**held, **now}:
        if name not in held:
            yield f"{name} is not in the record"
        elif name not in now:
            yield f"{name} is no setting any more"
        elif held[name] != now[name]:
            yield f"{name} {held[name]}, now {now[name]}"


def _judging(protocol: Protocol) -> dict[str, Any]:
    return protocol.model_dump(exclude={"description"})


def made(group: Group, page: Page) -> str | bytes:
    """Return a page, or a block of it, made of the records that are there; empty if there are none."""
    records = [read(path) for path in sorted(RESULTS.glob(group.records))]
    if not records:
        return ""
    make = getattr(import_module(group.script), page.make)
    text: str | bytes = make(records if not group.code else records[0])
    return text


def renewed(group: Group, page: Page) -> str | bytes:
    """Return the whole new text of a page."""
    new = made(group, page)
    if page.block is None or isinstance(new, bytes):
        return new
    return replaced((ROOT / page.path).read_text("utf-8"), page.block, new)


def replaced(text: str, block: str, new: str) -> str:
    """Return a text with another block between its markers."""
    begin, end = f"<!-- {block}: begin -->\n", f"<!-- {block}: end -->"
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"No block {block!r}: {begin.strip()} and {end} expected.")
    return head + begin + new + end + tail


def renew(group: Group) -> None:
    """Write all pages of a group."""
    for page in group.pages:
        new = renewed(group, page)
        with atomic(ROOT / page.path) as temporary:
            temporary.write_bytes(new if isinstance(new, bytes) else new.encode("utf-8"))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], left: Container[int] = (0,)) -> str:
    """Return a table in Markdown; columns are aligned to the right, but for those in ``left``."""
    rule = ["---" if i in left else "---:" for i in range(len(headings))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (headings, rule, *rows))


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Return mean ± standard deviation."""
    mean, std = mean_std(list(values))
    return f"{mean:.{digits}f} ± {std:.{digits}f}"


def where(record: Record | RunRecord) -> str:
    """Name threads, processor and torch of a record."""
    threads, facts = record.threads, record.machine
    number = f"{threads} thread{'' if threads == 1 else 's'}"
    return f"{number}, {facts['cores']} cores of {facts['processor']}, torch {facts['torch']}"


def asked(doc: str | None, choices: Iterable[str]) -> list[str] | None:
    """Parse the command line of a script: the graphs (or seeds, sizes) of a partial run, which writes no record."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--only", nargs="+", choices=list(choices), help="a partial run; writes no record")
    only: list[str] | None = parser.parse_args().only
    return only


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stale", action="store_true", help="list stale records; exit code 1 if there are any")
    parser.add_argument("--list", action="store_true", help="list scripts, records and pages")
    options = parser.parse_args()
    found = 0
    for group in GROUPS:
        if options.list:
            pages = [page.path + (f" ({page.block})" if page.block else "") for page in group.pages]
            print(f"benchmarks/{group.script}.py -> results/{group.records} -> {', '.join(pages) or '-'}")
        elif options.stale:
            for path in sorted(RESULTS.glob(group.records)):
                if reasons := stale(path):
                    found += 1
                    print(f"{path.relative_to(ROOT)}: {'; '.join(reasons)}")
        else:
            renew(group)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
