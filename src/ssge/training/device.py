"""Where to compute, and in which precision."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import torch

from ssge.errors import InputError, UnknownNameError

Precision: TypeAlias = Literal["auto", "bf16", "float32", "float64"]
"""``bf16``: weights, optimizer and losses in float32; products of the encoder and of the moments in bfloat16."""


def choose_device(device: str) -> torch.device:
    """Return the device of that name, tried out; ``auto`` is a GPU where there is one."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        tried = torch.ones(1, device=device)
        tried.cpu()  # what cannot be brought back, such as "meta", cannot be used
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {device!r} cannot be used here: {str(error).splitlines()[0]}") from None
    return tried.device


def choose_precision(precision: str, device: torch.device) -> str:
    """Return the precision of that name; ``auto`` is bf16 where the device computes with it, else float32."""
    if precision not in get_args(Precision):
        raise UnknownNameError("precision", str(precision), get_args(Precision))
    if precision != "auto":
        return precision
    return "bf16" if _has_bf16(device) else "float32"


def _has_bf16(device: torch.device) -> bool:
    """Tell whether a device has instructions for bfloat16; elsewhere products would take longer than in float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    found = torch.cpu.get_capabilities()
    return bool(found.get("avx512_bf16") or found.get("amx_bf16"))
