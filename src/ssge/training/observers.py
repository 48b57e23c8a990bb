"""Observers of a training: progress on standard error, and signals that end it after the current epoch."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ssge.ops.collective import world
from ssge.training.trainer import Epoch, Observer

log = logging.getLogger(__name__)

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_SECONDS = 5
"""Between two plain lines of progress."""


@contextmanager
def stop_on_signals() -> Iterator[Observer]:
    """Yield an observer that stops a training after the epoch in which a signal came; a second Ctrl-C stops at once."""
    stopped = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        if stopped and number == signal.SIGINT:
            raise KeyboardInterrupt
        stopped = True
        if number == signal.SIGINT or world() == 1:  # torchrun sends the others when one process has ended
            log.warning("Stopping after this epoch; press Ctrl-C again to stop at once.")

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # Python allows handlers there alone
        numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
        before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield lambda _line: stopped
    except Exception:
        if before and world() > 1:  # torchrun ends all processes when one has ended; this one must still say why
            before[signal.SIGTERM] = signal.SIG_IGN
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def progress(epochs: int, title: str) -> Iterator[Callable[[Epoch], None]]:
    """Yield an observer that shows epoch, losses and time left: a bar in a terminal, plain lines elsewhere."""
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
