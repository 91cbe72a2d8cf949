"""What to do where no container engine answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.errors import SandboxUnavailable
from agentrunner.sandboxes.docker import engine
from agentrunner.sandboxes.docker.engine import (
    NO_ENGINE,
    NONE_INSTALLED,
    Engine,
    remedy_without_engine,
)
from tests.kit.files import write
from tests.kit.missing import missing


@pytest.mark.parametrize(
    ("program", "host", "remedy"),
    [("", "", NONE_INSTALLED), ("podman", "", NO_ENGINE), ("", "unix:///x.sock", NO_ENGINE)],
)
def test_an_engine_is_started_only_where_one_is_installed(
    tmp_path: Path, program: str, host: str, remedy: str
) -> None:
    if program:
        write(tmp_path, {program: "#!/bin/sh\n"})
    assert remedy_without_engine({"PATH": str(tmp_path), "DOCKER_HOST": host}) == remedy


@pytest.mark.parametrize("installed", [True, False])
async def test_only_an_engine_that_is_installed_may_come_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    monkeypatch.setattr(engine, "engine_address", lambda _: f"unix://{tmp_path}/none.sock")
    if installed:
        write(tmp_path, {"podman": "#!/bin/sh\n"})
    with pytest.raises(SandboxUnavailable) as raised:
        await Engine.connect({"PATH": str(tmp_path)})
    assert raised.value.passes is installed


async def test_looking_for_an_engine_does_not_block_a_server(tmp_path: Path) -> None:
    """Studio ends a run at the first blocking call on its event loop."""
    try:
        from blockbuster import blockbuster_ctx
    except ImportError:
        missing("blockbuster is not installed (the extra `studio`)")
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    with blockbuster_ctx(), pytest.raises(SandboxUnavailable):
        await Engine.connect({**environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    with blockbuster_ctx(), pytest.raises(SandboxUnavailable):
        await Engine.connect({**environ, "DOCKER_CONFIG": str(tmp_path)})
