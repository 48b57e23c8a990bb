"""The process that runs hostile commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from hostile.case import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return a server of commands, which ends with the tests of a file."""
    with closing(Server()) as found:
        yield found
