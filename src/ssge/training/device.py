"""Where to compute."""

from __future__ import annotations

import torch

from ssge.errors import InputError


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
