"""`agentrunner plan` on the command line, with the shipped planners `script` and `mock`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import jsonschema
import pytest

from agentrunner import events, results
from agentrunner.plans.plan import PlanTaskStatus
from agentrunner.plans.store import StoredTask
from agentrunner.storage.locks import me
from tests.kit.plan_project import AT, Work, plan_of
from tests.kit.plan_shell import SCRIPT, WISH, Shell, shell
from tests.kit.talks import change, create, decompose, patch

__all__ = ["shell"]

Golden = Callable[[str, str], None]


def test_help_lists_what_can_be_done_and_that_anything_else_is_said(shell: Shell) -> None:
    assert shell("--help") == 0
    for name in ("[TEXT | COMMAND]", "accept", "show", "answer", "undo", "run", "status"):
        assert name in shell.out
    assert shell("say", "--help") == 0 and "--yes" in shell.out
    assert shell() == 0 and "There is no plan yet." in shell.out


def test_what_nobody_can_decide_waits_and_is_applied_as_it_was_shown(
    shell: Shell, golden: Golden
) -> None:
    shell.talks.script([WISH])
    assert shell("make a product list page", *SCRIPT) == 4
    golden("screens/plan-proposal.txt", shell.out)
    assert shell.tree == [] and shell.talks.store.changes() == []
    assert shell("accept", "--id", "000000000000") == 2 and "error[no-proposal]" in shell.err
    assert shell("accept") == 0 and "version 1: 2 tasks" in shell.out
    assert shell.tree == ["Build", "  TASK-0001 List", "  TASK-0002 Search after TASK-0001"]
    assert shell("accept") == 2 and "error[no-proposal]" in shell.err
    assert shell() == 0
    golden("screens/plan-tree.txt", shell.out)
    assert shell("show", "2") == 0
    golden("screens/plan-task.txt", shell.out)
    assert shell("undo") == 0
    golden("screens/plan-undo.txt", shell.out)
    assert shell.tree == []


def test_yes_applies_and_options_may_stand_before_the_text(shell: Shell) -> None:
    shell.talks.script([WISH, patch(change("delete", "TASK-0001"))])
    assert shell("--yes", *SCRIPT, "make a page") == 0
    assert shell("no list", "-y", *SCRIPT) == 0 and "- " in shell.out
    assert shell.tree == ["Build", "  TASK-0002 Search"]
    assert [c.message for c in shell.talks.store.changes()] == ["make a page", "no list"]


def test_json_is_one_object(shell: Shell) -> None:
    shell.talks.script([WISH, patch(create("n1", "検索"), questions=["Which colour?"])])
    assert shell("make a page", "--json", *SCRIPT) == 4
    waiting = shell.told
    assert (waiting["applied"], waiting["version"]) == (False, 0)
    assert [node["task_id"] for node in waiting["created"]] == [None, "TASK-0001", "TASK-0002"]
    assert waiting["created"][1]["acceptance_criteria"] == ["List: OK"]
    assert waiting["created"][1]["description"] == "List."
    assert shell("accept", "--id", waiting["id"], "--json") == 0
    assert (shell.told["id"], shell.told["applied"]) == (waiting["id"], True)
    assert shell("add a search", "--json", "--yes", *SCRIPT) == 0
    assert shell.told["questions"] == ["Which colour?"] and shell.told["version"] == 2
    assert shell.told["open_questions"] == [{"id": 1, "task_id": "", "text": "Which colour?"}]
    assert shell("--json") == 0
    assert [node["title"] for node in shell.told["nodes"]] == ["Build", "List", "Search", "検索"]
    assert shell.told["open_questions"] == [{"id": 1, "task_id": "", "text": "Which colour?"}]
    assert shell("show", "TASK-0002", "--json") == 0
    assert shell.told["dependencies"] == ["TASK-0001"]
    assert shell("undo", "--json") == 0 and shell.told["undone"] == 2


def test_a_planner_that_only_asks_is_answered(shell: Shell) -> None:
    asks = decompose(questions=["Which framework?"], understanding="It depends.")
    shell.talks.script([asks, WISH])
    assert shell("make a page", *SCRIPT) == 4
    assert "1  Which framework?" in shell.out and "accept" not in shell.out
    assert shell("answer", "1", "Svelte") == 0
    assert shell("answer", "1", "React") == 2 and "error[unknown-question]" in shell.err
    assert shell("make a page", "--yes", *SCRIPT) == 0
    assert "Svelte" in shell.talks.page(1)


def test_an_answer_as_json_says_what_is_left(shell: Shell) -> None:
    asks = decompose(questions=["Which framework?", "Which colour?"], understanding="It depends.")
    shell.talks.script([asks])
    assert shell("make a page", *SCRIPT) == 4
    assert shell("answer", "1", "Svelte", "--json") == 0
    left = {"id": 2, "task_id": "", "text": "Which colour?"}
    assert shell.told == {"answered": 1, "open_questions": [left]}


def test_the_only_open_question_need_not_be_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = decompose(questions=["Which framework?"], understanding="It depends.")
    shell.talks.script([asks, WISH])
    assert shell("make a page", *SCRIPT) == 4
    assert shell("answer") == 2 and "try: agentrunner plan answer 1 TEXT" in shell.err
    monkeypatch.setattr("agentrunner.commands.plan_commands.interactive", lambda output: True)
    typed = iter(["\n", "Svelte\n"])
    monkeypatch.setattr(
        "agentrunner.commands.question_prompt.read_line", lambda prompt: next(typed)
    )
    assert shell("answer") == 4 and "Which framework?" in shell.err
    assert shell("answer") == 0 and "Question 1 is answered." in shell.out
    assert shell("answer") == 2 and "No question is open." in shell.err


def test_a_single_word_is_said_where_it_is_meant_or_has_no_blanks(shell: Shell) -> None:
    shell.talks.script([WISH, patch(create("n1", "Basket"))])
    assert shell("say", "shop", "--yes", *SCRIPT) == 0
    assert shell("商品一覧ページを作って", "--yes", *SCRIPT) == 0
    assert [c.message for c in shell.talks.store.changes()] == ["shop", "商品一覧ページを作って"]


def test_without_a_key_it_can_be_tried(shell: Shell) -> None:
    assert shell("make a page", "--planner", "mock", "--yes") == 0
    assert shell("and more", "--planner", "mock", "--yes") == 0
    assert [line.split()[0] for line in shell.tree] == [
        "Mock",
        *(f"TASK-000{n}" for n in (1, 2, 3)),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["shwo"], 2, "did you mean plan show?"),
        (["delete"], 2, "did you mean plan archive?"),
        (["reset", "--planner", "mock"], 2, "did you mean plan new?"),
        (
            ["foo", "--yes"],
            2,
            'plan --help has the commands. To say it: agentrunner plan say "foo"',
        ),
        (["docs/wish.md"], 2, 'plan has no command "docs/wish.md".'),
        (["stop", "--planner", "mock"], 0, ""),
        (["say"], 0, ""),
        (["show", "TASK-0007"], 2, "error[unknown-task]"),
        (["answer", "1", "x"], 2, "error[unknown-question]"),
        (["undo"], 2, "error[nothing-to-undo]"),
        (["accept"], 2, "error[no-proposal]"),
        (["", "--planner", "mock"], 2, "error[message-empty]"),
        (["x" * 100_000, "--planner", "mock"], 2, "error[message-too-long]"),
        (["do it", "--repo", "nowhere"], 2, "error[bad-repo]"),
        (["do it", "--planner", "nobody"], 2, "error[unknown-kind]"),
        (["do it", "--planner", "checklist"], 2, "--planner openai-chat"),
    ],
)
def test_mistakes_cost_nothing(arguments: list[str], code: int, told: str, shell: Shell) -> None:
    assert shell(*arguments) == code
    assert told in shell.err and shell.talks.prompts() == {}


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--parallel", "0"], 2, "--parallel / -j must be greater than or equal to 1"),
        (["--parallel", "-1"], 2, "--parallel / -j must be greater than or equal to 1"),
        (["--parallel", "1001"], 2, "--parallel / -j must be less than or equal to 1000"),
        (["--parallel", "many"], 2, "no whole number"),
        (["--parallel", "1000"], 0, "TASK-0001"),
        (["--only", "TASK-0099", "--only", "99"], 2, "The plan has no task TASK-0099."),
        (["--only", ""], 2, "--only names no task"),
        (["--only", " , "], 2, "--only names no task"),
        (["--only", "-1"], 2, "The plan has no task -1."),
        (["--only", "1,1", "--only", "task-0001"], 0, "1. TASK-0001"),
        (["--budget", "usd=-1"], 2, "--budget usd=-1 sets no limit"),
        (["--budget", "usd=+1"], 2, "--budget NAME=AMOUNT"),
    ],
)
def test_what_a_run_of_a_plan_cannot_have_is_told_with_a_way_out(
    options: list[str], code: int, told: str, shell: Shell
) -> None:
    shell.talks.store.save(
        plan_of([Work(), Work(needs=[1])]), at=AT, kind="import", author="hana", message="x"
    )
    how = ["--planner", "mock", "--worker", "mock", "--sandbox", "none", "--in-place"]
    (shell.talks.repo / ".git").rmdir()
    assert shell("run", "--dry-run", *how, *options) == code, shell.err
    assert told in shell.err + shell.out
    assert "  try: " in shell.err or not code
    assert not (shell.talks.state_dir / "runs").exists()


def test_a_hundred_kilobytes_are_refused_with_what_to_do(shell: Shell) -> None:
    assert shell("長" * 40_000, "--planner", "mock") == 2
    assert "120,000 bytes; at most 65,536" in shell.err and "put it into a file" in shell.err


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (["--only", "77"], 2, "unknown-task"),
        (["--parallel", "none"], 2, "usage"),
        ([], 2, "no-plan"),
    ],
)
def test_plan_run_has_one_json_result_also_where_nothing_is_begun(
    words: list[str], code: int, error: str, shell: Shell
) -> None:
    if error != "no-plan":
        shell.talks.store.save(plan_of([Work()]), at=AT, kind="import", author="h", message="")
    assert shell("run", "--json", *words) == code
    assert (shell.told["event"], shell.told["exit_code"]) == ("plan_result", code)
    assert shell.told["error"]["code"] == error and f"error[{error}]" in shell.err
    jsonschema.validate(shell.told, events.event_schema())
    assert set(results.PlanResult.model_fields) < shell.told.keys()


def test_where_there_is_no_plan_the_command_is_named_by_which_there_will_be_one(
    shell: Shell,
) -> None:
    def named() -> list[str]:
        shown = []
        for words in ([], ["status"], ["run"]):
            shell(*words)
            shown.append(" ".join(f"{shell.out} {shell.err}".split()))
        return shown

    assert all('agentrunner plan "what you want"' in text for text in named())
    shell.talks.script([WISH, WISH])
    assert shell("make a page", *SCRIPT) == 4
    assert all("agentrunner plan accept" in text for text in named()[1:])
    assert shell("accept") == 0 and shell("new", "first") == 0
    assert all("agentrunner plan switch first" in text for text in named())


def test_a_task_of_a_killed_process_has_the_same_word_on_every_screen(shell: Shell) -> None:
    """What nothing drives any more is stopped, and it runs where something does."""
    shell.talks.script([WISH])
    assert shell("make a page", *SCRIPT, "--yes") == 0
    store, folder = shell.talks.store, shell.talks.folder
    store.note(StoredTask("TASK-0001", PlanTaskStatus.RUNNING, "TASK-0001-ab12"), AT)
    screens: list[list[str]] = [[], ["show", "1"], ["status"]]

    def words() -> list[str]:
        shown = []
        for arguments in screens:
            shell(*arguments)
            shown += [word for word in ("running", "stopped") if f"{word}\n" in f"{shell.out}\n"]
        return shown

    assert words() == ["stopped"] * 3
    with closing(folder.lock()) as lock:
        lock.acquire(me("", AT))
        assert words() == ["running"] * 3
