"""Ctrl-C that lets the epoch end and the checkpoint be written."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from ssge.training.trainer import Epoch

log = logging.getLogger(__name__)


class Interrupt:
    """An observer that stops the training after the epoch in which Ctrl-C was pressed; pressed twice, at once."""

    def __init__(self) -> None:
        self.pressed = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._press)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _press(self, _number: int, _frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True
        log.warning("Stopping after this epoch; press Ctrl-C again to stop at once.")

    def __call__(self, _line: Epoch) -> bool:
        """Say whether to stop."""
        return self.pressed
