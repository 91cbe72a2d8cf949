"""Whole runs with real parts; those of this process begin with compiled test tools."""

from __future__ import annotations

import pytest

from tests.kit.byte_code import begin_compiled


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    begin_compiled(monkeypatch)
