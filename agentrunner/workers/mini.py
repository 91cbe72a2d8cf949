"""The worker for mini-swe-agent, `mini`. It reports its work in a file, the trajectory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentrunner.config.agents import DEFAULT_PLANNER_MODEL
from agentrunner.workers.base import (
    Ended,
    EventReader,
    OutputWatch,
    Reports,
    WorkerCommand,
    WorkerReading,
    WorkerRequest,
)
from agentrunner.workers.cli import CliWorker
from agentrunner.workers.prompt_argument import prompt_argument
from agentrunner.workers.streams import (
    TextEvents,
    code_of,
    count_of,
    dict_of,
    list_of,
    parse_object,
    text_of,
)
from agentrunner.workers.transcript import (
    Fact,
    Finished,
    Model,
    Tokens,
    Tool,
    ToolBegan,
    ToolEnded,
    Trouble,
    WorkerMessage,
    reading_of,
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
    default_url = "https://api.openai.com/v1"
    reports = Reports(exit_codes=True, actions=True, tokens=True)

    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return `mini` with the prompt as an argument; it accepts neither stdin nor a file."""
        home = call.home / "mini"
        scratch = call.home / "tmp"
        trajectory = call.home / _TRAJECTORY
        argv = [
            *(self.program(), "-m", f"openai/{self.model_of(call) or DEFAULT_PLANNER_MODEL}"),
            *("-y", "--exit-immediately", "--cost-limit", "0", "-o", str(trajectory)),
            *self.flags_of(call),
            f"--task={prompt_argument(call)}",
        ]
        return WorkerCommand(
            argv=tuple(argv),
            env={
                "HOME": str(home),
                "TMPDIR": str(scratch),
                "OPENAI_API_BASE": self.url_of(call),
                "MSWEA_CONFIGURED": "true",
                "MSWEA_GLOBAL_CONFIG_DIR": str(home / "config"),
                "MSWEA_SILENT_STARTUP": "1",
                "MSWEA_COST_TRACKING": "ignore_errors",
                # AgentRunner waits for quotas itself; ten attempts are minutes.
                "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "3",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            },
            key_env=KEY_ENV,
            folders=(home, scratch),
            # An earlier run's trajectory must not be taken for this one's.
            files={trajectory: ""},
            watch=OutputWatch(retry=RETRY),
        )

    def facts(self, record: Mapping[str, object]) -> Iterator[Fact]:
        """Yield the facts in a trajectory."""
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

    def read(self, ended: Ended) -> WorkerReading:
        """Return the facts in its trajectory."""
        reading = reading_of(ended, self.facts(_trajectory(ended.home)))
        return self.with_refused_flags(ended, reading)


def _of_round(message: Mapping[str, object], extra: Mapping[str, object]) -> Iterator[Fact]:
    yield WorkerMessage(text_of(message.get("content")))
    for action in map(dict_of, list_of(extra.get("actions"))):
        command = text_of(action.get("command"))
        yield ToolBegan(text_of(action.get("tool_call_id")), Tool("bash", command=command))
    response = dict_of(extra.get("response"))
    usage = dict_of(response.get("usage"))
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    yield Tokens(count_of(read), count_of(written), scope="step")
    yield Model(text_of(response.get("model")))


def _of_result(message: Mapping[str, object], extra: Mapping[str, object]) -> ToolEnded:
    code = code_of(extra.get("returncode"))
    # The command by which it submits its work is not run, and has -1.
    ran = code is not None and not extra.get("exception_info")
    status = ("failed" if code else "completed") if ran else "not run"
    return ToolEnded(
        text_of(message.get("tool_call_id")), bool(code), code if ran else None, status
    )


def _of_end(message: Mapping[str, object], extra: Mapping[str, object]) -> Iterator[Fact]:
    status, words = text_of(extra.get("exit_status")), text_of(message.get("content"))
    clean = status == "Submitted"
    if not clean:
        yield Trouble(words or status or "it failed")
    yield Finished(clean, text_of(extra.get("submission")).strip() or None)


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
