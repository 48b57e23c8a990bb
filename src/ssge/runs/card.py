"""The card of a run: what a person who finds its folder should know, in Markdown, from the record alone."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence

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


def graph_facts(record: RunRecord) -> dict[str, str]:
    """Return the sizes of the graph and how it was read, as text."""
    sizes, statistics = record.graph, record.statistics
    mean, largest, isolated = (statistics.get(name, 0) for name in ("mean_degree", "max_degree", "isolated_nodes"))
    read = {"read with": ", ".join(f"{key}={words(value)}" for key, value in record.reading.items())}
    return {
        "nodes": f"{sizes.get('num_nodes', 0):,}",
        "directed edges": f"{sizes.get('num_edges', 0):,}",
        "in-neighbors per node, mean / largest": f"{mean:.1f} / {largest:,.0f}",
        "isolated nodes": f"{isolated:,.0f}",
        "weighted": "yes" if statistics.get("weighted") else "no",
        "features": f"{sizes.get('num_features', 0):,}",
        **(read if record.reading else {}),
    }


def training_facts(record: RunRecord) -> dict[str, str]:
    """Return how the run was trained, on what, and when, as text."""
    epochs = str(record.config.get("epochs", "-"))
    if _epoch_chosen(record) and record.final:
        epochs += f"; kept: epoch {record.final['epoch']:.0f}, the best on validation nodes"
    return {
        "recipe": record.recipe or "-",
        "started from": record.warm_start or "-",
        "seed": str(record.seed),
        "epochs": epochs,
        "parameters": f"{record.parameters:,}",
        "seconds": f"{record.seconds:.1f}",
        "peak memory, MiB": f"{record.peak_memory_mb:,.0f}",
        "device, precision, threads": f"{record.device}, {record.precision}, {record.threads}",
        "versions": f"ssge {record.machine.get('ssge', '?')}, torch {record.machine.get('torch', '?')}",
        "date": record.date,
    }


def card(record: RunRecord) -> str:
    """Return the card: graph, settings, label-free diagnostics, scores if any, and how to use the model."""
    cls, d = METHODS[record.method], record.columns
    diagnostics = {key.replace("_", " "): f"{value:.4g}" for key, value in record.diagnostics.items()}
    chosen = _epoch_chosen(record)
    learned, warning = "learned without labels", _HONEST.format(columns=_UNLESS if record.node_columns else "")
    if cls.supervised:
        by = " (those of its validation nodes chose the epoch)" if chosen else ""
        learned = (
            f"class scores, learned from the labels of the training nodes of splits {plain(repr(record.splits))}{by}"
        )
        warning = _SEEN.format(", at an epoch chosen by those of validation nodes" if chosen else "")
    parts = [
        f"# {cls.title} embedding of {plain(record.name)}",
        f"{record.graph['num_nodes']:,} nodes, {d} columns, {learned} by {cls.title} ({cls.reference}).",
        _table("Graph", ("", ""), graph_facts(record).items()),
        _table("Columns", HEADINGS, record.node_columns),
        _features(record),
        _table("Settings", ("", ""), [(key, words(value)) for key, value in record.config.items()]),
        _table("Training", ("", ""), training_facts(record).items()),
        _table("Diagnostics" if cls.supervised else "Diagnostics, label-free", ("", ""), diagnostics.items()),
        "" if cls.supervised else plain(verdict(record.diagnostics)),
        _scores(record),
        _USE.format(source=_source(record), columns=f"e000 ... e{d - 1:03d}", method=record.method) + warning,
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

_UNLESS = """; but a column that is used above and determines
the target makes every score too good. `ssge classify` compares the columns with its labels as long as the node
table is where it was"""

_SEEN = """The vectors are class scores, learned from the
labels of training nodes{}: a test on these nodes is not a fair one."""


def _epoch_chosen(record: RunRecord) -> bool:
    """Return whether the labels of validation nodes chose the epoch whose weights are kept."""
    return bool(record.config.get("keep", "last") != "last")


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


def _scores(record: RunRecord) -> str:
    rows = []
    for scores in record.scores.values():
        figures = [mean_std([100 * value for value in part]) for part in (scores.accuracies, scores.nmi, scores.ari)]
        rows.append((scores.protocol, scores.splits, *(f"{mean:.1f} ± {std:.1f}" for mean, std in figures)))
    return _table("Scores", ("protocol", "splits", "accuracy %", "NMI %", "ARI %"), rows)


def _table(title: str, headings: Sequence[str], rows: Collection[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [[plain(cell) for cell in headings], ["---"] * len(headings), *([plain(c) for c in row] for row in rows)]
    return "\n".join([f"## {title}", "", *(f"| {' | '.join(line)} |" for line in lines)])


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
