from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentrunner import api, cli, events
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import EnvironmentNotReady, InfraError
from agentrunner.results import Result
from agentrunner.storage.locks import me, run_lock
from agentrunner.storage.run_folder import RunFolder
from tests.kit.screen_samples import EVIL, result, story_events
from tests.unit.commands.fake_engine import TASK
from tests.unit.commands.shell import Shell


def run_python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    )


def test_a_command_is_given_when_its_program_begins_not_when_its_process_was_forked() -> None:
    """A script may wait for long before it becomes the command by `exec`."""
    shows = (
        "from agentrunner import __main__, cli\n"
        "cli.call = lambda *given: print(cli.GIVEN_AT.get()) or 0\n"
        "__main__.main()"
    )
    command = ["sh", "-c", 'sleep 0.2; date +%s.%N; exec "$0" -c "$1"', sys.executable, shows]
    before, given = subprocess.check_output(command, text=True).split()
    assert float(before) < float(given)


# -- help and mistakes --------------------------------------------------------------------------


def test_help_lists_every_command_and_imports_nothing_heavy() -> None:
    script = (
        "import sys; from agentrunner import cli; cli.call(cli.app, ['--help'], 'agentrunner');"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stderr.split())
    heavy = {"langgraph", "langchain_core", "langchain_openai", "openai", "docker", "pydantic"}
    assert loaded & {*heavy, "rich", "yaml", "asyncio", "jinja2"} == set()
    for name in cli.COMMANDS:
        assert f"  {name} " in done.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_help_of_its_own(name: str, shell: Shell) -> None:
    assert shell(name, "--help") == 0
    assert f"agentrunner {name}" in shell.out


def test_validate_needs_no_engine(shell: Shell) -> None:
    script = (
        "import sys; from agentrunner import cli; cli.call(cli.app, ['validate', 't.yaml'], 'x');"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "1 criterion, 1 can be executed" in done.stdout
    assert not {"langgraph", "openai", "langchain_core"} & set(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rnu"], "did you mean run?"),
        (["run", "--jsn"], "did you mean --json?"),
        (["run", "--max", "3"], "did you mean --max-loops?"),
        (["init", "--nope"], "try: agentrunner init --help"),
        (["init", "--n"], "try: agentrunner init --help"),
        (["validate", "t.yaml", "--set", "a=b"], "--set is an option of run, plan say"),
        (["run", "--tets", "x"], "did you mean --test?"),
        (["helo"], "did you mean help?"),
        (["fix", "the", "test", "--test", "x"], 'quotes: agentrunner "fix the test"\n'),
        (["--model", "gpt-5"], 'try: agentrunner run --model gpt-5 "what you want"\n'),
        (["--state-dir", "x", "list"], "try: agentrunner list --state-dir x\n"),
        (["--model", "gpt-5", "list"], 'try: agentrunner run --model gpt-5 "what you want"\n'),
        (["--strict"], 'try: agentrunner run --strict "what you want"\n'),
        (["show", "--stat"], "did you mean agentrunner diff --stat?\n"),
        (["logs", "--model", "x"], "--model is an option of run, resume, plan run, chat\n"),
        (
            ["resume", "--set", "a=b"],
            "change the task file, then agentrunner resume --on-change replan",
        ),
        (["resume", "-y"], "-y is an option of undo, plan say, doctor, planners try and others\n"),
        (["--nonsense"], "try: agentrunner --help\n"),
        (["run", "--max-loops", "many"], '--max-loops is "many", which is no whole number.\n'),
        (["resume", "--max-loops", "-1"], "--max-loops must be greater than or equal to 0.\n"),
        (["resume", "--on-change", "go"], "'go' is not one of 'replan', 'continue'.\n"),
        (["logs", "--round", "x"], "try: write a number such as 3"),
        (["answer"], "try: agentrunner run FILE.md, or"),
        (["approve", "x-0000"], "error[unknown-run]"),
        (["reject", "x-0000"], "error[unknown-run]"),
        (["run", "t.yaml", "--goal", "x"], "one of FILE, --goal and --prd"),
        (["run", "users"], "agentrunner init users writes one; in words: agentrunner run"),
        (["run", "."], "try: name a task file or a PRD; for the repository: --repo .\n"),
        (["explain", "usag"], "did you mean usage?"),
        (["explain", "nope"], "try: agentrunner explain\n"),
        (["schema", "nothing"], "error[unknown-schema]"),
        (["show", "nothing"], "error[unknown-run]"),
        (["parse", "plan_task", "missing.txt"], "error[unreadable]"),
        (["init", "../x"], "error[bad-name]"),
    ],
)
def test_mistakes_end_with_2_in_the_one_form(arguments: list[str], told: str, shell: Shell) -> None:
    assert shell(*arguments) == 2
    assert shell.err.startswith("error[") and told in shell.err
    assert shell.out == ""


