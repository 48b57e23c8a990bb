"""Tables of results, from records alone."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from ssge.evaluation.scores import mean_std
from ssge.records import RunRecord, Scores


class Row(NamedTuple):
    """One line of a comparison: means over encoder seeds, deviations over encoder seeds and over probes apart.

    Figures are per cent except ``effective_rank`` and ``seconds``. A clustering has no accuracy.
    """

    name: str
    seeds: int
    accuracy: float | None
    encoder_std: float
    probe_std: float
    nmi: float
    nmi_std: float
    ari: float
    ari_std: float
    effective_rank: float
    seconds: float | None = None


def row(name: str, scores: Sequence[Scores], seconds: Sequence[float] = ()) -> Row:
    """Summarize the scores of one method, one item per encoder seed."""
    accuracy, across, within = None, 0.0, 0.0
    if all(s.accuracies for s in scores):
        accuracy, across = mean_std([100 * fmean(s.accuracies) for s in scores])
        within = fmean([mean_std([100 * a for a in s.accuracies]).std for s in scores])
    nmi = mean_std([100 * fmean(s.nmi) for s in scores])
    ari = mean_std([100 * fmean(s.ari) for s in scores])
    rank = fmean([s.geometry["effective_rank"] for s in scores])
    took = fmean(seconds) if seconds else None
    return Row(name, len(scores), accuracy, across, within, *nmi, *ari, rank, took)


def rows(records: Sequence[RunRecord], protocol: str) -> list[Row]:
    """Summarize records by method, in the order in which the methods first occur."""
    return [
        row(name, [r.scores[protocol] for r in group], [r.seconds for r in group if r.seconds])
        for name, group in by_method(records).items()
    ]


def by_method(records: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Return records by method, in the order in which the methods first occur."""
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(record.method, []).append(record)
    return groups


HEADINGS = ("", "accuracy %", "± encoder", "± probe", "NMI %", "ARI %", "eff. rank", "train s")


def cells(line: Row) -> tuple[str, ...]:
    """Return a row as text, in the order of `HEADINGS`."""
    several = line.seeds > 1
    return (
        line.name,
        "-" if line.accuracy is None else f"{line.accuracy:.2f}",
        f"{line.encoder_std:.2f}" if several and line.accuracy is not None else "-",
        f"{line.probe_std:.2f}" if line.probe_std else "-",
        f"{line.nmi:.2f}" + (f" ± {line.nmi_std:.2f}" if several else ""),
        f"{line.ari:.2f}" + (f" ± {line.ari_std:.2f}" if several else ""),
        f"{line.effective_rank:.1f}",
        "-" if line.seconds is None else f"{line.seconds:.1f}",
    )
