"""Kept memory: nothing changes but where memory comes from."""

from __future__ import annotations

import sys

import pytest
import torch

from ssge.training import memory
from ssge.training.memory import kept_memory


def test_freed_memory_is_kept_inside_and_given_back_at_the_end() -> None:
    if not sys.platform.startswith("linux") or memory._glibc() is None:
        pytest.skip("glibc only")
    size = 64 << 20
    before = _resident()
    with kept_memory():
        torch.empty(size, dtype=torch.uint8).fill_(1)
        within = _resident()
    assert within - before > 0.9 * size
    assert within - _resident() > 0.9 * size
    torch.empty(size, dtype=torch.uint8).fill_(1)
    assert _resident() - before < 0.5 * size


def test_settings_are_restored_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int]] = []

    class Library:
        def mallopt(self, name: int, value: int) -> None:
            calls.append((name, value))

        def malloc_trim(self, _: int) -> None:
            calls.append((0, 0))

    monkeypatch.setattr(memory, "_glibc", Library)
    with pytest.raises(ValueError, match="inside"), kept_memory():
        raise ValueError("inside")
    assert calls == [*memory._KEEP.items(), *memory._DEFAULTS.items(), (0, 0)]


def test_other_allocators_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_glibc", lambda: None)
    with kept_memory():
        assert torch.ones(3).sum() == 3


def _resident() -> int:
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * 4096
