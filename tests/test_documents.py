"""README and docs: code runs, commands parse, links and pictures lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))


def blocks(file: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / file).read_text(), re.DOTALL)


def anchors(file: Path) -> set[str]:
    """Return the anchors of a page's headings, as Markdown viewers make them."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("code", blocks("README.md", "python"))
def test_readme_code_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    if "model" in names:
        assert np.array_equal(names["model"].embedding_, names["again"].embedding_)  # type: ignore[attr-defined]


def test_readme_is_a_front_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 115


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page: str) -> None:
    from ssge.cli import application
    from ssge.methods.ssge import SSGEConfig

    app = application(SSGEConfig | None)
    commands = [line.split("#")[0] for block in blocks(page, "bash") for line in block.splitlines()]
    shown = [shlex.split(line) for line in commands if line.startswith("ssge ")]
    assert page != "README.md" or len(shown) >= 9
    for words in shown:
        app.parse_args(words[1:], exit_on_error=False, print_error=False)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = re.findall(r"`make ([a-z]+)`", (ROOT / page).read_text())
    named += [line.split()[1] for line in commands if line.startswith("make ")]
    assert set(named) <= set(targets)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES)
def test_scripts_named_in_a_page_exist(page: str) -> None:
    for script in re.findall(r"python ((?:benchmarks|examples)/\w+\.py)", (ROOT / page).read_text()):
        assert (ROOT / script).is_file(), script


def test_the_floor_of_torch_has_no_known_holes_in_loading_weights() -> None:
    """Loading with weights_only had advisories up to 2.9."""
    found = re.search(r'"torch>=(\d+)\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    assert found and (int(found[1]), int(found[2])) >= (2, 10)
