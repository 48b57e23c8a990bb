"""Live progress: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ssge.training.trainer import Epoch

_SECONDS = 5
"""Between two plain lines."""


@contextmanager
def progress(epochs: int, title: str) -> Iterator[Callable[[Epoch], None]]:
    """Yield an observer that shows epoch, losses, effective rank and time left on standard error."""
    if not sys.stderr.isatty():
        yield _lines(epochs, title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[terms]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(title, total=epochs, terms="")
        yield lambda line: bar.update(task, completed=line["epoch"], terms=_terms(line))


def _lines(epochs: int, title: str) -> Callable[[Epoch], None]:
    """Return an observer that prints the first epoch, the last one, and some between."""
    began, first, shown = 0.0, 0, 0.0

    def show(line: Epoch) -> None:
        nonlocal began, first, shown
        epoch, now = int(line["epoch"]), time.monotonic()
        if not first:
            began, first = now, epoch
        if epoch in (first, epochs) or now - shown >= _SECONDS:
            done = epoch - first
            left = f"  {(now - began) / done * (epochs - epoch):.0f} s left" if done else ""
            print(f"{title}: epoch {epoch}/{epochs}  {_terms(line)}{left}", file=sys.stderr, flush=True)
            shown = now

    return show


def _terms(line: Epoch) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in line.items() if name not in ("epoch", "seconds"))
