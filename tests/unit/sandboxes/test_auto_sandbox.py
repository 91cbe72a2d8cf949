"""What `auto` says where no sandbox opens."""

from __future__ import annotations

from typing import cast

import pytest

from agentrunner.errors import SandboxUnavailable
from agentrunner.errors.sandboxes import EngineAway
from agentrunner.sandboxes.base import Sandbox
from agentrunner.sandboxes.choose import AutoSandbox


class Closed:
    """A sandbox that does not open, for this reason."""

    def __init__(self, kind: str, error: SandboxUnavailable) -> None:
        self.kind = kind
        self._error = error

    async def open(self) -> None:
        raise self._error


MISSING = SandboxUnavailable("it is not installed", remedy="install it")
AWAY = EngineAway("it gives no answer", remedy="start it")


@pytest.mark.parametrize(
    ("errors", "passes"),
    [((MISSING, AWAY), True), ((AWAY, MISSING), True), ((MISSING, MISSING), False)],
)
async def test_it_may_pass_by_itself_where_one_of_them_may(
    errors: tuple[SandboxUnavailable, ...], passes: bool
) -> None:
    kinds = dict(zip("ab", errors, strict=True))
    auto = AutoSandbox([*kinds], lambda kind: cast("Sandbox", Closed(kind, kinds[kind])))
    with pytest.raises(SandboxUnavailable) as raised:
        await auto.open()
    assert raised.value.passes is passes
    assert all(f"{kind}: {error.message}" in str(raised.value) for kind, error in kinds.items())
