"""What a report says in words and tables, from the record of a run and from figures of its embedding.

Scores against labels stand beside the reference rows without which they mean little.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ssge.errors import InputError, cut, printable
from ssge.experiments.compare import references_beside
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.subject import Subject
from ssge.experiments.tables import HEADINGS, cells, row, rows
from ssge.methods import METHODS
from ssge.records import RunRecord
from ssge.runs.card import graph_facts, training_facts, words
from ssge.runs.folder import RunFolder
from ssge.runs.verdict import verdict as sentences
from ssge.schema import HEADINGS as COLUMN_HEADINGS

log = logging.getLogger(__name__)

_MOST_FEATURES = 60


def title_of(subject: Subject) -> str:
    """Return the headline."""
    if subject.record is None:
        return f"Embedding of {len(subject.embedding.node_ids):,} nodes"
    return f"{METHODS[subject.record.method].title} embedding of {printable(cut(subject.name))}"


def what_was_run(record: RunRecord) -> dict[str, str]:
    """Return the method and the graph in a few figures."""
    cls, blocks = METHODS[record.method], record.config.get("blocks", ())
    return {
        "graph": record.name or record.dataset,
        **graph_facts(record),
        "method": f"{cls.title} ({cls.reference})",
        "learned from": "labels of training nodes" if cls.supervised else "no labels",
        "embedding": f"{record.columns:,} columns" + (f": {', '.join(blocks)}" if len(blocks) > 1 else ""),
    }


def details(record: RunRecord) -> dict[str, dict[str, str]]:
    """Return what is needed to run it again: source, training, settings, machine."""
    machine = {"commit": record.commit or "-", **record.machine}
    training = {"source": record.dataset, **training_facts(record)}
    settings = {key: words(value) for key, value in record.config.items()}
    return {"Training": training, "Settings": settings, "Machine": machine}


def column_table(record: RunRecord) -> dict[str, Any] | None:
    """Return what became of each column of the node table; None if there was none."""
    if not record.node_columns and not record.feature_names:
        return None
    names = record.feature_names
    more = f"and {len(names) - _MOST_FEATURES:,} more" if len(names) > _MOST_FEATURES else ""
    return {
        "headings": COLUMN_HEADINGS,
        "rows": record.node_columns,
        "features": [cut(printable(name), 60) for name in names[:_MOST_FEATURES]],
        "more": more,
    }


def remarks(subject: Subject) -> list[str]:
    """Return what else is worth knowing without labels."""
    found = []
    ranks = [line["effective_rank"] for line in subject.history if line.get("effective_rank") is not None]
    if len(ranks) > 1:
        way = "rose" if ranks[-1] > ranks[0] else "fell"
        found.append(f"While training, the effective rank of the views {way} from {ranks[0]:.1f} to {ranks[-1]:.1f}.")
    if subject.record and (alone := subject.record.statistics.get("isolated_nodes", 0)):
        found.append(f"{alone:,.0f} nodes have no neighbors: their vectors come from their own features alone.")
    return found


def verdict(figures: Mapping[str, float], columns: int, supervised: bool = False) -> dict[str, Any]:
    """Return what the label-free figures of an embedding mean, as `ssge.runs.verdict.verdict` says it, and why.

    The level is ``good``, ``doubtful`` or ``bad``.
    """
    used = f"The embedding uses about {figures['effective_rank']:.1f} of {columns:,} directions (effective rank)."
    dead = int(figures["collapsed_columns"])
    reasons = [used, *([f"{dead} of {columns:,} columns are constant and carry no information."] if dead else [])]
    if supervised:
        return {"level": "good", "title": "Class scores of a supervised method", "reasons": reasons}
    head, _, rest = sentences(figures).partition(": ")
    return {"level": _LEVELS.get(head, "doubtful"), "title": head, "reasons": [rest[0].upper() + rest[1:], *reasons]}


_LEVELS = {"Good": "good", "Collapsed": "bad", "One direction": "bad"}
_MEANINGS = {
    "effective_rank": ("Effective rank", "directions in use; 1 is a collapse, the number of columns is the most"),
    "wasserstein": ("Distance to a Gaussian", "0: columns are uncorrelated; larger: they repeat each other"),
    "uniformity": ("Uniformity", "0: all nodes in one place; the lower, the more evenly they spread over directions"),
    "mean_norm": ("Mean length of a vector", "of the rows as they are in the file"),
    "mean_deviation": ("Mean deviation of a column", "standard deviation over the nodes"),
    "deviation_spread": ("Spread of the deviations", "0: all columns vary alike"),
    "held_out_edges": (
        "Held-out edges, AUC",
        "how often the ends of an unseen edge are more alike than two others; 0.5: by chance",
    ),
    "alignment_features": ("Alignment of the features", "with features and neighbors that were held out; at most 3"),
    "alignment_propagated": ("Alignment of propagated features", "the same for the best way to propagate them"),
    "alignment_learned": ("Alignment of the encoder", "the same for the learned columns"),
    "alignment_untrained": ("Alignment with its beginning", "of the encoder; near 1: training has changed little"),
    "collapsed_columns": ("Constant columns", "columns that have one value for all nodes"),
}


def diagnostics(figures: Mapping[str, float]) -> list[tuple[str, str, str]]:
    """Return each label-free figure with its name and what it means."""
    known = {key: _MEANINGS.get(key, (key.replace("_", " "), "")) for key in figures}
    return [(known[key][0], f"{value:.4g}".replace("-", "−"), known[key][1]) for key, value in figures.items()]


def score_tables(subject: Subject, references: bool = True) -> list[dict[str, Any]]:
    """Return a table for each protocol that has scored the run, reference rows first.

    Parameters
    ----------
    subject
        The run; its record has the scores.
    references
        Whether to score reference rows where no earlier comparison has kept them beside the run.
    """
    record = subject.record
    found = []
    for protocol, own in record.scores.items() if record else ():
        assert record is not None
        others = []
        if subject.folder is not None:
            try:
                others = references_beside(RunFolder(subject.folder), record, PROTOCOLS[protocol], score=references)
            except (InputError, OSError) as error:
                log.warning("There are no reference rows: the graph cannot be read again: %s", error)
        line = row(METHODS[record.method].title, [own], [record.seconds] if record.seconds else [])
        lines = [cells(entry) for entry in (*rows(others, protocol), line)]
        table = {"protocol": protocol, "splits": own.splits, "headings": HEADINGS, "rows": lines}
        found.append(table | {"referenced": bool(others)})
    return found
