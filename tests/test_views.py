"""Views: rates, independence, and randomness from the generator alone."""

from __future__ import annotations

import pytest
import torch

from graphs import random_graph
from ssge.errors import InputError
from ssge.views import Compose, DropEdges, MaskFeatures, View


def view() -> View:
    return View.of(random_graph(n=300, p=200, m=3000), dtype=torch.float64)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_rates_are_met() -> None:
    clean = view()
    edges = clean.adjacency.num_entries - clean.num_nodes
    dropped = DropEdges(0.3)(clean, generator()).adjacency.kept
    assert dropped is not None
    assert (dropped.sum().item() - clean.num_nodes) / edges == pytest.approx(0.7, abs=0.03)
    masked = MaskFeatures(0.25)(clean, generator()).features.kept
    assert masked is not None
    assert masked.double().mean().item() == pytest.approx(0.75, abs=0.1)


def test_directions_are_dropped_independently() -> None:
    clean = view()
    dense = DropEdges(0.5)(clean, generator()).adjacency.matrix.forward.to_dense() > 0
    assert not torch.equal(dense, dense.T)


def test_self_loops_stay() -> None:
    dense = DropEdges(1.0)(view(), generator()).adjacency.matrix.forward.to_dense()
    torch.testing.assert_close(dense, torch.eye(300, dtype=torch.float64))


def test_same_generator_state_gives_the_same_view_and_global_state_plays_no_part() -> None:
    augment = Compose(DropEdges(0.4), MaskFeatures(0.4))
    clean = view()
    torch.manual_seed(1)
    first = augment(clean, generator(5))
    torch.manual_seed(2)
    second, other = augment(clean, generator(5)), augment(clean, generator(6))
    assert torch.equal(first.adjacency.kept, second.adjacency.kept)  # type: ignore[arg-type]
    assert torch.equal(first.features.kept, second.features.kept)  # type: ignore[arg-type]
    assert not torch.equal(first.adjacency.kept, other.adjacency.kept)  # type: ignore[arg-type]
    assert clean.adjacency.kept is None


def test_rate_zero_is_the_clean_view() -> None:
    clean = view()
    assert Compose(DropEdges(0), MaskFeatures(0))(clean, generator()) is clean


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_rate_must_be_a_probability(rate: float) -> None:
    with pytest.raises(InputError, match="edge_drop must be a probability"):
        DropEdges(rate)
    with pytest.raises(InputError, match="feature_mask must be a probability"):
        MaskFeatures(rate)
