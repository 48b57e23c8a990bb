"""The command that reproduces the paper."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from ssge.cli.options import JUDGE, Quiet, Switch, Threads, command, set_up

What: TypeAlias = Literal[
    "classification", "clustering", "efficiency", "ablation", "covariance", "uniformity", "lambda", "dimension",
    "augmentation", "all",
]  # fmt: skip


SEVERAL = Parameter(consume_multiple=True, negative_iterable="")


@command(
    JUDGE,
    "ssge reproduce ablation --datasets cora citeseer",
    "ssge reproduce classification --methods ssge cca_ssg bgrl --seeds 3",
    "ssge reproduce all --fast --datasets cora citeseer   # under an hour on two cores",
)
def reproduce(
    what: What,
    /,
    *,
    datasets: Annotated[list[str] | None, SEVERAL] = None,
    methods: Annotated[list[str] | None, SEVERAL] = None,
    seeds: int | None = None,
    fast: Switch = False,
    minutes: float | None = None,
    out: Path = Path("reproduction"),
    threads: Threads = None,
    quiet: Quiet = False,
) -> None:
    """Reproduce a table or figure of the paper: ours beside the published, as Markdown, CSV and LaTeX or PNG and SVG.

    Finished runs are kept in the folder and not run again, so an interrupted command continues.

    Parameters
    ----------
    what
        A table: classification, clustering, efficiency, ablation. A figure: covariance, uniformity, lambda, dimension,
        augmentation. Or all.
    datasets
        Some of the paper's seven; default: all. Those that cannot be loaded are listed with the reason.
    methods
        Some of the paper's; default: all.
    seeds
        Encoder seeds; default: 10 of SSGE and 3 of other methods, or 1 if fast.
    fast
        Less thorough: one seed, few points per figure, quick probe, schedules cut to --minutes.
    minutes
        Longest training; default: 20, or 1 if fast. A longer one is a gap in the table, and cut if fast.
    out
        Folder for runs and results.
    """
    set_up(quiet, threads)
    from ssge.errors import InputError
    from ssge.experiments.reproduce import EXPERIMENTS, Scope, published
    from ssge.experiments.reproduce import reproduce as carry_out
    from ssge.methods import METHODS
    from ssge.registry import Registry
    from ssge.training.allocator import kept_memory

    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds must be 1 or more; received {seeds}.")
    if minutes is not None and not minutes > 0:
        raise InputError(f"--minutes must be positive; received {minutes:g}.")
    known: Registry[str] = Registry("dataset of the paper")
    for name in published.DATASETS:
        known.add(name, name)
    scope = Scope(
        out,
        tuple(known[name] for name in datasets or published.DATASETS),
        tuple(METHODS.canonical(name) for name in methods or published.METHODS),
        seeds=(seeds, seeds) if seeds else (1, 1) if fast else (10, 3),
        fast=fast,
        minutes=minutes or (1.0 if fast else 20.0),
    )
    with kept_memory():
        written = carry_out(EXPERIMENTS if what == "all" else [what], scope, quiet)
    for name, paths in written.items():
        for path in paths:
            print(path)
        if not paths:
            print(f"{name}: nothing to write for these datasets")