def test_a_surprise_is_one_line_and_a_private_file(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-value")
    shell.engine.error = ValueError("broken with sk-very-secret-value")
    assert shell("run", "t.yaml", "-q") == 1
    assert shell.err.startswith("error[internal]: ValueError")
    (file,) = (tmp_path / "state" / "crashes").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    text = file.read_text()
    assert "in _do" in text and "sk-very-secret-value" not in text + shell.err + shell.out


# -- one result, last ---------------------------------------------------------------------------


def test_json_is_events_and_one_result_last(shell: Shell) -> None:
    assert shell("run", "t.yaml", "--json") == 0
    schema = jsonschema.Draft202012Validator(events.event_schema())
    for line in shell.lines:
        schema.validate(line)
    assert [line["event"] for line in shell.lines].count("result") == 1
    last = shell.lines[-1]
    assert last["event"] == "result" and last["state"] == "COMPLETE"
    assert last["seq"] == shell.lines[-2]["seq"] + 1


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["run", "--nonsense"], 2, "usage"),
        (["run", "missing.yaml"], 2, "unreadable"),
        (["resume", "nothing"], 2, "unknown-run"),
        (["answer", "yes"], 2, "unknown-run"),
        (["accept", "--reason", "x"], 2, "unknown-run"),
    ],
)
def test_json_has_a_result_also_where_no_run_came_to_be(
    arguments: list[str], code: int, error: str, shell: Shell
) -> None:
    assert shell(*arguments, "--json") == code
    (line,) = shell.lines
    jsonschema.validate(line, events.event_schema())
    assert (line["run_id"], line["state"], line["exit_code"]) == (None, None, code)
    assert line["error"]["code"] == error


def test_an_engine_that_stops_keeps_the_run_and_says_so(shell: Shell) -> None:
    shell.engine.error = EnvironmentNotReady("The test command cannot start.", nothing_spent=True)
    assert shell("run", "t.yaml", "--json") == 5
    last = shell.lines[-1]
    assert last["run_id"] == "users-api-7f3a" and last["state"] == "PLANNING"
    assert "Nothing was spent" in shell.err


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"state": "FAILED", "exit_code": 1}, 1),
        ({"state": "NEEDS_REVIEW", "exit_code": 3}, 3),
        ({"state": "RUNNING", "exit_code": 130, "reason": "interrupted"}, 130),
        (
            {"state": "PLANNING", "exit_code": 4, "waiting": {
                "id": "abc", "kind": "ask_human", "text": "Which?", "options": [], "subject": "{}",
            }},
            4,
        ),
    ],
)  # fmt: skip
def test_exit_code_is_that_of_the_result(changes: dict[str, Any], code: int, shell: Shell) -> None:
    shell.engine.answer = result(**changes)
    assert shell("run", "t.yaml") == code
    assert "users-api" in shell.out and "Next:" in shell.out


