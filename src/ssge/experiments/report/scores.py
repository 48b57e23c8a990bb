"""Scores of a run against labels, beside the reference rows without which they mean little."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ssge.errors import InputError
from ssge.experiments.own import references_of
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.sources import reopen
from ssge.experiments.subject import Subject
from ssge.experiments.tables import HEADINGS, Row, cells, row
from ssge.methods import METHODS
from ssge.records import RunRecord
from ssge.runs.folder import RunFolder

log = logging.getLogger(__name__)


def score_tables(subject: Subject, referenced: bool = True) -> list[dict[str, Any]]:
    """Return a table for each protocol that has scored the run, reference rows first.

    Parameters
    ----------
    subject
        The run; its record has the scores.
    referenced
        Whether to score reference rows that no earlier comparison has left beside the run.
    """
    record = subject.record
    found = []
    for protocol, own in record.scores.items() if record else ():
        assert record is not None
        others = _kept(subject, record, protocol)
        if not others and referenced and subject.folder is not None:
            others = _scored(subject.folder, record, protocol)
        line = row(METHODS[record.method].title, [own], [record.seconds] if record.seconds else [])
        rows = [cells(entry) for entry in (*others, line)]
        table = {"protocol": protocol, "splits": own.splits, "headings": HEADINGS, "rows": rows}
        found.append(table | {"referenced": bool(others)})
    return found


def _kept(subject: Subject, record: RunRecord, protocol: str) -> list[Row]:
    """Return the reference rows that `ssge run` and the like have left beside the run, if they are of its graph."""
    rows = []
    for path in _beside(subject.folder):
        try:
            other = RunRecord.read(path)
        except (InputError, OSError):
            continue
        if (other.dataset, other.graph) == (record.dataset, record.graph) and protocol in other.scores:
            rows.append(row(other.method, [other.scores[protocol]]))
    return rows


def _beside(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        for place in (folder.resolve().parent, folder.resolve().parents[1] / "references"):
            yield from sorted(place.glob("*-0.json"))


def _scored(folder: Path, record: RunRecord, protocol: str) -> list[Row]:
    """Score the reference rows of the graph that the run was fitted on; none if it cannot be read again."""
    try:
        graph = reopen(RunFolder(folder))
    except (InputError, OSError) as error:
        log.warning("There are no reference rows: the graph cannot be read again: %s", error)
        return []
    if graph.labels is None:
        return []
    log.info("Scoring reference rows by protocol %s; --skip-references leaves them out.", protocol)
    return references_of(graph, PROTOCOLS[protocol], record.dataset)
