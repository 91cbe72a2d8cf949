"""What `auto` says where no sandbox opens."""

from __future__ import annotations

from typing import cast

import pytest

from agentrunner.errors import SandboxUnavailable
from agentrunner.errors.sandboxes import EngineAway
from agentrunner.sandboxes.base import Sandbox
from agentrunner.sandboxes.choose import AutoSandbox


class Tried:
    """A sandbox that opens, or does not for this reason."""

    def __init__(self, kind: str, error: SandboxUnavailable | None = None) -> None:
        self.kind = kind
        self._error = error

    async def open(self) -> None:
        if self._error is not None:
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
    auto = AutoSandbox([*kinds], lambda kind: cast("Sandbox", Tried(kind, kinds[kind])))
    with pytest.raises(SandboxUnavailable) as raised:
        await auto.open()
    assert raised.value.passes is passes
    assert all(f"{kind}: {error.message}" in str(raised.value) for kind, error in kinds.items())


async def test_where_no_other_opens_everything_stays_as_it_was() -> None:
    kinds = {"a": None, "b": AWAY, "c": MISSING}
    auto = AutoSandbox([*kinds], lambda kind: cast("Sandbox", Tried(kind, kinds[kind])))
    await auto.open()
    before = auto.kind, auto.reason
    for _ in range(2):
        assert not await auto.fall_back("nothing starts in it")
        assert (auto.kind, auto.reason) == before
