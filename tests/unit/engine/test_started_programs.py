"""The sandbox gets the programs that a command really starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.engine.resources import started_programs


@pytest.mark.parametrize(
    "shell",
    [
        "env PYTHONPATH=src /opt/py/bin/python -m pytest",
        "PYTHONPATH=src timeout 60 /opt/py/bin/python -m pytest",
        "make test",
        "sh scripts/test.sh",
    ],
)
def test_a_program_behind_another_one_is_found(tmp_path: Path, shell: str) -> None:
    (tmp_path / "Makefile").write_text("test:\n\t/opt/py/bin/python -m pytest\n")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "test.sh").write_text("set -e\n/opt/py/bin/python -m pytest\n")
    assert "/opt/py/bin/python" in started_programs(shell, tmp_path)


def test_a_makefile_is_read_in_the_folder_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "Makefile").write_text("test:\n\t/opt/py/bin/python -m pytest\n")
    assert "/opt/py/bin/python" in started_programs("make test", tmp_path, "app")
    assert "/opt/py/bin/python" not in started_programs("make test", tmp_path)
