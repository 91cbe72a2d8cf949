from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from agentrunner.config.agents import WorkerSpec
from agentrunner.errors import UsageError
from agentrunner.workers.base import (
    CommandRun,
    Ended,
    LacksScript,
    RunsScript,
    WorkerCommand,
    WorkerReading,
    WorkerRequest,
)
from agentrunner.workers.command import CommandWorker
from agentrunner.workers.mock import MockWorker
from agentrunner.workers.plain import read_plain

CALL = WorkerRequest(
    worker_run_id="w1",
    prompt="say {home} $(touch x)",
    workdir=Path("/src/my repo"),
    home=Path("/state/box"),
    prompt_file=Path("/state/box/prompt.md"),
)


def worker(command: object, **spec: object) -> CommandWorker:
    settings = {"kind": "command", "command": command, **spec}
    return CommandWorker(WorkerSpec.model_validate(settings))


def made(command: object, call: WorkerRequest = CALL) -> WorkerCommand:
    return worker(command).command(call)


def read(tmp_path: Path, output: str, exit_code: int = 0, stderr: str = "") -> WorkerReading:
    (tmp_path / "out").write_text(output)
    (tmp_path / "err").write_text(stderr)
    return read_plain(Ended(exit_code, "exited", tmp_path / "out", tmp_path / "err"))


def test_the_prompt_comes_by_stdin_unless_the_command_asks_for_it() -> None:
    plain = made(["agent", "--yes"])
    assert (plain.argv, plain.stdin) == (("agent", "--yes"), CALL.prompt.encode())
    by_file = made(["agent", "-f", "{prompt_file}"])
    assert (by_file.argv, by_file.stdin) == (("agent", "-f", "/state/box/prompt.md"), b"")
    by_argument = made(["agent", "--", "{prompt}"])
    assert (by_argument.argv, by_argument.stdin) == (("agent", "--", CALL.prompt), b"")


def test_each_placeholder_is_filled_once() -> None:
    assert made(["agent", "{repo}:{home}", "{other}", "{prompt}"]).argv == (
        *("agent", "/src/my repo:/state/box", "{other}"),
        "say {home} $(touch x)",
    )


def test_a_text_is_a_shell_command_with_quoted_paths() -> None:
    assert made("cd {repo} && agent < {prompt_file}").argv == (
        *("sh", "-c", "cd '/src/my repo' && agent < /state/box/prompt.md"),
    )


@pytest.mark.parametrize("command", [None, [], "", "  ", [" "]])
def test_without_a_command_there_is_no_worker(command: object) -> None:
    with pytest.raises(UsageError) as refusal:
        worker(command)
    assert refusal.value.path == "runner.worker.command"


def test_a_prompt_is_never_part_of_a_shell_command() -> None:
    with pytest.raises(UsageError, match="shell"):
        worker("agent '{prompt}'")


def test_flags_belong_into_the_command() -> None:
    with pytest.raises(UsageError, match="flags"):
        worker(["agent"], flags=["-v"])


def test_a_prompt_too_long_for_an_argument_is_refused() -> None:
    fits = replace(CALL, prompt="x" * (128 * 1024 - 1))
    argv = made(["true", "{prompt}"], fits).argv
    assert subprocess.run(argv, check=False).returncode == 0
    with pytest.raises(UsageError, match="too long"):
        made(["true", "{prompt}"], replace(CALL, prompt="x" * 128 * 1024))


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (["python", "agent.py"], "python"),
        ("python agent.py | tee log", "python"),
        ("LOG=1 python agent.py", "python"),
        (["{repo}/agent"], "sh"),
        ("echo 'unbalanced", "sh"),
        ("true; exec ./agent.sh", "true"),
        ("./agent.sh&&true", "./agent.sh"),
    ],
)
def test_the_program_is_the_first_word(command: object, program: str) -> None:
    assert worker(command).program() == program


def test_a_program_of_this_machine_is_found() -> None:
    assert worker(["sh"]).probe().path is not None
    assert "sandbox may have it" in worker(["no-such-agent"]).probe().problem


def test_exit_code_0_is_completed_and_the_last_lines_are_the_summary(tmp_path: Path) -> None:
    reading = read(tmp_path, "\n".join(map(str, range(9))) + "\n\n")
    assert reading == WorkerReading(completed=True, summary="4\n5\n6\n7\n8")


def test_another_exit_code_is_told_with_the_end_of_stderr(tmp_path: Path) -> None:
    reading = read(tmp_path, "half", 3, "Traceback\nboom\n")
    assert not reading.completed
    assert reading.error == "exit code 3: Traceback\nboom"


def test_a_stopped_worker_is_not_completed_whatever_its_exit_code(tmp_path: Path) -> None:
    ended = Ended(0, "timeout", tmp_path / "none", tmp_path / "none")
    assert read_plain(ended) == WorkerReading(completed=False, error="ended by timeout")


@pytest.mark.parametrize("fence", [("", ""), ("```json\n", "\n```\n"), ("```\n", "\n```")])
def test_the_last_json_summary_feeds_the_commands(tmp_path: Path, fence: tuple[str, str]) -> None:
    old, new = '{"commands": ["old"]}', '{"commands": [{"cmd": "npm test", "status": "passed"}]}'
    reading = read(tmp_path, f"{old}\nAll done.\n{fence[0]}{new}{fence[1]}")
    assert reading.commands == (CommandRun("npm test", status="passed"),)
    assert reading.summary.endswith("All done.")


