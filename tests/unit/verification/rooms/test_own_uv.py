"""A command of uv is started with the uv that one would start, not with the environment's."""

import subprocess
from pathlib import Path

import pytest

from agentrunner.verification.rooms.decision_sandbox import with_ones_own_uv


@pytest.mark.parametrize(
    ("shell", "own", "started"),
    [
        ("uv run pytest -q", True, "own run pytest -q"),
        ("cd . && uv sync && uv run x", True, "own sync\nown run x"),
        ("uv run x", False, "env run x"),
        ("uv sync && pytest", True, "env sync"),
        ("env A=1 pytest", True, ""),
    ],
)
def test_the_uv_of_a_command(tmp_path: Path, shell: str, own: bool, started: str) -> None:
    bins = {"env": tmp_path / "re po/.venv/bin", "own": tmp_path / "bin"}
    for name, place in bins.items():
        place.mkdir(parents=True)
        if own or name == "env":
            (place / "uv").write_text(f'#!/bin/sh\necho {name} "$@"\n')
            (place / "uv").chmod(0o755)
    path = f"{bins['env']}:{bins['own']}:/usr/bin:/bin"
    text = with_ones_own_uv(f":; {shell}", tmp_path / "re po", shell)
    done = subprocess.run(
        ["sh", "-c", text], env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == started
