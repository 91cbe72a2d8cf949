"""Which run is meant where none is named, and answering without words."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentrunner.commands.console import Output
from agentrunner.commands.overview import overview
from agentrunner.commands.pick import FITS, picker_screen, run_for
from agentrunner.plans.execution.task_runs import TaskRun, TaskRunStore
from agentrunner.plans.store import PlanStore
from agentrunner.storage.locks import me
from agentrunner.storage.plan_folder import plan_folder
from agentrunner.storage.plan_shelf import put_aside
from agentrunner.text.terminal import cell_width
from tests.kit.plan_project import AT, Work, plan_of
from tests.kit.screen_samples import result
from tests.kit.terminals import Terminal
from tests.unit.commands.shell import Shell

Golden = Callable[[str, str], None]

ROOT = Path(__file__).parents[3]
DONE = {"finished_at": "2026-11-21T06:00:00Z"}


def asked(shell: Shell) -> list[str]:
    return [given["run_id"] for _, given in shell.engine.asked]


@pytest.mark.parametrize(
    ("verb", "arguments", "fits", "other"),
    [
        ("resume", [], {"state": "FAILED", **DONE}, {"state": "COMPLETE", **DONE}),
        ("resume", [], {"state": "RUNNING"}, {"state": "FAILED", **DONE}),
        ("resume", [], {"state": "RUNNING"}, {"state": "PLANNING", "start_error": "No set-up."}),
        ("resume", [], {"state": "PLANNING", "start_error": "No."}, {"state": "COMPLETE", **DONE}),
        ("cancel", [], {"state": "RUNNING"}, {"state": "FAILED", **DONE}),
        ("cancel", [], {"state": "PLANNING", "waiting": "plan"}, {"state": "COMPLETE", **DONE}),
        (
            "accept",
            ["--reason", "x"],
            {"state": "NEEDS_REVIEW", **DONE},
            {"state": "FAILED", **DONE},
        ),
        ("accept", ["--reason", "x"], {"state": "FAILED", **DONE}, {"state": "COMPLETE", **DONE}),
        (
            "accept",
            ["--reason", "x"],
            {"state": "FAILED", **DONE},
            {"state": "NEEDS_REVIEW", "undone": True, **DONE},
        ),
        ("resume", [], {"state": "FAILED", **DONE}, {"state": "FAILED", "undone": True, **DONE}),
        ("answer", ["yes"], {"waiting": "ask_human"}, {"state": "RUNNING"}),
        ("approve", ["--id", "a"], {"waiting": "plan"}, {"state": "FAILED", **DONE}),
        ("reject", ["--id", "a", "--reason", "x"], {"waiting": "plan"}, {"state": "RUNNING"}),
    ],
)
def test_the_only_run_that_fits_is_taken_and_named(
    verb: str, arguments: list[str], fits: dict[str, str], other: dict[str, str], shell: Shell
) -> None:
    shell.add_run("users-api-7f3a", **fits)
    shell.add_run("totals-c21e", **other)
    shell(verb, *arguments)
    assert asked(shell) == ["users-api-7f3a"]
    assert f"{verb}: users-api-7f3a · T" in shell.err


@pytest.mark.parametrize(("verb", "more"), [("accept", ["--reason", "x"]), ("resume", [])])
def test_a_cancelled_run_is_taken_only_where_it_is_named(
    verb: str, more: list[str], shell: Shell
) -> None:
    shell.add_run("users-api-7f3a", state="FAILED", reason="cancelled", **DONE)
    shell.add_run("totals-c21e", state="COMPLETE", **DONE)
    assert shell(verb, *more) == 2
    assert asked(shell) == [] and "error[unknown-run]" in shell.err
    words = " ".join(shell.err.split())
    assert "users-api-7f3a was cancelled" in words
    assert f"try: agentrunner {' '.join([verb, 'users-api-7f3a', *more])}" in words
    shell(verb, "users-api-7f3a", *more)
    assert asked(shell) == ["users-api-7f3a"]


def test_several_that_fit_are_named_in_the_command_as_it_was_typed(shell: Shell) -> None:
    for name in ("users-api-7f3a", "totals-c21e"):
        shell.add_run(name, state="NEEDS_REVIEW", **DONE)
    options = ["--known-red", "test_net", "--reason", "no network here"]
    assert shell("accept", *options) == 2
    words = " ".join(shell.err.split())
    assert "error[ambiguous-run]" in words
    assert "agentrunner accept totals-c21e --known-red test_net --reason 'no network here'" in words


def test_a_task_of_a_plan_that_was_put_aside_is_not_offered(shell: Shell) -> None:
    state = shell.repo.parent / "state"
    shell.add_run("TASK-0001-7f3a", state="RUNNING", part_of="plan")
    folder = plan_folder(state, shell.repo)
    PlanStore(folder.plan).save(
        plan_of([Work()]), at=AT, kind="decompose", author="hana", message="make it"
    )
    TaskRunStore(folder).save(TaskRun("TASK-0001", 1, run_id="TASK-0001-7f3a"))
    shell("resume")
    assert asked(shell) == ["TASK-0001-7f3a"]
    put_aside(state, shell.repo, "old", me("", AT), archived=True)
    for verb in ("resume", "cancel"):
        assert shell(verb) == 2 and "error[unknown-run]" in shell.err
    shell.add_run("totals-c21e", state="RUNNING")
    shell("cancel")
    assert asked(shell) == ["TASK-0001-7f3a", "totals-c21e"]
    assert overview() == 0
    shown = shell.capture.readouterr().out
    assert "totals-c21e" in shown and "TASK-0001" not in shown


def test_what_the_plan_asks_needs_you_and_a_failed_task_has_a_next_command(shell: Shell) -> None:
    shell.add_run("TASK-0001-7f3a", state="FAILED", part_of="plan", **DONE)
    folder = plan_folder(shell.repo.parent / "state", shell.repo)
    store = PlanStore(folder.plan)
    store.save(plan_of([Work()]), at=AT, kind="decompose", author="hana", message="make it")
    about_plan, about_task = store.ask("Net or gross?", AT), store.ask("Why?", AT, "TASK-0001")
    TaskRunStore(folder).save(TaskRun("TASK-0001", 1, run_id="TASK-0001-7f3a", question=about_task))
    assert overview() == 0
    shown = shell.capture.readouterr().out
    assert "Needs you" in shown and "Ended" not in shown and "Net or gross?" in shown
    for number in (about_plan, about_task):
        assert f"agentrunner plan answer {number}" in shown


def test_a_run_that_is_undone_is_taken_only_where_no_other_can_be_undone(shell: Shell) -> None:
    shell.add_run("users-api-7f3a", state="COMPLETE", rounds=1, undone=True, **DONE)
    assert run_for("undo", None, Output(no_input=True)) == "users-api-7f3a"
    shell.add_run("totals-c21e", state="COMPLETE", rounds=1, **DONE)
    assert run_for("undo", None, Output(no_input=True)) == "totals-c21e"


@pytest.mark.parametrize("name", ["users-api-7f3a", "users-api"])
def test_the_name_of_a_waiting_run_alone_shows_what_it_asks(
    name: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `list` and --notify say of it; without a terminal nobody is asked."""
    question = {"id": "3fa91c0aa1b2", "kind": "ask_human", "text": "Same?", "options": []}
    asks = result(state="PLANNING", exit_code=4, reason=None, waiting=question)
    monkeypatch.setattr("agentrunner.api.look_sync", lambda *_, **__: asks)
    shell.add_run("users-api-7f3a", waiting="ask_human")
    assert shell("answer", name) == 4
    assert asks.waiting is not None
    assert asked(shell) == [] and asks.waiting.text in " ".join(shell.out.split())
    assert "agentrunner answer" in shell.out
    assert shell("answer", name, "--json") == 4
    assert shell.lines[-1]["waiting"]["text"] == asks.waiting.text
    monkeypatch.setattr("agentrunner.api.look_sync", lambda *_, **__: result())
    assert shell("answer", name) == 2 and "error[not-waiting]" in shell.err


