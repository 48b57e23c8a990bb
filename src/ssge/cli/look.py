"""Commands that show a run: report, map, plot."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cyclopts import Parameter

from ssge.cli.options import BY_ID, VISUALIZE, Force, Naming, Quiet, Vectors, command, set_up


@Parameter(name="*")
@dataclass(frozen=True)
class Drawing:
    """How the map is drawn.

    Parameters
    ----------
    color
        Columns of the node table to color by, as in page_type,country; a dataset has the column label. A picture is
        colored by the first column. Default: the label and the categories of the run's node table.
    layout
        tsne, pca (principal components), or auto: tsne if it is quick enough.
    points
        Largest number of nodes drawn; a larger graph is sampled. Default: 5,000 in a picture, 50,000 on a page.
    seed
        Seed of the layout and of the sample.
    """

    color: str | None = None
    layout: Literal["auto", "tsne", "pca"] = "auto"
    points: int | None = None
    seed: int = 0


AS_USUAL = Drawing()


@command(
    VISUALIZE,
    "ssge report run --out report.html",
    "ssge report run --show page_name --color page_type --out report.html",
)
def report(
    run: Vectors,
    /,
    *,
    out: Path,
    drawing: Drawing = AS_USUAL,
    skip_references: bool = False,
    force: Force = False,
    quiet: Quiet = False,
    naming: Naming = BY_ID,
) -> None:
    """Write one HTML page about a run: settings, label-free verdict, charts, and an interactive map.

    The page loads nothing from elsewhere. On its map you can search nodes by name, click one to see its nearest
    neighbors, and export the ids inside a lasso. Needs pip install 'ssge[report]'.

    Parameters
    ----------
    out
        The .html file to write.
    skip_references
        Leave out the reference rows of a scored run. They take time unless ssge run has kept them.
    """
    set_up(quiet)
    from ssge.experiments.report import write_report
    from ssge.experiments.subject import Subject
    from ssge.io.results import refuse_existing

    refuse_existing([out], force)
    write_report(out, Subject.of(run), not skip_references, **vars(drawing), **vars(naming))
    print(f"report: {out}")


@command(
    VISUALIZE,
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
    """Draw the nodes on a plane: a picture, or a page to hover, search and select on.

    Parameters
    ----------
    out
        File to write: .png or .svg (needs 'ssge[plots]'), or .html (needs 'ssge[report]').
    title
        Headline of a picture.
    """
    set_up(quiet)
    from ssge.experiments.subject import Subject, draw_map
    from ssge.io.results import refuse_existing

    refuse_existing([out], force)
    draw_map(out, Subject.of(run), title=title, **vars(drawing), **vars(naming))
    print(f"map: {out}")


@command(VISUALIZE, "ssge plot run losses --out losses.png", "ssge plot run spectrum --out spectrum.svg")
def plot(run: Path, kind: Literal["losses", "spectrum", "correlation"], /, *, out: Path, force: Force = False) -> None:
    """Draw the losses of the training, the spectrum of the embedding, or the correlation of its columns.

    Parameters
    ----------
    run
        Folder of a run, or a file with an embedding (not for losses).
    kind
        losses (total, terms and effective rank by epoch), spectrum (eigenvalues of the correlations between columns),
        or correlation (of each column with each other).
    out
        File to write: .png or .svg. Needs pip install 'ssge[plots]'.
    """
    from ssge.experiments.subject import Subject, draw_plot
    from ssge.io.results import refuse_existing

    refuse_existing([out], force)
    draw_plot(out, Subject.of(run), kind)
    print(f"plot: {out}")
