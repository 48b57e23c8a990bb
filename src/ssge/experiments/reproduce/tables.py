"""Tables of the paper, ours beside the published: classification, clustering, efficiency, ablation."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from ssge.experiments import efficiency as costs_of
from ssge.experiments.compare import Summary
from ssge.experiments.reproduce import published
from ssge.experiments.reproduce.jobs import OURS, Done, Job, Scope
from ssge.experiments.tables import Row, rows
from ssge.files import atomic
from ssge.methods import METHODS
from ssge.records import RunRecord
from ssge.runs.recipes import load_recipe, recipes


@dataclass
class Cell:
    """One figure of ours, and the published one."""

    ours: float | None
    std: float | None = None
    published: float | None = None
    note: str | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus the published one."""
        return None if self.ours is None or self.published is None else self.ours - self.published


@dataclass
class Table:
    """Rows of cells with footnotes; written as Markdown, CSV and LaTeX."""

    name: str
    title: str
    columns: Sequence[str] = ()
    rows: dict[str, dict[str, Cell]] = field(default_factory=dict)
    basis: list[str] = field(default_factory=list)
    digits: int = 1

    def write(self, out: Path) -> list[Path]:
        """Write the table in three formats."""
        texts = {".md": self.markdown(), ".csv": self.csv(), ".tex": self.latex()}
        for suffix, text in texts.items():
            with atomic(out / f"{self.name}{suffix}") as temporary:
                temporary.write_text(text)
        return [out / f"{self.name}{suffix}" for suffix in texts]

    def markdown(self, heading: bool = True) -> str:
        """Return the table in Markdown: ours, deviation over seeds, in brackets published and difference."""
        notes, body = self._texts()
        lines = [["", *self.columns], ["---", *("---:" for _ in self.columns)], *body]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        legend = "Ours ± standard deviation over encoder seeds (published, difference)."
        foot = [f"{mark}. {note}" for note, mark in notes.items()]
        head = [f"# {self.title}", ""] if heading else []
        return "\n".join([*head, legend, *self.basis, "", table, "", *foot]).rstrip() + "\n"

    def csv(self) -> str:
        """Return the table with one line per figure."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["row", "column", "ours", "std", "published", "difference", "note"])
        for name, cells in self.rows.items():
            for column, cell in cells.items():
                figures = (cell.ours, cell.std, cell.published, cell.difference)
                writer.writerow([name, column, *("" if v is None else f"{v:.4f}" for v in figures), cell.note or ""])
        return text.getvalue()

    def latex(self) -> str:
        """Return a tabular for the package booktabs."""
        notes, body = self._texts()
        head, *lines = (" & ".join(map(_escaped, line)) + r" \\" for line in (["", *self.columns], *body))
        spec = "l" + "r" * len(self.columns)
        foot = [rf"% {mark}. {note}" for note, mark in notes.items()]
        table = [
            rf"\begin{{tabular}}{{{spec}}}",
            r"\toprule",
            head,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join([f"% {self.title}", *(f"% {line}" for line in self.basis), *table, *foot]) + "\n"

    def _texts(self) -> tuple[dict[str, int], list[list[str]]]:
        """Return the footnotes with their marks, and the rows as text."""
        found = [cell.note for cells in self.rows.values() for cell in cells.values() if cell.note]
        notes = {note: mark for mark, note in enumerate(dict.fromkeys(found), 1)}
        texts = [[name, *(self._cell(cells.get(c), notes) for c in self.columns)] for name, cells in self.rows.items()]
        return notes, texts

    def _cell(self, cell: Cell | None, notes: dict[str, int]) -> str:
        if cell is None:
            return ""
        d = self.digits
        text = "-" if cell.ours is None else f"{cell.ours:,.{d}f}"
        text += f" ± {cell.std:.{d}f}" if cell.std is not None else ""
        if cell.published is not None:
            difference = "" if cell.difference is None else f", {cell.difference:+,.{d}f}"
            text += f" ({cell.published:,.{d}f}{difference})"
        return text + (f" [{notes[cell.note]}]" if cell.note else "")


def compared(scope: Scope, methods: Sequence[str], datasets: Sequence[str]) -> dict[tuple[str, str], Job]:
    """Return the jobs of methods on datasets that are in the scope and have a recipe.

    SSGE is always in the scope, because the reference rows are scored with it.
    """
    return {
        (method, dataset): scope.job(method, dataset)
        for method, dataset in product(methods, datasets)
        if (method in scope.methods or method == OURS) and dataset in scope.datasets
        if f"{method}/{dataset}" in recipes()
    }


def classification(scope: Scope, done: Done) -> Table:
    """Return accuracies of all methods, with the reference rows."""
    table = Table("classification", "Node classification, accuracy %", basis=basis(scope, done))
    return _filled(table, scope, done, published.METHODS, published.DATASETS, ["accuracy"], published.DOUBTS)


def clustering(scope: Scope, done: Done) -> Table:
    """Return NMI and ARI of the methods of the paper's table, with the reference rows."""
    table = Table("clustering", "Node clustering by k-means, NMI and ARI %", basis=basis(scope, done))
    doubts = published.DOUBTFUL_CLUSTERS
    return _filled(table, scope, done, published.CLUSTERED, published.DATASETS[:3], ["nmi", "ari"], doubts)


