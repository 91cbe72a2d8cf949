"""Reading Python that others wrote."""

from __future__ import annotations

import ast
import warnings

import pytest

from agentrunner.text.python_source import _silence, python_tree


@pytest.mark.parametrize("text", ["def", "\0", "(" * 10_000, "-" * 200_000 + "1"])
def test_what_is_no_python_has_no_tree(text: str) -> None:
    assert python_tree(text) is None


def test_what_python_finds_odd_in_it_is_not_printed() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        _silence.cache_clear()
        assert isinstance(python_tree("y = '\\d'\n"), ast.Module)
    _silence.cache_clear()
    assert not seen
