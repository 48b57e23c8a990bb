"""The history of a training as a file: one JSON line per epoch."""

from __future__ import annotations

import json
from pathlib import Path

from ssge.errors import InputError


def read_history(path: Path) -> list[dict[str, float]]:
    """Read a history; an error names the first line that is no epoch."""
    if not path.is_file():
        raise InputError(f"No such file: {path}.")
    history = []
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
        try:
            epoch = json.loads(line)
        except ValueError:
            epoch = None
        if not isinstance(epoch, dict):
            raise InputError(f"{path}, line {number}: an epoch as JSON expected; the file is damaged.")
        history.append(epoch)
    return history