@pytest.mark.parametrize(
    "text",
    [
        '{"commands": [',
        '{"commands": {}}',
        '"commands": []',
        '{"commands":' * 900,
        '{"a":' * 3_000 + '"commands"',
        '{"commands": [' + "[" * 5_000,
    ],
)
def test_what_is_no_summary_is_text(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text).commands == ()


def test_a_summary_alone_is_told_by_its_own_words(tmp_path: Path) -> None:
    reading = read(tmp_path, '{"summary": "Fixed it.", "commands": [{"command": "make"}, 7, {}]}')
    assert (reading.summary, reading.commands) == ("Fixed it.", (CommandRun("make"),))


def test_broken_bytes_and_long_words_are_made_safe(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"\xff" * 5_000)
    reading = read_plain(Ended(0, "exited", tmp_path / "out", tmp_path / "none"))
    assert len(reading.summary) == 600
    reading.summary.encode()


def test_lines_are_live_text() -> None:
    reader = worker(["agent"]).events()
    texts = [event.fields["text"] for event in reader.feed(b"one\r\n\ntw") + reader.feed(b"o\n")]
    assert texts == ["one", "two"]


def test_the_mock_says_that_it_changes_nothing(tmp_path: Path) -> None:
    mock = MockWorker(WorkerSpec(kind="mock"))
    command = mock.command(CALL)
    with (tmp_path / "out").open("wb") as out:
        ran = subprocess.run(command.argv, input=command.stdin, stdout=out, check=False)
    reading = mock.read(Ended(ran.returncode, "exited", tmp_path / "out", tmp_path / "err"))
    assert reading == WorkerReading(completed=True, summary="The mock worker changes nothing.")
    assert mock.probe().problem == ""
    assert not mock.needs_model and mock.key_names == ()


def test_a_program_of_the_repository_is_found_where_its_path_is_given(tmp_path: Path) -> None:
    script = tmp_path / "bin/agent.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    for word, found in (("./bin/agent.sh", True), ("agent.sh", False), ("./bin/none.sh", False)):
        script.chmod(0o755)
        spec = WorkerSpec.model_validate({"kind": "command", "command": [word]})
        assert (CommandWorker(spec, tmp_path).probe().path == script) is found
        script.chmod(0o644)  # cannot be started
        assert CommandWorker(spec, tmp_path).probe().path is None


def test_the_script_of_an_interpreter_is_known_where_it_is_outside_of_the_repository(
    tmp_path: Path,
) -> None:
    repo, outside = tmp_path / "repo", tmp_path / "agent.sh"
    repo.mkdir()
    for path in (outside, repo / "agent.sh"):
        path.write_text("")
    commands = {
        ("sh", str(outside)): outside,
        f"A=1 sh {outside} x": outside,
        ("python3.11", str(outside), "-v"): outside,
        ("sh", "-c", str(outside)): None,
        ("sh", str(repo / "agent.sh")): None,
        ("sh", "agent.sh"): None,
        ("cat", str(outside)): None,
        ("sh", str(tmp_path / "none.sh")): None,
    }
    for command, script in commands.items():
        written = command if isinstance(command, str) else list(command)
        spec = WorkerSpec.model_validate({"kind": "command", "command": written})
        assert CommandWorker(spec, repo).script() == script, command
    spec = WorkerSpec.model_validate({"kind": "command", "command": ["sh", str(outside)]})
    assert CommandWorker(spec).script() == outside
    spec = WorkerSpec.model_validate({"kind": "command", "command": ["sh", "agent.sh"]})
    assert CommandWorker(spec).script() is None


def test_an_adapter_says_what_it_knows_of_its_script() -> None:
    class Other:
        def script(self) -> Path | None:
            return None

    assert isinstance(Other(), RunsScript) and not isinstance(Other(), LacksScript)
    both = worker(["sh", "agent.sh"])
    assert isinstance(both, RunsScript) and isinstance(both, LacksScript)


@pytest.mark.parametrize(
    ("command", "lacks"),
    [
        (["sh", "gone.sh"], "gone.sh"),
        ("sh gone.sh --all", "gone.sh"),
        (["python3", "tools/gone.py"], "tools/gone.py"),
        (["sh", "there.sh"], ""),
        ("sh gone.sh || sh there.sh", ""),
        ("sh gone.sh; true", ""),
        ("sh $HOME/gone.sh", ""),
        (["sh", "{home}/gone.sh"], ""),
        (["python3", "-m", "gone"], ""),
        (["python3", "-u", "gone.py"], ""),
        ("node --require=./gone.js there.js", ""),
        ("ruby -r./gone.rb there.rb", ""),
        (["bash", "--rcfile=/gone.sh", "there.sh"], ""),
        (["node", "agent"], ""),
        (["node", "agent.v2"], ""),
        (["deno", "run", "x.ts"], ""),
        (["deno", "https://a.example/x.ts"], ""),
        (["./gone.sh"], ""),
    ],
)
def test_a_script_is_lacking_only_where_that_can_be_known(
    tmp_path: Path, command: str | list[str], lacks: str
) -> None:
    (tmp_path / "there.sh").touch()
    (tmp_path / "agent.v2.js").touch()
    found = CommandWorker(WorkerSpec(kind="command", command=command), tmp_path).lacking_script()
    assert found == (tmp_path / lacks if lacks else None)
