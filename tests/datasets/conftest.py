from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own, and no data folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SSGE_CACHE", str(folder))
    monkeypatch.delenv("SSGE_DATA", raising=False)
    return folder
