"""Catalogs: a wrong name is answered by the nearest ones, in one readable line."""

from __future__ import annotations

import pytest

from ssge.errors import UnknownNameError
from ssge.registry import Registry


def catalog(count: int) -> Registry[int]:
    registry: Registry[int] = Registry("recipe")
    for number in range(count):
        registry.add(f"method/graph{number}", number)
    return registry


def test_few_names_are_all_shown() -> None:
    with pytest.raises(UnknownNameError) as error:
        catalog(3)["method/grap1"]
    valid = "method/graph0, method/graph1, method/graph2"
    assert str(error.value) == f"Unknown recipe 'method/grap1'. Did you mean 'method/graph1'? Valid: {valid}."


def test_of_many_names_the_nearest_are_shown() -> None:
    with pytest.raises(UnknownNameError) as error:
        catalog(100)["method/grap57"]
    message = str(error.value)
    assert "Did you mean 'method/graph57'?" in message
    assert message.endswith(" and 90 more.") and message.count("method/graph") == 11