@pytest.mark.parametrize(("folder", "offered"), [("shop", True), ("bare", False)])
def test_a_commit_is_offered_where_git_is(folder: str, offered: bool, shell: Shell) -> None:
    shell.engine.answer = result(repo=str(shell.repo.parent / folder))
    shell("run", "t.yaml", "-q")
    assert ("git add " in shell.out) is offered


def test_events_go_to_a_file_too(shell: Shell) -> None:
    place = shell.repo.parent / "events.jsonl"
    assert shell("run", "t.yaml", "-q", "--events", str(place)) == 0
    lines = place.read_text().splitlines()
    assert json.loads(lines[-1])["event"] == "result" and len(lines) == len(story_events()) + 1


def test_progress_is_on_stderr_and_quiet_has_none(shell: Shell) -> None:
    shell("run", "t.yaml")
    assert "check    round=1" in shell.err and "check " not in shell.out
    shell("run", "t.yaml", "-q")
    assert shell.err == "" and shell.out.startswith("COMPLETE")


def test_a_file_of_events_in_the_repository_is_refused_and_not_made(shell: Shell) -> None:
    assert shell("run", "t.yaml", "--events", "events.jsonl") == 2
    assert "events-in-repository" in shell.err
    assert not (shell.repo / "events.jsonl").exists()


def test_hostile_events_reach_no_terminal(shell: Shell) -> None:
    shell.engine.events.append(
        {"ts": "", "seq": 99, "run_id": "x", "event": "warning", "code": "x", "message": EVIL}
    )
    shell.engine.answer = result(title=EVIL)
    for arguments in (["run", "t.yaml"], ["run", "t.yaml", "--json"]):
        shell(*arguments)
        assert not any(c in shell.out + shell.err for c in "\x1b\x9b\r\x07\u202e")


