"""Shell completion: the printed script completes commands and flags in a real bash."""

from __future__ import annotations

import subprocess
import sys

import pytest


def script(shell: str) -> str:
    command = [sys.executable, "-m", "ssge", "completion", shell]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("ssge nei", "neighbors"), ("ssge fit edges.csv --edge-d", "--edge-drop"), ("ssge ls rec", "recipes")],
)
def test_bash_completes(typed: str, expected: str) -> None:
    words = typed.split()
    asked = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; COMP_LINE='{typed}'; COMP_POINT={len(typed)}"
    ask = "\n".join([script("bash"), asked, '_ssge; printf "%s\\n" "${COMPREPLY[@]}"'])
    found = subprocess.run(["bash", "-c", ask], check=True, capture_output=True, text=True).stdout.split()
    assert expected in found and all(word.startswith(words[-1]) for word in found)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script(shell: str) -> None:
    text = script(shell)
    assert "ssge" in text and "uniformity-weight" in text
