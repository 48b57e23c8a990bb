"""From a run to one HTML file: facts and charts go through a template that escapes whatever comes from files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ssge import __version__
from ssge.errors import InputError
from ssge.evaluation.geometry import geometry
from ssge.experiments.report import charts, facts
from ssge.experiments.report.points import map_data
from ssge.experiments.subject import Subject
from ssge.files import atomic


def write_report(path: Path, subject: Subject, references: bool = True, **options: Any) -> Path:
    """Write the report of a run, or of an embedding alone.

    Parameters
    ----------
    path
        The HTML file.
    subject
        The run.
    references
        Whether to score reference rows for a run that was scored; see `ssge.experiments.report.facts.score_tables`.
    **options
        ``color``, ``show``, ``nodes`` and ``id`` as in `Subject.names`; ``layout``, ``points`` and ``seed`` as in
        `ssge.experiments.report.points.map_data`.
    """
    _check(path)
    record, vectors = subject.record, subject.embedding.vectors
    if len(vectors) < 2:
        raise InputError(f"A report needs at least 2 nodes; received {len(vectors)}.")
    figures = record.diagnostics if record and record.diagnostics else geometry(vectors)
    supervised = record is not None and record.splits is not None
    content: dict[str, Any] = {
        "run": facts.what_was_run(record) if record else {},
        "details": facts.details(record) if record else {},
        "columns": facts.column_table(record) if record else None,
        "verdict": facts.verdict(figures, vectors.shape[1], supervised),
        "remarks": facts.remarks(subject),
        "diagnostics": facts.diagnostics(figures),
        "losses": charts.loss_charts(subject.history),
        "shapes": [charts.spectrum_chart(vectors), charts.correlation_chart(vectors)],
        "scores": facts.score_tables(subject, references),
        "labeled": subject.labeled,
    }
    return _write(path, subject, content, **options)


def write_map_page(path: Path, subject: Subject, **options: Any) -> Path:
    """Write the interactive map alone; parameters as in `write_report`."""
    _check(path)
    return _write(path, subject, {"losses": [], "shapes": []}, **options)


def _check(path: Path) -> None:
    """Refuse another ending, and tell what is not installed, before any work is done."""
    if path.suffix.casefold() not in (".html", ".htm"):
        raise InputError(f"path must end in .html; received {path.name!r}.")
    try:
        import jinja2  # noqa: F401
        import plotly  # noqa: F401
    except ImportError:
        raise InputError("Pages need packages that are not here: pip install 'ssge[report]'") from None


def _write(path: Path, subject: Subject, content: dict[str, Any], **options: Any) -> Path:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from plotly.offline import get_plotlyjs

    placing = {name: options.pop(name) for name in ("layout", "points", "seed") if name in options}
    names, colors = subject.names(**options)
    data, words = map_data(subject.embedding.vectors, names, colors, **placing)
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
        title=facts.title_of(subject),
        version=__version__,
        policy=_policy(scripts),
        style=(parts / "page.css").read_text("utf-8"),
        scripts=scripts,
        map=data,
        words=words,
        report="verdict" in content,
        **content,
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
