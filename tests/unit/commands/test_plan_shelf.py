"""Several plans of one repository: new, list, switch, archive; and words at the prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner import cli
from agentrunner.commands.talking import meant
from agentrunner.storage.locks import me
from agentrunner.storage.plan_folder import plan_folder
from tests.kit.plan_shell import SCRIPT, WISH, Shell, shell

__all__ = ["shell"]


def wish(shell: Shell) -> None:
    shell.talks.script([WISH])
    assert shell("a page of products", "--yes", *SCRIPT) == 0


def test_a_new_plan_leaves_the_one_before_as_it_stands(shell: Shell) -> None:
    wish(shell)
    before = shell.tree
    assert shell("new") == 0 and "a-page-of-products" in shell.out
    assert shell("list") == 0 and shell.out.startswith("  a-page-of-products  0 of 2 done")
    assert shell() == 0 and "no plan yet" in shell.out
    wish(shell)
    assert shell("list", "--json") == 0
    assert [(row["name"], row["current"]) for row in shell.told["plans"]] == [
        ("current", True), ("a-page-of-products", False),
    ]  # fmt: skip
    assert shell("switch", "a-page-of-products") == 0 and "a-page-of-products-2" in shell.out
    assert shell.tree == before


def test_what_is_archived_is_listed_on_demand_and_comes_back(shell: Shell) -> None:
    wish(shell)
    assert shell("archive") == 0 and max(map(len, shell.out.splitlines())) < 80
    assert shell("list") == 0 and "has no plan" in shell.out
    assert shell("list", "--all") == 0 and "archived" in shell.out
    assert shell("switch", "a-page-of-products") == 0
    assert shell("list", "--all") == 0 and shell.out.startswith("* current")


def test_both_say_as_json_what_was_put_away(shell: Shell) -> None:
    assert shell("new", "--json") == 0 and shell.told == {"kept": None}
    wish(shell)
    assert shell("new", "first", "--json") == 0 and shell.told == {"kept": "first"}
    assert shell("switch", "first", "--json") == 0
    assert shell.told == {"current": "first", "kept": None}
    assert shell("new", "first", "--json") == 0
    assert shell("archive", "first", "--json") == 0 and shell.told == {"archived": "first"}
    assert shell("archive", "--json") == 0 and shell.told == {"archived": None}


@pytest.mark.parametrize(
    "command", [("show",), ("show", "1"), ("status",), ("list",), ("show", "--json")]
)
def test_what_is_shown_of_a_plan_goes_to_a_file(shell: Shell, command: tuple[str, ...]) -> None:
    wish(shell)
    assert shell(*command) == 0
    shown, file = shell.out, shell.talks.repo.parent / "shown"
    assert shell(*command, "-o", str(file)) == 0
    assert (shell.out, file.read_text()) == ("", shown)


def test_a_name_is_free_known_and_safe(shell: Shell) -> None:
    wish(shell)
    assert shell("switch", "nobody") == 2 and "no plan" in shell.err
    assert shell("new", "../away") == 2 and "cannot name a plan" in shell.err
    assert shell("new", "first") == 0
    wish(shell)
    assert shell("new", "first") == 2 and "already" in shell.err
    assert shell("archive", "first") == 0
    assert shell("archive", "other") == 2
    assert len(shell.tree) > 1, "the current one has stayed"


def test_nothing_is_put_aside_while_it_is_carried_out(shell: Shell) -> None:
    wish(shell)
    folder = plan_folder(shell.talks.state_dir, shell.talks.repo)
    lock = folder.lock()
    lock.acquire(me("", "2026-11-23T12:00:00.000Z"))
    try:
        assert shell("new") != 0 and "this plan" in shell.err
        assert folder.plan.is_file()
    finally:
        lock.close()


def test_without_a_plan_nothing_is_moved(shell: Shell) -> None:
    for command in ("new", "archive"):
        assert shell(command) == 0 and "no current plan" in shell.out
    assert shell("list") == 0 and "has no plan" in shell.out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("y", True),
        ("はい", True),
        ("", False),
        ("no", False),
        ("いいえ", False),
        ("quit", False),
        ("/undo it", False),
        ("put the search first", "put the search first"),
        ("検索を先に", "検索を先に"),
    ],
)
def test_a_line_at_the_prompt_is_yes_no_or_what_should_be_different(
    line: str, expected: bool | str
) -> None:
    assert meant(line) == expected


def test_help_lists_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.call(cli.app, ["plan", "--help"], "agentrunner") == 0
    told = capsys.readouterr().out
    assert all(f"\n  {name} " in told for name in ("new", "list", "switch", "archive"))