def ablation_jobs(scope: Scope) -> dict[tuple[str, str], Job]:
    """Return the jobs of the ablation by variant and dataset."""
    changes = {"alignment": {"uniformity_weight": 0.0}, "uniformity": {"alignment_weight": 0.0}, "both": {}}
    datasets = [name for name in published.ABLATION["both"] if name in scope.datasets]
    return {(v, name): scope.job(OURS, name, **changes[v]) for v in changes for name in datasets}


def ablation(scope: Scope, done: Done) -> Table:
    """Return the accuracy of SSGE with one term of its loss or both."""
    jobs = ablation_jobs(scope)
    datasets = list(dict.fromkeys(name for _, name in jobs))
    table = Table("ablation", "Ablation of SSGE's two terms, accuracy %", datasets, basis=basis(scope, done))
    for variant, figures in published.ABLATION.items():
        table.rows[variant] = {
            name: _measured(done, jobs[variant, name], "accuracy", figures.get(name)) for name in datasets
        }
    return table


def efficiency(found: dict[tuple[str, str], costs_of.Measured]) -> Table:
    """Return parameters, time and memory beside the paper's, which are of a V100 GPU."""
    note = "Time is that of an epoch times the epochs of the recipe. The paper's time and memory are of a V100 GPU."
    table = Table("efficiency", "Parameters, training time and peak memory", basis=[note])
    for (method, dataset), cost in found.items():
        columns = [f"{dataset} {what}" for what in ("parameters, K", "time, s", "memory, MB")]
        ours, theirs = (cost.parameters / 1000, cost.seconds, cost.peak_mb), costs_of.PUBLISHED[method, dataset]
        cells = {column: Cell(a, None, float(b)) for column, a, b in zip(columns, ours, theirs, strict=True)}
        table.rows.setdefault(METHODS[method].title, {}).update(cells)
    table.columns = list(dict.fromkeys(column for cells in table.rows.values() for column in cells))
    return table


def basis(scope: Scope, done: Done) -> list[str]:
    """Say on what figures rest: protocol and splits by dataset, seeds, machine."""
    lines = []
    whole = {job: summary for job, summary in done.summaries.items() if not job.settings}
    for job, summary in whole.items():
        runs = _runs(summary)
        if summary.recipe.method == OURS and runs:
            run, protocol = runs[-1], summary.protocol.name
            others = [one for other, one in whole.items() if other.dataset == job.dataset and one is not summary]
            machine = f"{run.machine.get('processor', '')}, torch {run.machine.get('torch', '')}"
            lines.append(
                f"- {job.dataset}: protocol `{protocol}`{_other_protocols(protocol, others)}, "
                f"{run.scores[protocol].splits}; SSGE with {_count(len(runs), 'seed')}{_other_seeds(others)}; "
                f"{_count(run.threads, 'thread')}, {machine}."
            )
    fast = "- Fast: short schedules; the probe is a logistic regression with its penalty chosen on validation nodes."
    missing: dict[str, dict[str, None]] = {}
    for job, why in done.gaps.items():
        missing.setdefault(why, {})[job.recipe] = None
    gaps = [f"- Not run: {', '.join(names)}: {why}" for why, names in missing.items()]
    return ["", *lines, *([fast] if scope.fast else []), *gaps]


