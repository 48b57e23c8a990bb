"""Which library multiplies matrices in float32 on the processor: MKL, or oneDNN where that takes less time.

On AMD's processors with AVX-512, oneDNN takes a tenth to a fifth less time for the products of a step than MKL, which
was not made for them. PyTorch gives it products in float32 only if they may be rounded to bfloat16. That oneDNN does
with AMX alone, which these processors do not have: there its products are as exact as MKL's, and a test checks it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch


@contextmanager
def fast_float32() -> Iterator[None]:
    """Multiply by the quicker library inside."""
    if not onednn_is_quicker():
        yield
        return
    settings: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = settings.fp32_precision
    settings.fp32_precision = "bf16"
    try:
        yield
    finally:
        settings.fp32_precision = before


@cache
def onednn_is_quicker() -> bool:
    """Tell whether this processor is one of those above."""
    found = torch.cpu.get_capabilities()
    amd = "AMD" in str(found.get("cpu_name", ""))
    amx = any(found.get(name) for name in ("amx_tile", "amx_bf16", "amx_fp16"))
    has_onednn: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(has_onednn and amd and found.get("avx512_f") and not amx)
