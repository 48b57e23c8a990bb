"""Kept memory: nothing changes but where memory comes from."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from ssge.training import allocator
from ssge.training.allocator import kept_memory

# In a process of its own: the heap of a long test run holds free blocks of any size, which the figures would rest on.
_PROGRAM = """
import torch
from ssge.training.allocator import kept_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def touch():
    torch.empty(64 << 20, dtype=torch.uint8).fill_(1)

touch()
figures = [resident()]
with kept_memory():
    touch()
    figures.append(resident())
figures.append(resident())
print(*figures)
"""


def test_freed_memory_is_kept_inside_and_given_back_at_the_end() -> None:
    if not sys.platform.startswith("linux") or allocator._glibc() is None:
        pytest.skip("glibc only")
    printed = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True).stdout
    before, within, after = map(int, printed.split())
    assert within - before > 0.9 * (64 << 20)
    assert within - after > 0.9 * (64 << 20)


def test_settings_are_restored_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, name: int, value: int) -> None:
            calls.append((name, value))

        def malloc_trim(self, _: int) -> None:
            calls.append((0, 0))

    monkeypatch.setattr(allocator, "_glibc", Library)
    with pytest.raises(ValueError, match="inside"), kept_memory():
        raise ValueError("inside")
    assert calls == [*allocator._KEEP.items(), *allocator._DEFAULTS.items(), (0, 0)]


def test_other_allocators_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocator, "_glibc", lambda: None)
    with kept_memory():
        assert torch.ones(3).sum() == 3
