"""Commands run in the process of the tests, which saves the import of torch."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import pytest

from ssge.cli import main


def code_of(*words: str | Path) -> int:
    """Run a command and undo what it does to the process; return its exit code."""
    shown, handlers, level = warnings.showwarning, logging.root.handlers[:], logging.root.level
    try:
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
    finally:
        warnings.showwarning, logging.root.handlers[:] = shown, handlers
        logging.root.setLevel(level)
    return int(end.value.code or 0)