@pytest.mark.parametrize(
    ("verb", "arguments", "state"),
    [
        ("resume", [], {"state": "FAILED", **DONE}),
        ("cancel", [], {"state": "RUNNING"}),
        ("accept", ["--reason", "x"], {"state": "NEEDS_REVIEW", **DONE}),
        ("undo", [], {"state": "COMPLETE", "rounds": 1, **DONE}),
        ("answer", ["yes"], {"waiting": "ask_human"}),
        ("approve", ["--id", "a"], {"waiting": "plan"}),
        ("reject", ["--id", "a", "--reason", "x"], {"waiting": "plan"}),
    ],
)
def test_several_are_an_error_with_all_of_them(
    verb: str, arguments: list[str], state: dict[str, str], shell: Shell
) -> None:
    assert verb in FITS
    shell.add_run("users-api-7f3a", **state)
    shell.add_run("totals-c21e", **state)
    assert shell(verb, *arguments) == 2
    assert shell.err.startswith("error[ambiguous-run]: several runs fit")
    assert "users-api-7f3a: " in shell.err and "totals-c21e: " in shell.err
    assert f"agentrunner {verb} totals-c21e" in shell.err
    assert shell.engine.asked == []


@pytest.mark.parametrize("verb", ["resume", "cancel", "undo"])
def test_none_is_an_error_too(verb: str, shell: Shell) -> None:
    assert shell(verb) == 2 and "there is no run of" in shell.err
    shell.add_run("users-api-7f3a", state="COMPLETE", **DONE)
    if verb != "undo":
        assert shell(verb) == 2 and "error[unknown-run]: no run of" in shell.err


