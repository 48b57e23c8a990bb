"""From a run to one HTML file: facts and charts go through a template that escapes whatever comes from files."""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ssge import __version__
from ssge.errors import InputError
from ssge.evaluation.geometry import geometry
from ssge.experiments.report import charts, facts
from ssge.experiments.report.points import map_data
from ssge.experiments.report.scores import score_tables
from ssge.experiments.subject import Subject
from ssge.files import atomic
from ssge.runs.names import Names

log = logging.getLogger(__name__)


def write_report(
    path: Path,
    subject: Subject,
    names: Names,
    colors: Sequence[str] = (),
    referenced: bool = True,
    **options: Any,
) -> Path:
    """Write the report of a run, or of an embedding alone.

    Parameters
    ----------
    path
        The HTML file.
    subject
        The run.
    names, colors
        Columns to show for each node, and those of them to color by; see `Subject.names`.
    referenced
        Whether a run that was scored gets reference rows; see `ssge.experiments.report.scores.score_tables`.
    options
        ``layout``, ``seed`` and ``max_points`` of the map; see `ssge.experiments.report.points.map_data`.
    """
    _check(path)
    record, vectors = subject.record, subject.embedding.vectors
    if len(vectors) < 2:
        raise InputError(f"A report needs at least 2 nodes; received {len(vectors)}.")
    figures = record.diagnostics if record and record.diagnostics else geometry(vectors)
    supervised = record is not None and record.splits is not None
    correlation = charts.correlation_chart(vectors)
    told: dict[str, Any] = {
        "run": facts.what_was_run(record) if record else [],
        "details": facts.details(record) if record else [],
        "columns": facts.column_table(record) if record else None,
        "verdict": facts.verdict(figures, vectors.shape[1], supervised),
        "remarks": facts.remarks(subject),
        "diagnostics": facts.diagnostics(figures),
        "losses": charts.loss_charts(subject.history),
        "shapes": [charts.spectrum_chart(vectors), *([correlation] if correlation else [])],
        "scores": score_tables(subject, referenced),
        "labeled": subject.labeled,
    }
    return _write(path, facts.title_of(subject), map_data(vectors, names, colors, **options), told)


def write_map_page(path: Path, subject: Subject, names: Names, colors: Sequence[str] = (), **options: Any) -> Path:
    """Write the interactive map alone; parameters as in `write_report`."""
    _check(path)
    return _write(path, facts.title_of(subject), map_data(subject.embedding.vectors, names, colors, **options), {})


def _check(path: Path) -> None:
    """Refuse another ending, and tell what is not installed, before any work is done."""
    if path.suffix.casefold() not in (".html", ".htm"):
        raise InputError(f"path must end in .html; received {path.name!r}.")
    try:
        import jinja2  # noqa: F401
        import plotly  # noqa: F401
    except ImportError:
        raise InputError("Pages need packages that are not here: pip install 'ssge[report]'") from None


def _write(path: Path, title: str, found: Any, told: dict[str, Any]) -> Path:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    parts = files("ssge.experiments.report")
    # A string that ends a script element must not occur inside one; elsewhere in JavaScript the two are the same.
    scripts = [script.replace("</script", "<\\/script") for script in (
        get_plotlyjs(), *((parts / name).read_text("utf-8") for name in ("base.js", "charts.js", "map.js")))
    ]  # fmt: skip
    environment = Environment(
        loader=PackageLoader("ssge.experiments.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("page.html").render(
        title=title,
        version=__version__,
        policy=_policy(scripts),
        style=(parts / "page.css").read_text("utf-8"),
        scripts=scripts,
        map=found.data,
        words=found.words,
        report=bool(told),
        **({"losses": [], "shapes": []} | told),
    )
    with atomic(path) as temporary:
        temporary.write_text(text, "utf-8")
    return path


def _policy(scripts: Sequence[str]) -> str:
    """Return a policy that lets a browser run these scripts and no others, and load nothing.

    WebGL drawing in plotly.js compiles functions, hence ``unsafe-eval``; nothing from a file is ever compiled.
    """
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
