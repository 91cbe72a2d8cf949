"""The worker for mini-swe-agent, `mini`. It reports its work in a file, the trajectory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentrunner.config.agents import DEFAULT_PLANNER_MODEL
from agentrunner.workers import fact
from agentrunner.workers.base import (
    Ended,
    EventReader,
    OutputWatch,
    Reports,
    WorkerCommand,
    WorkerRequest,
)
from agentrunner.workers.cli import CliWorker, prompt_argument
from agentrunner.workers.streams import (
    TextEvents,
    code_of,
    count_of,
    dict_of,
    list_of,
    parse_object,
    text_of,
)

TESTED = "2.4.6"
KEY_ENV = "OPENAI_API_KEY"
RETRY = r"^Retrying <unknown> in "
MAX_BYTES = 64 << 20
"""A longer trajectory is not read."""
_TRAJECTORY = Path("mini", "trajectory.json")
"""Below `WorkerRequest.home`."""


class MiniWorker(CliWorker):
    """Builds the command line of mini-swe-agent and reads its trajectory."""

    kind = "mini-swe-agent"
    title = "mini-swe-agent"
    binary = "mini"
    binary_env = "AGENTRUNNER_MINI"
    tested = TESTED
    verified = f"mini-swe-agent {TESTED}, real"
    # litellm, by which it calls the model, fails forever without mcp.
    cure = f"pipx install mini-swe-agent=={TESTED} && pipx inject mini-swe-agent mcp"
    key_names = (KEY_ENV,)
    wire = "openai"
    reports = Reports(exit_codes=True, actions=True, tokens=True)
    key_env = KEY_ENV
    watch = OutputWatch(retry=RETRY)
    reads_stdin = False

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `mini` with the prompt as an argument; it accepts neither stdin nor a file."""
        home = call.home / "mini"
        trajectory = call.home / _TRAJECTORY
        words = [
            *("-m", f"openai/{self.model_of(call) or DEFAULT_PLANNER_MODEL}"),
            *("-y", "--exit-immediately", "--cost-limit", "0", "-o", str(trajectory)),
            *self.flags_of(call),
            f"--task={prompt_argument(call)}",
        ]
        env = {
            "HOME": str(home),
            "OPENAI_API_BASE": self.url_of(call),
            "MSWEA_CONFIGURED": "true",
            "MSWEA_GLOBAL_CONFIG_DIR": str(home / "config"),
            "MSWEA_SILENT_STARTUP": "1",
            "MSWEA_COST_TRACKING": "ignore_errors",
            # AgentRunner waits for quotas itself; ten attempts are minutes.
            "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "3",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        # An earlier run's trajectory must not be taken for this one's.
        return self.prepare(call, home, words, env, files={trajectory: ""})

    def facts(self, record: Mapping[str, object]) -> Iterator[fact.Fact]:
        for message in map(dict_of, list_of(record.get("messages"))):
            extra = dict_of(message.get("extra"))
            if message.get("role") == "assistant":
                yield from _of_round(message, extra)
            elif message.get("role") == "tool":
                yield _of_result(message, extra)
            elif message.get("role") == "exit":
                yield from _of_end(message, extra)

    def events(self) -> EventReader:
        return TextEvents()

    def facts_in(self, ended: Ended) -> Iterator[fact.Fact]:
        return self.facts(_trajectory(ended.home))


def _of_round(message: Mapping[str, object], extra: Mapping[str, object]) -> Iterator[fact.Fact]:
    yield fact.WorkerMessage(text_of(message.get("content")))
    for action in map(dict_of, list_of(extra.get("actions"))):
        tool = fact.ToolUse("bash", command=text_of(action.get("command")))
        yield fact.ToolBegan(text_of(action.get("tool_call_id")), tool)
    response = dict_of(extra.get("response"))
    usage = dict_of(response.get("usage"))
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    yield fact.Tokens(count_of(read), count_of(written), scope="step")
    yield fact.Model(text_of(response.get("model")))


def _of_result(message: Mapping[str, object], extra: Mapping[str, object]) -> fact.ToolEnded:
    code = code_of(extra.get("returncode"))
    # The command by which it submits its work is not run, and has -1.
    ran = code is not None and not extra.get("exception_info")
    status = ("failed" if code else "completed") if ran else "not run"
    return fact.ToolEnded(
        text_of(message.get("tool_call_id")), bool(code), code if ran else None, status
    )


def _of_end(message: Mapping[str, object], extra: Mapping[str, object]) -> Iterator[fact.Fact]:
    status, words = text_of(extra.get("exit_status")), text_of(message.get("content"))
    clean = status == "Submitted"
    if not clean:
        yield fact.Trouble(words or status or "it failed")
    yield fact.Finished(clean, text_of(extra.get("submission")).strip() or None)


def _trajectory(home: Path) -> Mapping[str, object]:
    """Return the worker's file, read with care: the worker may have replaced it with anything."""
    path = home / _TRAJECTORY
    try:
        if path.parent.resolve() != home.resolve() / _TRAJECTORY.parent:
            return {}
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return {}
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return {}
    if len(data) > MAX_BYTES:
        return {}
    return parse_object(data.decode("utf-8", "replace")) or {}
