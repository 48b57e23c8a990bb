"""The documentation site builds without a warning and fetches nothing; the tutorial runs and says what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
TUTORIAL = ROOT / "docs" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        ROOT / "mkdocs.yml",
        "--site-dir",
        out,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_built(site: Path) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").is_file()
    assert (site / "tutorial.html").is_file()


def test_pages_fetch_nothing(site: Path) -> None:
    fetched = r'<(?:script|img|link|iframe|source)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*"'
    for page in site.glob("*.html"):
        found = [tag for tag in re.findall(fetched, page.read_text()) if 'rel="canonical"' not in tag]
        assert not found, page.name


def test_reference_has_the_public_names(site: Path) -> None:
    import ssge

    page = (site / "api.html").read_text()
    for name in ssge.__all__:
        assert name.startswith("__") or f"ssge.{name}" in page, name
    assert "Settings of the method, such as" in page  # parameters are described, not only listed


def test_the_tutorial_runs_and_shows_what_it_prints() -> None:
    notebook = nbformat.read(TUTORIAL, as_version=4)
    shown = [_figures(cell) for cell in notebook.cells if cell.cell_type == "code"]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    found = [_figures(cell) for cell in notebook.cells if cell.cell_type == "code"]
    for before, after in zip(shown, found, strict=True):
        assert after == pytest.approx(before, rel=0.05, abs=0.05)  # another processor rounds differently


def _figures(cell: nbformat.NotebookNode) -> list[float]:
    """Return the numbers that a cell prints or shows."""
    text = "".join(output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in cell.outputs)
    return [float(number) for number in re.findall(r"\d+\.?\d*", text)]
