"""The card of a run: what a person who finds its folder should know, in Markdown, from the record alone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from ssge.errors import cut, printable
from ssge.evaluation.scores import mean_std
from ssge.methods import METHODS
from ssge.records import RunRecord
from ssge.runs.verdict import verdict
from ssge.schema import HEADINGS

_SHOWN = 40
"""Feature names that are listed; the rest is in features.json."""

_MARKUP = re.compile(r"[\\`*\[\]<>&|]")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def card(record: RunRecord) -> str:
    """Return the card: graph, settings, label-free diagnostics, scores if any, and how to use the model."""
    cls = METHODS[record.method]
    n, d = record.graph["num_nodes"], record.columns
    statistics = record.statistics
    figures = {
        "nodes": f"{n:,}",
        "directed edges": f"{record.graph['num_edges']:,}",
        "in-neighbors per node, mean / largest": (
            f"{statistics.get('mean_degree', 0):.1f} / {statistics.get('max_degree', 0):,.0f}"
        ),
        "isolated nodes": f"{statistics.get('isolated_nodes', 0):,.0f}",
        "weighted": "yes" if statistics.get("weighted") else "no",
        "features": f"{record.graph['num_features']:,}",
    }
    if record.reading:
        figures["read with"] = ", ".join(f"{key}={words(value)}" for key, value in record.reading.items())
    training = {
        "seed": str(record.seed),
        "epochs": _epochs(record),
        "parameters": f"{record.parameters:,}",
        "seconds": f"{record.seconds:.1f}",
        "peak memory, MiB": f"{record.peak_memory_mb:,.0f}",
        "device, precision, threads": f"{record.device}, {record.precision}, {record.threads}",
        "started from": record.warm_start or "-",
        "versions": f"ssge {record.machine.get('ssge', '?')}, torch {record.machine.get('torch', '?')}",
        "date": record.date,
    }
    diagnostics = {key.replace("_", " "): f"{value:.4g}" for key, value in record.diagnostics.items()}
    parts = [
        f"# {cls.title} embedding of {plain(record.name)}",
        f"{n:,} nodes, {d} columns, {_learned(record)} {cls.title} ({cls.reference}).",
        _section("Graph", figures),
        _columns(record),
        _features(record),
        _section("Settings", {key: words(value) for key, value in record.config.items()}),
        _section("Training", training),
        _section("Diagnostics" if cls.supervised else "Diagnostics, label-free", diagnostics),
        "" if cls.supervised else plain(verdict(record.diagnostics)),
        _scores(record),
        _USE.format(source=_source(record), columns=f"e000 ... e{d - 1:03d}", method=record.method)
        + (_seen(record) if cls.supervised else _HONEST.format(columns=_UNLESS if record.node_columns else "")),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_USE = """## Use

```bash
ssge neighbors FOLDER ID -k 10          # most similar nodes
ssge cluster FOLDER -k 8                # clusters
ssge classify FOLDER --labels FILE      # predict a label that some nodes have
ssge embed FOLDER {source} --out FILE   # embed a graph with the same columns
```

```python
import ssge
model = ssge.GraphEmbedder.load("FOLDER")
model.to_frame()                        # a table: id, {columns}
```

`embedding.parquet` holds the vectors; join them to other tables by `id`. """

_HONEST = """Training was given no labels{columns}. Nodes that a test
compares were learned in one graph: for a test on future nodes, embed them later with `ssge embed ... --only new`."""

_UNLESS = """; but a column that is used above and says what
is to be predicted makes every score too good. `ssge classify` compares the columns with its labels as long as the node
table is where it was"""

_SEEN = """The vectors are class scores, learned from the
labels of training nodes{}: a test on these nodes is not a fair one."""


def _chosen(record: RunRecord) -> bool:
    """Say whether labels of validation nodes chose the epoch whose weights are kept."""
    return bool(record.config.get("keep", "last") != "last")


def _epochs(record: RunRecord) -> str:
    epochs = str(record.config.get("epochs", "-"))
    if not _chosen(record) or not record.final:
        return epochs
    return f"{epochs}; kept: epoch {record.final['epoch']:.0f}, the best on validation nodes"


def _seen(record: RunRecord) -> str:
    return _SEEN.format(", at an epoch chosen by those of validation nodes" if _chosen(record) else "")


def _learned(record: RunRecord) -> str:
    if record.splits is None:
        return "learned without labels by"
    chosen = " (those of its validation nodes chose the epoch)" if _chosen(record) else ""
    return (
        f"class scores, learned from the labels of the training nodes of splits {plain(repr(record.splits))}{chosen} by"
    )


def _source(record: RunRecord) -> str:
    """Return the graph as a command takes it."""
    words = [record.dataset, *(["--nodes", record.reading["nodes"]] if "nodes" in record.reading else [])]
    return printable(shlex.join(words))


def _features(record: RunRecord) -> str:
    names = record.feature_names
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"Feature columns: {', '.join(code(name) for name in names[:_SHOWN])}{more}."


def _columns(record: RunRecord) -> str:
    """Return what became of each column of the node table."""
    if not record.node_columns:
        return ""
    rows = [HEADINGS, ["---"] * len(HEADINGS), *record.node_columns]
    lines = ["| " + " | ".join(plain(cell) for cell in row) + " |" for row in rows]
    return "\n".join(["## Columns", "", *lines])


def _scores(record: RunRecord) -> str:
    if not record.scores:
        return ""
    lines = [
        "## Scores",
        "",
        "| protocol | splits | accuracy % | NMI % | ARI % |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for scores in record.scores.values():
        figures = (scores.accuracies, scores.nmi, scores.ari)
        cells = " | ".join(_percent(values) for values in figures)
        lines.append(f"| {plain(scores.protocol)} | {plain(scores.splits)} | {cells} |")
    return "\n".join(lines)


def _percent(values: Iterable[float]) -> str:
    mean, std = mean_std([100 * value for value in values])
    return f"{mean:.1f} ± {std:.1f}"


def _section(title: str, rows: dict[str, str]) -> str:
    return "\n".join(
        [f"## {title}", "", "| | |", "| --- | --- |", *(f"| {plain(k)} | {plain(v)} |" for k, v in rows.items())]
    )


def words(value: object) -> str:
    """Return a value as text, the entries of a list with commas between them."""
    return ", ".join(str(entry) for entry in value) if isinstance(value, list | tuple) else str(value)


def plain(text: str) -> str:
    r"""Return text that Markdown shows as it is: names of files and columns cannot become links, HTML or cells.

    Examples
    --------
    >>> print(plain("a|b <img> [x](y)"))
    a\|b &lt;img&gt; \[x\](y)
    """
    return _MARKUP.sub(lambda sign: _ENTITIES.get(sign[0], f"\\{sign[0]}"), cut(printable(text)))


def code(text: str) -> str:
    """Return text as a code span, which holds no markup; its fence is longer than any row of backticks inside."""
    shown = cut(printable(text))
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
