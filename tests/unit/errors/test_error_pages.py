"""Every error has one code, a meaning and advice, and the page of them is that of the classes."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentrunner import cli, registry
from agentrunner.commands.manual import EXIT_CODES
from agentrunner.errors.error import AgentRunnerError
from agentrunner.errors.reference import (
    by_code,
    by_what,
    meaning_and_advice,
    old_codes,
    page,
    whole_page,
    with_own_code,
)

ROOT = Path(__file__).parents[3]
KINDS = by_code()


def test_the_overview_has_each_code_once() -> None:
    assert sorted(code for codes in by_what().values() for code in codes) == list(by_code())


def test_a_code_is_one_word_of_one_class() -> None:
    written = Counter(kind.code for kind in with_own_code())
    assert written - Counter(KINDS.keys()) == {"base-url-refused": 1}, (
        "the task's and the machine's"
    )
    assert [code for code in KINDS if not re.fullmatch(r"[a-z]+(-[a-z]+)*", code)] == []
    assert set(old_codes()).isdisjoint(KINDS)


def test_where_one_text_is_shown_it_says_what_to_do() -> None:
    assert AgentRunnerError("It is gone.", remedy="a path").in_one_text == "It is gone. Try: a path"
    assert (
        AgentRunnerError("is not there", remedy="make   it").in_one_text
        == "is not there. Try: make it"
    )
    assert AgentRunnerError("Is it?").in_one_text == "Is it?"


def test_every_exit_code_is_explained() -> None:
    assert {kind.exit_code for kind in with_own_code()} <= set(EXIT_CODES)


OF_REPLIES = """ambiguous duplicate_key empty forbidden_yaml incomplete invalid missing not_found
placeholder refusal syntax too_large unsupported_version wrong_type""".split()


def test_an_earlier_spelling_explains_the_code_that_it_became() -> None:
    became = {old: f"reply-{old.replace('_', '-')}" for old in OF_REPLIES}
    became |= {
        "surroundings": "infrastructure",
        "sandbox-invalid_request": "sandbox-invalid-request",
    }
    assert old_codes() == became
    for old, code in became.items():
        assert CliRunner().invoke(cli.app, ["explain", old]).output.startswith(f"# {code}\n")


def calls() -> Iterator[tuple[Path, ast.Call]]:
    for folder in ("agentrunner", "graph", "nodes", "prompts"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield file, node


def test_an_error_has_the_code_of_its_class() -> None:
    """Findings and warnings have codes of their own; what is raised has a class."""
    names = {kind.__name__ for kind in KINDS.values()}
    spelled = [
        f"{file}:{call.lineno}"
        for file, call in calls()
        if getattr(call.func, "id", "") in names
        for keyword in call.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    ]
    assert spelled == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_error_says_what_it_means_and_what_to_do(kind: type[AgentRunnerError]) -> None:
    text = page(kind)
    assert text.startswith(f"# {kind.code}\n\n") and "**What to do.** " in text
    for command in re.findall(r"`agentrunner ([a-z]+)\b", text):
        assert command in cli.COMMANDS


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_advice_is_not_only_that_the_message_says_it(kind: type[AgentRunnerError]) -> None:
    sentences = re.split(r"(?<=[.;:])\s+", " ".join(meaning_and_advice(kind)[1].split()))
    assert any("the message" not in sentence.lower() for sentence in sentences)


def test_the_kinds_that_a_page_names_are_kinds() -> None:
    _, advice = meaning_and_advice(KINDS["unknown-kind"])
    named = re.search(r"name of an adapter \((.*?)\)", " ".join(advice.split()))
    assert named is not None
    known = {*registry.WORKERS, *registry.PLANNERS, *registry.SANDBOXES}
    assert set(re.findall(r"`(.+?)`", named[1])) <= known


def test_the_page_of_all_codes_is_that_of_the_classes() -> None:
    written = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert written == whole_page(), "python scripts/error_page.py"


@pytest.mark.parametrize(
    ("asked", "code"),
    [("budget: tokens", "budget"), ("too_large", "reply-too-large"), ("too-large", "too-large")],
)
def test_explain_prints_the_page(asked: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call(cli.app, ["explain", asked], "agentrunner") == 0
    assert capsys.readouterr().out == page(KINDS[code])
