"""Which known name a slip means: the near one, and none rather than a far one."""

from __future__ import annotations

import pytest

from agentrunner.text.likeness import likest, slip_of

COMMANDS = ["run", "resume", "reject", "list", "watch", "validate", "rm"]


@pytest.mark.parametrize(
    ("word", "name"),
    [("rnu", "run"), ("rum", "run"), ("lst", "list"), ("valdate", "validate"), ("auth", ""),
     ("x", ""), ("rx", "")],
)  # fmt: skip
def test_a_slip_of_a_command(word: str, name: str) -> None:
    assert slip_of(word, COMMANDS) == name


@pytest.mark.parametrize(
    ("word", "names", "name"),
    [
        ("nope", ["noprd", "note-dir", "o"], ""),
        ("codexx", ["claude-code", "codex-cli"], "codex-cli"),
        ("codx", ["claude-code", "codex-cli"], "codex-cli"),
        ("criteria", ["prd", "acceptance_criteria"], "acceptance_criteria"),
        ("acceptance_critera", ["acceptance_criteria"], "acceptance_criteria"),
        ("test_command", ["setup", "test"], "test"),
        ("--stat", ["--strict", "--state-dir"], "--state-dir"),
        ("--nope", ["--no-input"], ""),
        ("max_rounds", ["max_loops"], ""),
    ],
)
def test_the_likest_name(word: str, names: list[str], name: str) -> None:
    assert likest(word, names) == name