def test_json_logs_are_one_object_a_line(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    async def run(task: TaskSpec, how: api.Options) -> Result:
        logging.getLogger("x").warning("bad %s", '\n{"level":"info"}\x1b[2J')
        return await shell.engine.run(task, how)

    monkeypatch.setattr(api, "run", run)
    shell.engine.events = []
    shell("run", "t.yaml", "--log-format", "json")
    (line,) = [json.loads(line) for line in shell.err.splitlines()]
    assert line["level"] == "warning" and "\x1b" not in shell.err
    shell("run", "t.yaml")
    assert shell.err == 'warning: x: bad {"level":"info"}\n'


# -- what reaches the engine --------------------------------------------------------------------


def test_named_options_win_over_set_and_set_over_the_file(shell: Shell) -> None:
    shell("run", "t.yaml", "--set", "runner.meta.max_loops=3", "--set", "runner.meta.kind=mock",
          "--max-loops", "7", "--strict", "--approve", "plan,complete", "--test", "make test",
          "--worker", "mock", "-q")  # fmt: skip
    spec: TaskSpec = shell.engine.asked[0][1]["spec"]
    assert spec.runner.meta.max_loops == 7 and spec.runner.meta.kind == "mock"
    assert spec.completion == "strict" and spec.runner.worker.kind == "mock"
    assert spec.runner.approve.plan == spec.runner.approve.complete == "always"
    assert spec.runner.approve.worker == "never"
    assert spec.task.test is not None and spec.task.test.command == "make test"


def test_goal_and_prd_and_stdin(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (shell.repo / "p.md").write_text("# Hello\n\nSay it.\n")
    assert shell("run", "--goal", "Say hello\nto all", "-q") == 0
    assert shell("run", "--prd", "p.md", "-q") == 0
    for arguments in (["run", "-"], ["run"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TASK.encode())))
        assert shell(*arguments, "-q") == 0
    titles = [given["spec"].title for _, given in shell.engine.asked]
    assert titles == ["Say hello", "Hello", "Say hello", "Say hello"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_never_read_as_a_task(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(TASK))
    assert shell("run") == 2
    assert "nothing to run" in shell.err and shell.engine.asked == []


def test_runs_are_found_by_id_prefix_and_task_and_newest(shell: Shell) -> None:
    shell.add_run("users-api-7f3a")
    shell.add_run("users-api-7f3b")
    shell.add_run("totals-c21e", waiting="ask_human")
    for name, found in [
        ("users-api-7f3a", "users-api-7f3a"),
        ("users-api", "users-api-7f3b"),
        ("tot", "totals-c21e"),
        (None, "totals-c21e"),
    ]:
        shell("resume", *([name] if name else []), "-q", "-m", "go")
        assert shell.engine.asked[-1][1]["run_id"] == found
    assert shell("resume", "users-api-7f", "-q") == 2
    assert "users-api-7f3a" in shell.err and "users-api-7f3b" in shell.err


def test_answers_go_to_the_only_waiting_run(shell: Shell) -> None:
    shell.add_run("users-api-7f3a", waiting="ask_human", state="PLANNING")
    shell.add_run("totals-c21e")
    shell("answer", "the same", "-q")
    shell("answer", "users-api-7f3a", "1", "--id", "abc", "-q")
    shell("approve", "--id", "abc", "-q")
    shell("approve", "--id", "abc", "--reason", "seen", "-q")
    shell("reject", "--id", "abc", "--reason", "no", "-q")
    said = [(given["run_id"], given["answer"]) for _, given in shell.engine.asked]
    assert {run_id for run_id, _ in said} == {"users-api-7f3a"}
    decisions = [(answer.id, answer.decision, answer.text) for _, answer in said]
    assert decisions == [
        ("", "answer", "the same"),
        ("abc", "answer", "1"),
        ("abc", "approve", ""),
        ("abc", "approve", "seen"),
        ("abc", "reject", "no"),
    ]


def test_an_empty_file_approves_nothing(shell: Shell) -> None:
    shell.add_run("users-api-7f3a", waiting="worker", state="EXECUTING")
    (shell.repo / "edited.md").write_text(" \n")
    assert shell("approve", "--id", "abc", "--edit", "edited.md", "-q") == 2
    assert "edited.md is empty" in shell.err and shell.engine.asked == []


def test_accept_takes_the_run_that_needs_a_review(shell: Shell) -> None:
    shell.add_run("users-api-7f3a", state="NEEDS_REVIEW")
    shell.add_run("totals-c21e")
    shell("accept", "--reason", "read it", "--by", "hana", "-q")
    shell("accept", "users-api-7f3a", "AC-4", "--reason", "read it", "--by", "hana", "-q")
    assert [given["run_id"] for _, given in shell.engine.asked] == ["users-api-7f3a"] * 2
    assert [given["criteria"] for _, given in shell.engine.asked] == [[], ["AC-4"]]


def test_accept_takes_a_criterion_of_the_run_that_needs_a_review(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.add_run("users-api-7f3a", state="NEEDS_REVIEW")

    def read(*_: object) -> Result:
        return asyncio.run(asyncio.sleep(0, result(state="NEEDS_REVIEW")))

    monkeypatch.setattr("agentrunner.engine.queries.show", read)
    assert shell("accept", "AC-4", "--reason", "read it", "-q") == 0
    assert [given["criteria"] for _, given in shell.engine.asked] == [["AC-4"]]


def test_accept_takes_known_reds_with_and_without_the_run(shell: Shell) -> None:
    shell.add_run("users-api-7f3a", state="NEEDS_REVIEW")
    shell("accept", "users-api-7f3a", "--known-red", "a", "b", "--reason", "offline", "-q")
    shell("accept", "--known-red", "a", "--known-red", "b", "--reason", "offline", "-q")
    shell("accept", "--known-red", "a", "b", "--reason", "offline", "-q")
    assert [given["run_id"] for _, given in shell.engine.asked] == ["users-api-7f3a"] * 3
    assert [sorted(given["known_red"]) for _, given in shell.engine.asked] == [["a", "b"]] * 3
    assert shell("accept", "--known-red", "a", "--unchanged", "--reason", "x", "-q") == 2


def test_cancel_ends_with_0_though_the_run_failed(shell: Shell) -> None:
    shell.add_run("users-api-7f3a")
    shell.engine.answer = result(state="FAILED", exit_code=1, reason="cancelled")
    assert shell("cancel", "--json") == 0
    assert shell.lines[-1]["exit_code"] == 0


def test_nothing_is_cancelled_of_a_run_that_has_ended(shell: Shell) -> None:
    shell.add_run("users-api-7f3a", state="NEEDS_REVIEW", finished_at="2026-11-21T06:00:00Z")
    assert shell("cancel", "users-api-7f3a") == 2
    assert shell.engine.asked == [] and shell.out == ""
    assert "there is nothing to cancel" in " ".join(shell.err.split())


# -- the stdin form -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code"),
    [({}, 0), ({"state": "NEEDS_REVIEW", "exit_code": 3}, 3), ({"exit_code": 5}, 5)],
)
def test_agent_runner_ends_with_0_or_1(
    changes: dict[str, Any], code: int, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.engine.answer = result(**changes)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TASK.encode())))
    monkeypatch.setattr(sys, "argv", ["agent-runner"])
    with pytest.raises(SystemExit) as ended:
        cli.stdin_main()
    assert ended.value.code == (1 if code else 0)
    out = shell.capture.readouterr().out
    assert "check    round=1" in out and "users-api" in out


