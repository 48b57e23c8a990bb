"""Signals that let the epoch end and the checkpoint be written: Ctrl-C, termination, hang-up."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from ssge.ops.collective import world
from ssge.training.trainer import Epoch

log = logging.getLogger(__name__)


SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupt:
    """An observer that stops the training after the epoch in which a signal came; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.stopped = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
            self._before = {number: signal.signal(number, self._stop) for number in numbers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if self.stopped and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.stopped = True
        if number == signal.SIGINT or world() == 1:  # torchrun sends the others when one process has ended
            log.warning("Stopping after this epoch; press Ctrl-C again to stop at once.")

    def __call__(self, _line: Epoch) -> bool:
        """Say whether to stop."""
        return self.stopped
