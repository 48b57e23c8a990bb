"""Keep freed memory during training, so that each step reuses the blocks of the one before."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of glibc's <malloc.h>
_DEFAULTS = {_TRIM_THRESHOLD: 128 << 10, _MMAP_MAX: 65536}
_KEEP = {_TRIM_THRESHOLD: -1, _MMAP_MAX: 0}  # -1: never trimmed


@contextmanager
def kept_memory() -> Iterator[None]:
    """Let the allocator keep what is freed inside, and give it all back at the end.

    By default glibc asks the system for each large block and returns it when freed; every page of a fresh block
    is then zeroed and mapped anew, which takes longer than most passes over it. A training step frees and wants
    again the same few sizes. Other allocators than glibc's are left alone.
    """
    libc = _glibc()
    if libc is None:
        yield
        return
    for name, value in _KEEP.items():
        libc.mallopt(name, value)
    try:
        yield
    finally:
        for name, value in _DEFAULTS.items():  # glibc does not report the values before
            libc.mallopt(name, value)
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
