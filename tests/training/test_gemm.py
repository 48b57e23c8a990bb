"""Products by oneDNN are as exact as any in float32, and the switch is put back."""

from __future__ import annotations

import pytest
import torch

from ssge.training import gemm
from ssge.training.gemm import fast_float32


@pytest.mark.parametrize(
    ("m", "k", "n"), [(3000, 500, 512), (128, 2048, 512), (5, 7, 9), (512, 512, 512), (64, 20000, 64)]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_products_are_rounded_to_float32_at_most(m: int, k: int, n: int, transposed: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(k, m, generator=generator).t() if transposed else torch.randn(m, k, generator=generator)
    b, added = torch.randn(k, n, generator=generator), torch.randn(m, n, generator=generator)
    exact = added.double() + a.double() @ b.double()
    with fast_float32():
        found = added.clone().addmm_(a, b)
    assert float((found - exact).norm() / exact.norm()) < 2e-6  # bfloat16 would give 2e-3


def test_the_switch_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = torch.backends.mkldnn.matmul
    before = settings.fp32_precision
    monkeypatch.setattr(gemm, "onednn_is_quicker", lambda: True)
    with pytest.raises(KeyError), fast_float32():
        assert settings.fp32_precision == "bf16"
        raise KeyError
    assert settings.fp32_precision == before


@pytest.mark.parametrize(
    ("facts", "quicker"),
    [
        ({"cpu_name": "AMD EPYC", "avx512_f": True}, True),
        ({"cpu_name": "AMD EPYC", "avx512_f": True, "amx_bf16": True}, False),
        ({"cpu_name": "AMD Ryzen", "avx512_f": False}, False),
        ({"cpu_name": "Intel Xeon", "avx512_f": True}, False),
        ({}, False),
    ],
)
def test_processors_that_would_round_are_left_alone(
    facts: dict[str, object], quicker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: facts)
    gemm.onednn_is_quicker.cache_clear()
    assert gemm.onednn_is_quicker() is quicker
    gemm.onednn_is_quicker.cache_clear()
