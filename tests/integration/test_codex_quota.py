"""The real Codex whose quota is spent: waited for, killed meanwhile, replaced by Claude Code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.runs import start
from agentrunner.storage.events import read_events
from agentrunner.storage.run_folder import RunFolder
from tests.kit.bwrap import require_bwrap
from tests.kit.claude import require_claude
from tests.kit.codex import require_codex
from tests.kit.codex_project import FIX, JUDGEMENT, KEYS, PLAN, Codex
from tests.kit.metas import DONE
from tests.kit.model_server import ModelServer
from tests.kit.process import living, until
from tests.kit.project import Project
from tests.kit.runs import FIX as REPAIR
from tests.kit.runs import SMALL, TEST
from tests.kit.scenario import Scenario, Shell, Turn
from tests.kit.warm import WarmPopen

Commands = Callable[..., WarmPopen]
RESET_SEC = 5
PATIENCE_SEC = 120.0
SCRIPT = (PLAN, FIX, DONE, JUDGEMENT)
BEGUN = Turn("I add.", [Shell(REPAIR)])
CALLS = "/v1/responses"


class Quick(Codex):
    """With a test command that takes no time."""

    def spec(self, server: ModelServer, **worker: Any) -> TaskSpec:
        runner = {**self._planner(server), "worker": {**self._codex(server), **worker}}
        return self.project.spec(test=TEST, runner=runner)

    def crew(self, server: ModelServer, second: dict[str, Any]) -> TaskSpec:
        """Codex first, then another."""
        runner = {**self._planner(server), "workers": [self._codex(server), second]}
        return self.project.spec(test=TEST, runner=runner)

    def _planner(self, server: ModelServer) -> dict[str, Any]:
        meta = {"kind": "openai-chat", "model": "planner", "base_url": server.base_url}
        return {"meta": meta, "sandbox": {"kind": "bwrap"}}

    def _codex(self, server: ModelServer) -> dict[str, Any]:
        told = {"model": "gpt-5.5", "base_url": server.base_url}
        return {"kind": "codex-cli", "command": [str(self.binary)], **told}


def spent(*, times: int | None) -> Turn:
    """In the middle of the work the quota is spent, for so many requests."""
    return Turn("It adds.", refusal="429", reset_in="header", reset_sec=RESET_SEC, times=times)


@pytest.fixture
def codex(tmp_path: Path) -> Quick:
    require_bwrap()
    return Quick(Project.make(tmp_path, SMALL), require_codex())


@pytest.fixture
def commands(codex: Quick) -> Iterator[Commands]:
    """Starts commands; whatever a failed test leaves of them is ended."""
    begun: list[WarmPopen] = []

    def command(*arguments: str) -> WarmPopen:
        process = WarmPopen(
            [sys.executable, "-m", "agentrunner", *arguments, "--json"],
            cwd=codex.project.repo,
            env={**os.environ, **KEYS, "AGENTRUNNER_STATE_DIR": str(codex.project.state_dir)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        begun.append(process)
        return process

    yield command
    for process in begun:
        process.kill()
        process.communicate()


def calls(server: ModelServer) -> int:
    return sum(request.path == CALLS for request in server.requests)


async def test_a_reset_in_five_seconds_is_one_wait_and_the_session_goes_on(codex: Quick) -> None:
    with ModelServer(Scenario([BEGUN, spent(times=1)]), chat_script=SCRIPT) as server:
        result = await codex.run(server)
        asked = calls(server)
    assert (result["state"], result["exit_code"], result["reason"]) == ("COMPLETE", 0, "complete")
    (wait,) = codex.project.told("waiting")
    since, until_ = (datetime.fromisoformat(wait[key]) for key in ("ts", "until"))
    assert 3 < (until_ - since).total_seconds() <= RESET_SEC + 1
    assert asked == 3  # the first, the one that was refused, and the one after the wait
    runs = [record.data for record in codex.history(result).worker_runs]
    assert [(run["worker_run_id"], run["outcome"]) for run in runs] == [
        ("1-001", "rate_limit"),
        ("1-001w1", "completed"),
    ]
    assert runs[0]["session_id"] and runs[0]["session_id"] == runs[1]["session_id"]
    begun = datetime.fromisoformat(codex.project.told("worker_started")[1]["ts"])
    assert begun >= until_
    assert (result["worker_runs"], result["loops"], result["meta_calls"]) == (2, 0, 4)
    assert result["duration_sec"] < 60
    assert codex.leaks() == []
    assert living(codex.place) == {}


def told(folder: RunFolder, event: str) -> list[dict[str, Any]]:
    return [line for line in read_events(folder.events_file) if line["event"] == event]


@pytest.mark.whole
def test_a_kill_in_the_wait_is_no_loss_and_resume_waits_the_rest(
    codex: Quick, commands: Commands
) -> None:
    runs = codex.project.state_dir / "runs"

    def waiting() -> bool:
        files = list(runs.glob("*/events.jsonl")) if runs.is_dir() else []
        return any('"waiting"' in file.read_text() for file in files)

    with ModelServer(Scenario([BEGUN, spent(times=1)]), chat_script=SCRIPT) as server:
        codex.spec(server)
        first = commands("run", str(codex.place / "task.yaml"))
        until(waiting, "the run waits", PATIENCE_SEC)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        asked = calls(server)
        (folder,) = (RunFolder(path) for path in runs.iterdir())
        shown = commands("show")
        seen = json.loads(shown.communicate()[0])
        again = commands("resume")
        out, err = again.communicate()
        assert again.returncode == 0, err
        assert calls(server) == asked + 1
    result = json.loads(out.splitlines()[-1])
    assert result["state"] == "COMPLETE"
    wait, rest = told(folder, "waiting")
    assert seen["waiting_until"] == wait["until"] == rest["until"] and seen["waiting"] is None
    begun = told(folder, "worker_started")
    assert [event["worker_run_id"] for event in begun] == ["1-001", "1-001w1"]
    assert begun[1]["ts"] >= wait["until"]
    assert codex.leaks() == []
    assert living(codex.place) == {}


async def test_claude_takes_over_where_codex_is_refused(codex: Quick) -> None:
    claude = require_claude()
    key = {"ANTHROPIC_API_KEY": "sk-ant-" + "7b3e" * 12}
    works = Scenario([BEGUN, Turn("It adds.")])
    with (
        ModelServer(Scenario([spent(times=None)]), chat_script=SCRIPT) as refuses,
        ModelServer(works) as answers,
    ):
        second = {"kind": "claude-code", "command": [str(claude)], "base_url": answers.address}
        spec = codex.crew(refuses, second)
        options = replace(codex.project.options(), environ={**os.environ, **KEYS, **key})
        result = (await start(spec, options)).as_dict()
        refused = calls(refuses)
    assert (result["state"], result["reason"]) == ("COMPLETE", "complete")
    runs = [record.data for record in codex.history(result).worker_runs]
    assert [(run["worker"], run["outcome"]) for run in runs] == [
        ("codex-cli", "rate_limit"),
        ("claude-code", "completed"),
    ]
    assert refused == 1
    assert codex.project.told("waiting") == []
    assert (result["loops"], result["meta_calls"]) == (0, 4)
    assert codex.leaks() == []
    assert living(codex.place) == {}
