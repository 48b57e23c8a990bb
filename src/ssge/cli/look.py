"""Commands to look at a run: report, map, plot."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from ssge.cli.options import BY_ID, LOOK, Force, Naming, Quiet, Switch, Vectors, command, set_up


@dataclass(frozen=True)
class _Drawing:
    """How the map is drawn.

    Parameters
    ----------
    color
        Columns of the node table to color by, as in page_type,country; a dataset has the column label. A picture takes
        one column, a page several. Default: nothing in a picture; labels and categories in a report.
    layout
        tsne, pca (principal components), or auto: tsne if it is quick enough.
    points
        Most nodes drawn; of more, as many are chosen at random. Default: 5,000 in a picture, 50,000 on a page.
    seed
        Seed of the layout and of the choice of nodes.
    """

    color: str | None = None
    layout: Literal["auto", "tsne", "pca"] = "auto"
    points: int | None = None
    seed: int = 0


Drawing: TypeAlias = Annotated[_Drawing, Parameter(name="*")]
AS_USUAL = _Drawing()


@command(
    LOOK, "ssge report run --out report.html", "ssge report run --show page_name --color page_type --out report.html"
)
def report(
    run: Vectors,
    /,
    *,
    out: Path,
    drawing: Drawing = AS_USUAL,
    skip_references: Switch = False,
    force: Force = False,
    quiet: Quiet = False,
    naming: Naming = BY_ID,
) -> None:
    """Write one HTML page about a run: what was run, a verdict without labels, charts, and an interactive map.

    The page loads nothing, so it can be kept and passed on. On its map nodes are found by name, a click shows the
    nearest neighbors, and a lasso exports ids. Needs pip install 'ssge[report]'.

    Parameters
    ----------
    out
        The .html file to write.
    skip_references
        Of a run that was scored: leave out the reference rows, which take their time unless ssge run has kept them.
    """
    set_up(quiet)
    from ssge.experiments.report import write_report
    from ssge.experiments.report.points import MOST_POINTS
    from ssge.experiments.subject import Subject
    from ssge.io.results import refuse_existing

    refuse_existing([out], force)
    subject = Subject.of(run)
    names, colors = subject.names(naming.show, drawing.color, naming.nodes, naming.id)
    most = MOST_POINTS if drawing.points is None else drawing.points
    write_report(
        out, subject, names, colors, layout=drawing.layout, seed=drawing.seed, max_points=most,
        referenced=not skip_references,
    )  # fmt: skip
    print(f"report: {out}")


@command(
    LOOK,
    "ssge map run --color page_type --out map.png",
    "ssge map run --color page_type --show page_name --out map.html",
    "ssge map embedding.parquet --nodes nodes.csv --color team --out map.svg",
    name="map",
)
def embedding_map(
    run: Vectors,
    /,
    *,
    out: Path,
    drawing: Drawing = AS_USUAL,
    title: str | None = None,
    force: Force = False,
    quiet: Quiet = False,
    naming: Naming = BY_ID,
) -> None:
    """Draw the nodes on a plane: a picture, or a page on which to hover, search and select.

    Parameters
    ----------
    out
        File to write: .png or .svg (needs 'ssge[plots]'), or .html (needs 'ssge[report]').
    title
        Headline of a picture.
    """
    set_up(quiet)
    from ssge.experiments.pictures import draw_map
    from ssge.experiments.subject import Subject
    from ssge.io.results import refuse_existing

    refuse_existing([out], force)
    draw_map(out, Subject.of(run), **vars(drawing), **vars(naming), title=title)
    print(f"map: {out}")


@command(LOOK, "ssge plot run losses --out losses.png", "ssge plot run spectrum --out spectrum.svg")
def plot(run: Path, kind: Literal["losses", "spectrum", "correlation"], /, *, out: Path, force: Force = False) -> None:
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
    """
    from ssge.experiments.pictures import draw_plot
    from ssge.experiments.subject import Subject
    from ssge.io.results import refuse_existing

    refuse_existing([out], force)
    draw_plot(out, Subject.of(run), kind)
    print(f"plot: {out}")