def test_agent_runner_says_how_to_answer(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = {"id": "abc", "kind": "plan", "text": "ok?", "options": [], "subject": "{}"}
    shell.engine.answer = result(state="PLANNING", exit_code=4, waiting=waiting)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TASK.encode())))
    monkeypatch.setattr(sys, "argv", ["agent-runner"])
    with pytest.raises(SystemExit) as ended:
        cli.stdin_main()
    assert ended.value.code == 1
    assert "agentrunner approve users-api-7f3a --id abc" in shell.capture.readouterr().err


@pytest.mark.parametrize("arguments", [["task.yaml"], ["--json"]])
def test_agent_runner_knows_no_options(
    arguments: list[str], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["agent-runner", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.stdin_main()
    assert ended.value.code == 1 and shell.engine.asked == []


# -- texts --------------------------------------------------------------------------------------


def test_parse_prints_one_object_either_way(shell: Shell) -> None:
    reply = shell.repo / "reply.txt"
    reply.write_text('{"type": "next_action", "decision": {"action": "abort", "reason": "x"}}')
    assert shell("parse", "next_action", str(reply)) == 0
    assert shell.lines[0]["payload"]["decision"]["action"] == "abort"
    assert shell("parse", "next_action", str(reply), "--truncated") == 2
    assert set(shell.lines[0]) == {"error"}
    assert shell.lines[0]["error"]["code"] == "incomplete"
    reply.write_bytes(b"\xff\xfe")
    assert shell("parse", "plan_task", str(reply)) == 2 and "error" in shell.lines[0]


@pytest.mark.parametrize(
    "name", ["task", "result", "event", "plan_task", "next_action", "completion_assessment"]
)
def test_schemas_are_json_schemas(name: str, shell: Shell) -> None:
    assert shell("schema", name) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(shell.out))


def test_list_json_has_exactly_the_promised_keys(shell: Shell) -> None:
    assert shell("list") == 0 and "No runs yet" in shell.out
    shell.add_run("users-api-7f3a")
    shell("list", "--json")
    assert list(shell.lines[0]) == [
        "run_id", "task_id", "title", "repo", "state", "stands", "waiting", "waiting_until",
        "started_at", "finished_at", "part_of",
    ]  # fmt: skip


def test_a_run_that_goes_on_elsewhere_and_asks_nothing_takes_no_answer(shell: Shell) -> None:
    shell.add_run("users-api-7f3a", state="PLANNING")
    lock = run_lock(RunFolder.open(shell.repo.parent / "state", "users-api-7f3a"))
    lock.acquire(me("users-api-7f3a", "2026-11-21T05:00:00Z"))
    with closing(lock):
        assert shell("approve", "--id", "abc") == 2
    assert "is waiting for you" in " ".join(shell.err.split())


def test_nobody_is_asked_where_a_plan_is_carried_out(shell: Shell) -> None:
    shell.add_run("TASK-0001-7f3a", state="RUNNING", part_of="plan")
    lock = run_lock(RunFolder.open(shell.repo.parent / "state", "TASK-0001-7f3a"))
    lock.acquire(me("TASK-0001-7f3a", "2026-11-21T05:00:00Z"))
    with closing(lock):
        assert shell("answer", "so") == 2
    assert "error[unknown-run]: no run of" in shell.err and "terminal" not in shell.err


def test_logs_reads_the_events_of_a_run(shell: Shell) -> None:
    shell.add_run("users-api-7f3a")
    folder = RunFolder.open(shell.repo.parent / "state", "users-api-7f3a")
    lines = [json.dumps(event) for event in story_events()]
    folder.events_file.write_text("\n".join(lines) + '\n{"torn": ')
    assert shell("logs", "-f") == 0  # nobody drives it, so there is nothing to wait for
    assert "$ uv run pytest -q -k duplicate" in shell.out
    assert shell("logs", "--round", "9") == 2
    assert "there is no round 9" in shell.err


def test_logs_prints_all_that_the_test_command_printed(shell: Shell) -> None:
    shell.add_run("users-api-7f3a")
    folder = RunFolder.open(shell.repo.parent / "state", "users-api-7f3a")
    for name, text in (("1-test", "before\n"), ("2-test", "one\n"), ("3-test", "all of two\n")):
        folder.write(f"checks/{name}.txt", text)
    ran = {"event": "check", "target": "test"}
    red = {"name": "t.test_a", "file": "t.py", "line": 3, "message": "1 != 2"}
    events = [
        {**ran, "event": "baseline", "output": "checks/1-test.txt"},
        {"event": "worker_started", "loop": 0},
        {**ran, "output": "checks/2-test.txt"},
        {"event": "worker_started", "loop": 1},
        {**ran, "target": "AC-1", "output": "checks/1-test.txt"},
        {**ran, "output": "checks/3-test.txt", "exit_code": 1, "red": [red]},
        {"event": "worker_started", "loop": 2},
        {**ran, "output": "checks/../events.jsonl"},
    ]
    folder.events_file.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    assert shell("logs", "--tests") == 0
    assert shell.out == "all of two\n"
    assert shell("logs", "--tests", "--round", "1") == 0
    assert shell.out == "one\n"
    assert shell("logs", "--tests", "--json") == 0
    assert shell.lines == [
        {
            "run_id": "users-api-7f3a",
            "round": 2,
            "exit_code": 1,
            "red": [red],
            "output": "all of two\n",
        }
    ]
    assert shell("logs", "--tests", "--json", "--round", "1") == 0
    assert shell.lines[0]["red"] == [] and shell.lines[0]["output"] == "one\n"
    assert shell("logs", "--tests", "--round", "0") == 0
    assert shell.out == "before\n"
    assert shell("logs", "--tests", "--round", "3") == 2
    assert "error[no-test-output]: users-api-7f3a has no output of the test command" in shell.err
    assert "it ran in: before the run, 1, 2" in shell.err


def test_without_a_command_and_a_terminal_there_is_help(shell: Shell) -> None:
    assert shell() == 0
    assert "Usage: agentrunner" in shell.out


def test_version_is_the_package_s(shell: Shell) -> None:
    assert shell("--version") == 0
    assert shell.out.startswith("agentrunner ")


def test_console_scripts_do_not_import_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("yaml", "typing_extensions", "sitecustomize", "typer", "agentrunner"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w')")
    script = Path(sys.executable).with_name("agentrunner")
    if not script.exists():
        pytest.skip("agentrunner is not installed beside this interpreter")
    done = subprocess.run([script, "schema", "task"], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(done.stdout) and not (tmp_path / "canary").exists()


def test_both_console_scripts_are_declared() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {
        "agentrunner": "agentrunner.__main__:main",
        "agent-runner": "agentrunner.__main__:stdin_main",
    }


def test_ctrl_c_while_modules_load_ends_without_a_traceback() -> None:
    script = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'typer':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "from agentrunner.__main__ import main\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


def test_a_command_ends_with_what_is_registered_for_it_and_takes_nothing_apart() -> None:
    script = (
        "from agentrunner.__main__ import main\n"
        "import atexit, sys, threading\n"
        "class Left:\n"
        "    def __del__(self, write=sys.stderr.write):\n"
        "        write('taken apart')\n"
        "left = Left()\n"
        "def works():\n"
        "    threading.main_thread().join()\n"
        "    sys.stderr.write('its threads\\n')\n"
        "atexit.register(sys.stderr.write, 'its end\\n')\n"
        "threading.Thread(target=works).start()\n"
        "main()\n"
    )
    command = [sys.executable, "-c", script, "show", "--no-such"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.endswith("its threads\nits end\n")


def test_surroundings_are_5(shell: Shell) -> None:
    shell.engine.error = InfraError("no key", code="key-missing")
    assert shell("run", "t.yaml", "-q") == 5


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["run", "fix", "the", "failing", "test"], 'agentrunner run "fix the failing test"'),
        (["run", "fix", "it"], 'agentrunner run "fix it"'),
        (["run", "fix", "it", "--meta", "checklist"], 'agentrunner run "fix it"'),
        (["run", "-g", "fix", "the", "test"], 'agentrunner run "fix the test"'),
        (["run", "a.md", "b.md"], "agentrunner run --help"),
        (["plan", "run", "a", "b"], "agentrunner plan run --help"),
    ],
)
def test_a_goal_without_quotes_is_shown_with_them(
    arguments: list[str], remedy: str, shell: Shell
) -> None:
    assert shell(*arguments) == 2
    assert f"try: {remedy}\n" in shell.err
    assert shell.engine.asked == []


@pytest.mark.parametrize("place", ["nowhere/x", "closed/x", "."])
def test_events_that_cannot_be_written_stop_before_a_run_exists(place: str, shell: Shell) -> None:
    (shell.repo.parent / "closed").write_text("")
    file = shell.repo.parent / place
    assert shell("run", "t.yaml", "--events", str(file)) == 2
    assert shell.engine.asked == []
    assert f"{file}cannotbewritten:" in "".join(shell.err.split())
    assert "at --events" in shell.err


def test_looking_at_the_place_of_the_events_leaves_nothing(shell: Shell) -> None:
    inside = shell.repo / "events.jsonl"
    assert shell("run", "t.yaml", "--events", str(inside)) == 2
    assert not inside.exists() and "inside the repository" in shell.err.replace("\n  ", " ")


@pytest.mark.parametrize("place", ["/proc/nowhere", "/proc/a/b", "/tmp/" + "x" * 300])
def test_a_state_folder_that_cannot_be_made_is_named(place: str, shell: Shell) -> None:
    shell.engine.error = FileNotFoundError(2, "No such file or directory", place)
    assert shell("run", "t.yaml", "--state-dir", place) == 5
    assert "error[state-unwritable]" in shell.err
    assert shell("list", "--state-dir", place) in (0, 5)
    assert "internal" not in shell.err


def test_a_missing_file_of_a_state_folder_stays_a_bug(shell: Shell) -> None:
    state = shell.repo.parent / "state"
    state.mkdir()
    shell.engine.error = FileNotFoundError(2, "No such file or directory", str(state / "runs/x"))
    assert shell("run", "t.yaml") == 1
    assert "error[internal]" in shell.err
