"""Live progress: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from ssge.training.trainer import Epoch


class ProgressBar:
    """An observer that shows epoch, losses, effective rank and time left on standard error.

    Parameters
    ----------
    epochs
        How many there will be.
    title
        Shown in front.
    """

    def __init__(self, epochs: int, title: str = "training") -> None:
        self.epochs = epochs
        self.title = title
        self._shown = 0.0
        self._began: tuple[float, int] | None = None
        self._bar = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TextColumn("{task.fields[terms]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(title, total=epochs, terms="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, line: Epoch) -> None:
        """Show one epoch."""
        epoch = int(line["epoch"])
        terms = "  ".join(f"{k} {v:.4g}" for k, v in line.items() if k not in ("epoch", "seconds"))
        now = time.monotonic()
        if self._began is None:
            self._began = (now, epoch)
        if self._bar is not None:
            self._bar.update(self._task, completed=epoch, terms=terms)
        elif epoch == self.epochs or epoch == self._began[1] or now - self._shown >= 5:
            done = epoch - self._began[1]
            left = f"  {(now - self._began[0]) / done * (self.epochs - epoch):.0f} s left" if done else ""
            print(f"{self.title}: epoch {epoch}/{self.epochs}  {terms}{left}", file=sys.stderr, flush=True)
            self._shown = now
