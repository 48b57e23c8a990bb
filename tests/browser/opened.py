"""A page in the browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Opened:
    """A page in the browser, and what it did besides being shown."""

    page: Any
    file: Path
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Fail if anything but the file was asked for, or an error was logged."""
        assert self.requests == [self.file.as_uri()] and self.errors == []
