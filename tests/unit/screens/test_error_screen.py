from __future__ import annotations

from collections.abc import Callable

import pytest

from agentrunner.errors import AgentRunnerError, EnvironmentNotReady, UsageError
from agentrunner.errors.reference import by_code
from agentrunner.screens.errors import error_screen
from agentrunner.screens.layout import Paint
from tests.kit.screen_samples import EVIL

Golden = Callable[[str, str], None]

ERRORS = {
    "unknown-key": UsageError(
        "runner.worker.max_runtime_sec is not a setting.",
        code="unknown-key",
        path="task.yaml:21 runner.worker.max_runtime_sec",
        source_line="    max_runtime_sec: 900",
        remedy="did you mean max_run_time_sec?",
    ),
    "two-typos": UsageError(
        "runner.wroker is not a setting.",
        code="unknown-key",
        path="task.yaml:21",
        source_line="  wroker:",
        remedy="did you mean worker?",
        details=(("also", "task.yaml:25: runner.budgt is not a setting. Did you mean budget?"),),
    ),
    "environment-not-ready": EnvironmentNotReady(
        "The test command cannot start in the sandbox.",
        details=(
            ("ran", 'uv run pytest -q      exit 127, "uv: not found"'),
            ("sandbox", "bwrap 0.9"),
        ),
        remedy="task.setup.command   |   sandbox.read_paths",
        nothing_spent=True,
    ),
    "encoding": UsageError(
        "docs/登録.md is not UTF-8; it looks like CP932 (Shift_JIS). これは長い説明で、"
        "一行には収まらないので折り返されます。",
        code="encoding",
        remedy="iconv -f CP932 -t UTF-8 docs/登録.md > docs/登録.utf8.md",
    ),
    "no-remedy": AgentRunnerError("Something happened.", code="internal"),
    "changed": UsageError(
        "What users-api-7f3a was made from has changed.",
        code="inputs-changed",
        details=(("changed", "a.md\n--- a\n+++ b\n-old\n+new"),),
        remedy="agentrunner resume users-api-7f3a --on-change replan",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_form(name: str, golden: Golden) -> None:
    golden(f"errors/{name}.txt", error_screen(ERRORS[name]) + "\n")


def test_what_others_wrote_is_harmless_in_every_part() -> None:
    error = AgentRunnerError(
        EVIL, code=EVIL, path=EVIL, source_line=EVIL, remedy=EVIL, details=((EVIL, EVIL),)
    )
    assert not any(character in error_screen(error) for character in "\x1b\x9b\r\u202e")


def test_only_the_head_is_coloured() -> None:
    first, *rest = error_screen(ERRORS["encoding"], paint=Paint(True)).split("\n")
    assert first.startswith("\x1b[1;31merror[encoding]:\x1b[0m ")
    assert not any("\x1b" in line for line in rest)


def test_a_remedy_breaks_at_words_in_a_terminal_and_nowhere_else() -> None:
    remedy = "agentrunner workers tells how to install one; then give it a key or a login, " * 2
    error = UsageError("It cannot.", path="p.md:1", remedy=remedy)
    assert f"  try: {remedy.strip()}" in error_screen(error).splitlines()
    lines = error_screen(error, 100, columns=100).splitlines()
    assert max(map(len, lines)) <= 100
    assert " ".join(" ".join(lines).split()).endswith(f"try: {remedy.strip()}")


def test_a_command_to_try_can_be_pasted_from_a_narrow_terminal() -> None:
    error = UsageError(
        "It is there already.",
        remedy="agentrunner resume users-api-9f3a --on-change continue",
    )
    assert error_screen(error, 44, columns=44).split("\n")[1:] == [
        "  try:",
        "    agentrunner resume users-api-9f3a \\",
        "    --on-change continue",
    ]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("no-plan", 'try: `agentrunner plan "what you want"` makes one.'),
        ("budget: usd", "or take the work back with `agentrunner undo`. More: agentrunner explain"),
        ("no-such-code", "try: agentrunner explain no-such-code"),
    ],
)
def test_without_a_remedy_it_has_what_the_page_of_its_code_advises(code: str, told: str) -> None:
    screen = error_screen(AgentRunnerError("That is wrong.", code=code))
    assert told in " ".join(screen.split())


def test_advice_has_no_links() -> None:
    for code in by_code():
        assert "](" not in error_screen(AgentRunnerError("That is wrong.", code=code))
