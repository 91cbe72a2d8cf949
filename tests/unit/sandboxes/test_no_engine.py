"""What to do where no container engine answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.sandboxes.docker.engine import NO_ENGINE, NONE_INSTALLED, remedy_without_engine


@pytest.mark.parametrize(
    ("program", "host", "remedy"),
    [("", "", NONE_INSTALLED), ("podman", "", NO_ENGINE), ("", "unix:///x.sock", NO_ENGINE)],
)
def test_an_engine_is_started_only_where_one_is_installed(
    tmp_path: Path, program: str, host: str, remedy: str
) -> None:
    if program:
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    assert remedy_without_engine({"PATH": str(tmp_path), "DOCKER_HOST": host}) == remedy