def test_without_words_and_a_terminal_it_says_what_is_missing(shell: Shell) -> None:
    shell.add_run("users-api-7f3a", waiting="plan")
    for arguments in (["answer", ""], ["approve"], ["reject", "--id", "a"]):
        assert shell(*arguments) == 2
        assert "error[usage]" in shell.err and "agentrunner show users-api-7f3a" in shell.err
        assert shell(*arguments, "--json") == 2
        assert shell.lines[-1]["error"]["code"] == "usage"


def test_candidates_fit_a_narrow_terminal() -> None:
    row = {"run_id": "charge-for-every-piece-2q7x", "title": "T" * 90, "state": "FAILED"}
    screen = picker_screen("undo", [row] * 3, 44)
    assert max(map(len, screen.split("\n"))) <= 44 and "3  charge-for" in screen


@pytest.mark.parametrize("width", [100, 80, 44])
def test_each_candidate_has_its_name_state_and_task(width: int, golden: Golden) -> None:
    rows: list[dict[str, Any]] = [
        {"run_id": "charge-for-every-piece-2q7x", "title": "The cart charges too little",
         "state": "FAILED"},
        {"run_id": "hi-9x2k", "title": "商品一覧ページをつくり直して、検索もつける",
         "state": "RUNNING", "running": False},
    ]  # fmt: skip
    screen = picker_screen("resume", rows, width)
    golden(f"screens/picker-{width}.txt", screen + "\n")
    assert max(map(cell_width, screen.split("\n"))) <= width
    for row in rows:
        assert row["run_id"] in screen and str(row["title"])[:12] in screen
    assert "failed" in screen and "stopped" in screen


def test_resume_of_the_only_run_is_asked_first(tmp_path: Path) -> None:
    seen, code, said = typed(tmp_path, "stopped", ["resume", "-q"], ["n\n"])
    assert "resume users-api-7f30 · Users? [y/N]" in seen and "Nothing was changed." in seen
    assert (code, said) == (0, [])
    folder = tmp_path / "yes"
    folder.mkdir()
    seen, _, said = typed(folder, "stopped", ["resume", "-q"], ["y\n"])
    assert [one[:2] for one in said] == [["resume", "users-api-7f30"]]


