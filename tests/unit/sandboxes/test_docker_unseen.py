"""A folder that is here and that the engine does not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.sandboxes.docker.engine import unavailable

HOST = "unix:///run/docker.sock"
WORDS = {
    "Docker": '400 Client Error: Bad Request ("invalid mount config for type "bind": bind source'
    ' path does not exist: {0}")',
    "Docker, as it makes it": "error while creating mount source path '{0}': mkdir: read-only",
    "Podman": "statfs {0}: no such file or directory",
    "Docker Desktop": "Mounts denied: \nThe path {0} is not shared from the host and is not known",
}


@pytest.mark.parametrize("below", ["", ".git"])
@pytest.mark.parametrize("engine", WORDS)
def test_what_to_do_is_said_of_a_folder_that_is_only_here(
    tmp_path: Path, engine: str, below: str
) -> None:
    repo = tmp_path / "a repo"
    (repo / ".git").mkdir(parents=True)
    error = unavailable(HOST, WORDS[engine].format(repo / below), repo)
    assert error.code == "sandbox-unavailable"
    assert f"{HOST} does not see {repo}, which is here" in error.message
    assert "at the same path" in error.remedy and "container.md" in error.remedy


@pytest.mark.parametrize("engine", WORDS)
def test_a_folder_that_is_nowhere_is_said_in_the_engine_s_words(
    tmp_path: Path, engine: str
) -> None:
    words = WORDS[engine].format(tmp_path / "gone")
    error = unavailable(HOST, words, tmp_path)
    assert (error.message, error.remedy) == (f"no sandbox on {HOST}: {words}", "")
