"""Scores of a run against labels, beside the reference rows without which they mean little."""

from __future__ import annotations

import logging
from typing import Any

from ssge.errors import InputError
from ssge.experiments.compare import references_beside
from ssge.experiments.protocols import PROTOCOLS
from ssge.experiments.subject import Subject
from ssge.experiments.tables import HEADINGS, cells, row, rows
from ssge.methods import METHODS
from ssge.runs.folder import RunFolder

log = logging.getLogger(__name__)


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
