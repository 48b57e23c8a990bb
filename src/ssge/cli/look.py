"""Commands to look at a run: report, map, plot."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App

from ssge.cli.options import BY_ID, LOOK, NAMING, Naming, Switch, be_quiet, examples


def register(app: App) -> None:
    """Add the commands."""
    app.command(
        report,
        group=LOOK,
        help_epilogue=examples(
            "ssge report run --out report.html", "ssge report run --show page_name --color page_type --out report.html"
        ),
    )
    app.command(
        embedding_map,
        name="map",
        group=LOOK,
        help_epilogue=examples(
            "ssge map run --color page_type --out map.png",
            "ssge map run --color page_type --show page_name --out map.html",
            "ssge map embedding.parquet --nodes nodes.csv --color team --out map.svg",
        ),
    )
    app.command(
        plot,
        group=LOOK,
        help_epilogue=examples("ssge plot run losses --out losses.png", "ssge plot run spectrum --out spectrum.svg"),
    )


def report(
    run: Path,
    /,
    *,
    out: Path,
    color: str | None = None,
    layout: Literal["auto", "tsne", "pca"] = "auto",
    points: int | None = None,
    seed: int = 0,
    skip_references: Switch = False,
    force: Switch = False,
    quiet: Switch = False,
    naming: Annotated[Naming, NAMING] = BY_ID,
) -> None:
    """Write one HTML page about a run: what was run, a verdict without labels, charts, and an interactive map.

    The page loads nothing, so it can be kept and passed on. On its map nodes are found by name, a click shows the
    nearest neighbors, and a lasso exports ids. Needs pip install 'ssge[report]'.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding.
    out
        The .html file to write.
    color
        Columns to color the map by, as in page_type,country. Default: labels and categories of the node table.
    layout
        tsne, pca (principal components), or auto: tsne if it is quick enough.
    points
        Most nodes on the map; of more, as many are chosen at random. Default: 50,000.
    seed
        Of the layout and of the choice.
    skip_references
        Of a run that was scored: leave out the reference rows, which take their time unless ssge run has kept them.
    force
        Replace the file if it exists.
    quiet
        No notes.
    """
    be_quiet(quiet)
    from ssge.experiments.report import write_report
    from ssge.experiments.report.points import MOST_POINTS
    from ssge.experiments.subject import Subject
    from ssge.io.results import refuse_existing

    refuse_existing([out], force)
    subject = Subject.of(run)
    names, colors = subject.names(naming.show, color, naming.nodes, naming.id)
    most = MOST_POINTS if points is None else points
    options: dict[str, Any] = {"layout": layout, "seed": seed, "max_points": most, "referenced": not skip_references}
    write_report(out, subject, names, colors, **options)
    print(f"report: {out}")


def embedding_map(
    run: Path,
    /,
    *,
    out: Path,
    color: str | None = None,
    layout: Literal["auto", "tsne", "pca"] = "auto",
    points: int | None = None,
    seed: int = 0,
    title: str | None = None,
    force: Switch = False,
    quiet: Switch = False,
    naming: Annotated[Naming, NAMING] = BY_ID,
) -> None:
    """Draw the nodes on a plane: a picture, or a page on which to hover, search and select.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding.
    out
        File to write: .png or .svg (needs 'ssge[plots]'), or .html (needs 'ssge[report]').
    color
        Column of the node table to color by; a dataset has the column label. A page takes several, as in team,age.
    layout
        tsne, pca (principal components), or auto: tsne if it is quick enough.
    points
        Most nodes drawn; of more, as many are chosen at random. Default: 5,000 in a picture, 50,000 on a page.
    seed
        Of the layout and of the choice.
    title
        Headline of a picture.
    force
        Replace the file if it exists.
    quiet
        No notes.
    """
    be_quiet(quiet)
    from ssge.experiments.pictures import draw_map
    from ssge.experiments.subject import Subject
    from ssge.io.results import refuse_existing

    refuse_existing([out], force)
    where: dict[str, Any] = {"show": naming.show, "nodes": naming.nodes, "id": naming.id}
    draw_map(out, Subject.of(run), color=color, **where, layout=layout, points=points, seed=seed, title=title)
    print(f"map: {out}")


def plot(
    run: Path,
    kind: Literal["losses", "spectrum", "correlation"],
    /,
    *,
    out: Path,
    force: Switch = False,
) -> None:
    """Draw the losses of the training, the spectrum of the embedding, or the correlation of its columns.

    Parameters
    ----------
    run
        Folder of a run, or, but for losses, a file with an embedding.
    kind
        losses (total, terms and effective rank by epoch), spectrum (eigenvalues of the correlations between columns),
        or correlation (of each column with each other).
    out
        File to write: .png or .svg. Needs pip install 'ssge[plots]'.
    force
        Replace the file if it exists.
    """
    from ssge.experiments.pictures import draw_plot
    from ssge.experiments.subject import Subject
    from ssge.io.results import refuse_existing

    refuse_existing([out], force)
    draw_plot(out, Subject.of(run), kind)
    print(f"plot: {out}")