def _runs(summary: Summary) -> list[RunRecord]:
    return [record for record in summary.records if record.recipe]


def _other_protocols(protocol: str, others: Sequence[Summary]) -> str:
    """Name the methods that are scored by another protocol than SSGE."""
    names: dict[str, list[str]] = {}
    for one in others:
        names.setdefault(one.protocol.name, []).append(METHODS[one.recipe.method].title)
    parts = [f"`{name}` for {', '.join(titles)}" for name, titles in names.items() if name != protocol]
    return f" ({'; '.join(parts)})" if parts else ""


def _other_seeds(others: Sequence[Summary]) -> str:
    """Say how many seeds most other methods have, and which have another number."""
    seeds = {METHODS[one.recipe.method].title: len(_runs(one)) for one in others}
    if not seeds:
        return ""
    (most, _), *_ = Counter(seeds.values()).most_common()
    fewer = [f"{title} {count}" for title, count in seeds.items() if count != most]
    return f", others with {most}" + (f" ({', '.join(fewer)})" if fewer else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _filled(
    table: Table, scope: Scope, done: Done, methods: Sequence[str], datasets: Sequence[str], figures: Sequence[str],
    doubts: tuple[published.Doubt, ...],
) -> Table:  # fmt: skip
    """Fill a table with a row per reference and per method, and a column per dataset and figure."""
    names = [name for name in datasets if name in scope.datasets]
    column = {(n, figure): n if len(figures) == 1 else f"{n} {figure.upper()}" for n in names for figure in figures}
    table.columns = list(column.values())
    jobs = compared(scope, methods, names)
    for figure in figures:
        for name in names:
            for row in _reference_rows(done, jobs.get((OURS, name))):
                known = published.CLUSTERINGS.get(row.name, {}).get(name)
                theirs = dict(zip(("nmi", "ari"), known or (), strict=False)).get(figure)
                if (ours := getattr(row, figure)) is not None:  # a clustering has no accuracy
                    table.rows.setdefault(row.name, {})[column[name, figure]] = Cell(ours, None, theirs)
        for (method, name), job in jobs.items():
            note = published.doubt(method, name, doubts) or _shortened(job, done)
            cell = _measured(done, job, figure, load_recipe(job.recipe).published.get(figure), note)
            table.rows.setdefault(METHODS[method].title, {})[column[name, figure]] = cell
    return table


def _reference_rows(done: Done, job: Job | None) -> list[Row]:
    if job not in done.summaries:
        return []
    summary = done.summaries[job]
    return rows([record for record in summary.records if record.recipe is None], summary.protocol.name)


def own_row(summary: Summary) -> Row:
    """Return the row of the recipe itself, without references."""
    return rows(_runs(summary), summary.protocol.name)[0]


def _measured(done: Done, job: Job, figure: str, theirs: float | None, note: str | None = None) -> Cell:
    """Return a figure of a job beside the published one, with a note; or why there is none."""
    if job not in done.summaries:
        return Cell(None, None, theirs, done.gaps.get(job))
    row = own_row(done.summaries[job])
    std = row.encoder_std if figure == "accuracy" else getattr(row, f"{figure}_std")
    return Cell(getattr(row, figure), std if row.seeds > 1 else None, theirs, note)


def _shortened(job: Job, done: Done) -> str | None:
    if job in done.cut:
        return f"Cut to {done.cut[job]:,} epochs to save time."
    return "Shortened schedule (recipe `-fast`)." if job.recipe.endswith("-fast") else None


def _escaped(text: str) -> str:
    for sign, escape in (("%", r"\%"), ("_", r"\_"), ("&", r"\&"), ("±", r"$\pm$"), ("²", r"$^2$"), ("#", r"\#")):
        text = text.replace(sign, escape)
    return text