SCRIPT = """
import json, sys
from agentrunner import cli
from agentrunner.engine import queries
from agentrunner.results import Result
from tests.unit.commands.fake_engine import FakeEngine

fake = FakeEngine(events=[])
fake.replace_api()
ended = {"exit_code": 3, "state": "NEEDS_REVIEW", "missing": ["AC-1 is not proven yet"]}
waits = {"exit_code": 4, "waiting": {
    "id": "abc", "kind": sys.argv[1], "text": "Which one?", "options": ["one", "two"],
    "subject": json.dumps({"criteria": [{"id": "AC-1", "description": "It greets"}]})}}
shown = ended if sys.argv[1] == "review" else waits
queries.show = lambda state, run: Result.model_validate(shown)
code = cli.call(cli.app, sys.argv[3:], "agentrunner")
said = [[verb, given["run_id"], given.get("answer") and given["answer"].model_dump(mode="json")]
        for verb, given in fake.asked]
open(sys.argv[2], "w").write(json.dumps([code, said]))
"""


def typed(
    folder: Path,
    kind: str,
    arguments: list[str],
    keys: list[str],
    count: int = 1,
    ahead: str = "",
) -> tuple[str, int, list[list[object]]]:
    """What is seen and said where `keys` are typed, one at each prompt, and `ahead` before it."""
    from agentrunner.storage.index import RunIndex, RunRow
    from agentrunner.storage.run_folder import RunFolder

    repo, answers = folder / "shop", folder / "answers.json"
    (repo / ".git").mkdir(parents=True)
    for number in range(count):
        run_id = f"users-api-7f3{number}"
        RunFolder.create(folder / "state", run_id)
        waiting = None if kind in ("stopped", "review") else kind
        state, ended = ("NEEDS_REVIEW", "2026-11-21") if kind == "review" else ("PLANNING", None)
        row = RunRow(
            run_id, "users-api", "Users", str(repo), state, waiting=waiting, finished_at=ended
        )
        RunIndex(folder / "state").record(row)
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    own = {"TERM": "xterm", "NO_COLOR": "1", "PYTHONPATH": str(ROOT), "HOME": str(folder),
           "AGENTRUNNER_STATE_DIR": str(folder / "state")}  # fmt: skip
    argv = [sys.executable, "-c", SCRIPT, kind, str(answers), *arguments]
    with Terminal(argv, repo, {**inherited, **own}) as terminal:
        terminal.type(ahead)
        terminal.answer(keys, ("> ", "[y/N] "))
        terminal.end()
    code, said = json.loads(answers.read_text())
    return terminal.seen.decode(), code, said


def test_answer_alone_shows_the_question_and_asks(tmp_path: Path) -> None:
    seen, _, said = typed(tmp_path, "ask_human", ["answer", "-q"], ["2\n"])
    assert "Which one?" in seen and "2  two" in seen
    assert said[0][:2] == ["respond", "users-api-7f30"]
    assert said[0][2] is not None and said[0][2]["text"] == "2"  # type: ignore[index]


@pytest.mark.parametrize(
    ("verb", "keys", "decision", "text"),
    [
        ("approve", ["yes\n"], "approve", ""),
        ("approve", ["maybe\n", "はい\n"], "approve", ""),
        ("answer", ["no\n", "not yet\n"], "reject", "not yet"),
        ("answer", ["n\n", "\n", "y\n"], "approve", ""),
        ("reject", ["not yet\n"], "reject", "not yet"),
    ],
)
def test_approvals_are_asked(
    verb: str, keys: list[str], decision: str, text: str, tmp_path: Path
) -> None:
    seen, _, said = typed(tmp_path, "plan", [verb, "-q"], list(keys))
    assert "AC-1     It greets" in seen and "id abc" in seen
    assert ('"maybe" is none of y, e, n, q.' in seen) is ("maybe\n" in keys)
    answer = said[0][2]
    assert isinstance(answer, dict)
    assert (answer["id"], answer["decision"], answer["text"]) == ("abc", decision, text)


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_with_a_reason_what_waits_is_shown_and_asked_once(verb: str, tmp_path: Path) -> None:
    seen, _, said = typed(tmp_path, "plan", [verb, "--reason", "as agreed", "-q"], ["y\n"])
    answer = said[0][2]
    assert isinstance(answer, dict)
    assert (answer["id"], answer["decision"], answer["text"]) == ("abc", verb, "as agreed")
    assert seen.index("AC-1     It greets") < seen.index(f'{verb} this, "as agreed"? [y/N]')
    assert "what is wrong" not in seen and "[e]" not in seen


@pytest.mark.parametrize("key", ["n\n", "\n", "\x03"])
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_reason_without_a_yes_leaves_it_waiting(verb: str, key: str, tmp_path: Path) -> None:
    seen, code, said = typed(tmp_path, "plan", [verb, "--reason", "as agreed"], [key])
    assert (code, said) == (4, []) and "It still waits" in seen


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_reason_is_no_answer_in_words(verb: str, tmp_path: Path) -> None:
    seen, code, said = typed(tmp_path, "ask_human", [verb, "--reason", "as agreed"], [])
    assert (code, said) == (2, [])
    assert "agentrunner answer users-api-7f30" in seen


def test_the_reason_of_a_yes_is_asked_after_what_is_missing(tmp_path: Path) -> None:
    seen, _, said = typed(tmp_path, "review", ["accept", "AC-1", "-q"], ["I read it\n"])
    assert seen.index("NEEDS REVIEW  users-api-7f30") < seen.index("AC-1 is not proven yet")
    assert [one[:2] for one in said] == [["accept", "users-api-7f30"]]


@pytest.mark.parametrize("key", ["\n", "\x03"])
def test_a_yes_without_a_reason_accepts_nothing(key: str, tmp_path: Path) -> None:
    seen, code, said = typed(tmp_path, "review", ["accept"], [key])
    assert (code, said) == (3, []) and "Nothing was accepted" in seen


@pytest.mark.parametrize("key", ["q\n", "\x03", "\x04"])
def test_leaving_it_leaves_it_waiting(key: str, tmp_path: Path) -> None:
    seen, code, said = typed(tmp_path, "plan", ["approve"], [key])
    assert (code, said) == (4, [])
    assert "It still waits:  agentrunner answer users-api-7f30" in seen
    assert "Traceback" not in seen


def test_a_run_is_picked_by_its_number(tmp_path: Path) -> None:
    seen, _, said = typed(tmp_path, "plan", ["cancel", "-q"], ["7\n", "2\n"], count=2)
    assert "Which run should cancel take?" in seen and "1 to 2, or the beginning" in seen
    assert [one[:2] for one in said] == [["cancel", "users-api-7f30"]]


@pytest.mark.parametrize(("key", "cancelled"), [("y\n", True), ("\n", False), ("\x03", False)])
def test_a_single_run_is_ended_after_a_yes_only(key: str, cancelled: bool, tmp_path: Path) -> None:
    seen, code, said = typed(tmp_path, "plan", ["cancel", "-q"], [key])
    assert "cancel users-api-7f30 · Users? [y/N]" in seen
    assert bool(said) is cancelled, seen
    assert code == 0 and ("Nothing was changed." in seen) is not cancelled, seen


def test_what_was_typed_before_the_question_is_no_answer_to_it(tmp_path: Path) -> None:
    seen, code, said = typed(tmp_path, "plan", ["approve"], ["q\n"], ahead="y\n")
    assert "[y] approve" in seen and (code, said) == (4, [])
