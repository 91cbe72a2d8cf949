"""Each known way in which a worker CLI misleads whoever drives it ends in the right outcome.

CLIs that CI does not install are stood in for by scripts that print what the real ones printed,
end as they ended and take signals as they took them. The adapters, the box, the supervisor and the
outcome are the real ones.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentrunner.state.worker_runs import Outcome
from tests.kit.bwrap import require_bwrap
from tests.kit.cells import DONE, WORK
from tests.kit.files import write
from tests.kit.readings import STREAMS
from tests.kit.scenario import Shell, Turn
from tests.kit.trials import Bench, Trial, program_of

NOWHERE = "00000000-0000-4000-8000-000000000000"
HANG = "touch started; sleep 600 & wait"
RECONNECTING = '{"type":"error","message":"Reconnecting... 1/5 (unexpected status 500)"}'
AIDER_401 = (
    "litellm.AuthenticationError: AuthenticationError: OpenAIException - bad key\n"
    "The API provider is not able to authenticate you. Check your API key.\n"
)
COPILOT_END = '{"type":"result","sessionId":"s","exitCode":0}'
NOTHING_RAN = """\
{"type":"thread.started","thread_id":"0199"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Made it."}}
{"type":"turn.completed","usage":{"input_tokens":2400,"output_tokens":68}}
"""


@dataclass(frozen=True)
class Trap:
    """A CLI that misleads: what it prints, then what it does."""

    name: str
    kind: str
    prints: str
    """A text, or the name of a recorded stream; with a minus before it without its last line."""
    does: str
    outcome: Outcome
    says: str = ""
    """Part of the error."""
    on_signal: str = ""
    """A trap for INT and TERM."""
    trial: Trial = field(default_factory=lambda: Trial([DONE]))

    def program(self, place: Path) -> Path:
        """The script that stands for it."""
        path = place / "bin" / self.kind
        said = (STREAMS / self.prints.lstrip("-")) if self.prints else STREAMS
        if said.is_file():
            lines = said.read_text("utf-8").splitlines(keepends=True)
            text = "".join(lines[:-1] if self.prints.startswith("-") else lines)
        else:
            text = self.prints
        script = ["#!/bin/bash", self.on_signal, f"printf %s {shlex.quote(text)}", self.does]
        write(path.parent, {path.name: "\n".join(script) + "\n"})
        return path


TRAPS = (
    Trap("a 401 that exits with 0", "qwen-code", "qwen-401.jsonl", "exit 0", "auth"),
    Trap("a 401 that exits with 0", "aider", AIDER_401, "exit 0", "auth"),
    Trap("a 401 with a code of its own", "gemini-cli", "gemini-401.jsonl", "exit 145", "auth"),
    Trap("denied, and a success", "claude-code", "claude-denied.json", "exit 0", "denied"),
    Trap("an error, and a success", "claude-code", "claude-404.jsonl", "exit 0", "model"),
    Trap("commands that never ran", "codex-cli", NOTHING_RAN, "exit 0", "no_op"),
    Trap("exit 0 without its end", "gemini-cli", "-gemini-stream.jsonl", "exit 0", "interrupted"),
    Trap("exit 0 without its end", "codex-cli", "-codex-exec.jsonl", "exit 0", "interrupted"),
    Trap("exit 0 without its end", "opencode", "-opencode-stream.jsonl", "exit 0", "interrupted"),
    Trap("exit 0 without its end", "qwen-code", "-qwen-stream.jsonl", "exit 0", "interrupted"),
    Trap(
        "exit 0 when stopped", "copilot-cli", "-copilot-stream.jsonl", HANG, "interrupted",
        on_signal="trap 'exit 0' INT TERM", trial=Trial([DONE], stop_at="started"),
    ),
    Trap(
        "a clean end when stopped", "copilot-cli", "-copilot-stream.jsonl", HANG, "interrupted",
        on_signal=f"end() {{ echo '{COPILOT_END}'; exit 0; }}; trap end INT TERM",
        trial=Trial([DONE], stop_at="started"),
    ),
    Trap(
        "exit 0 when stopped", "claude-code", "", HANG, "interrupted",
        on_signal="trap 'exit 0' INT", trial=Trial([DONE], stop_at="started"),
    ),
    Trap(
        "signals ignored", "gemini-cli", "-gemini-stream.jsonl",
        "setsid sh -c 'sleep 600' & while :; do sleep 600 & wait; done", "timeout",
        on_signal="trap '' INT TERM", trial=Trial([DONE], wall_sec=1),
    ),
    Trap(
        "no exit after its end", "codex-cli", "codex-exec.jsonl", HANG, "completed",
        trial=Trial([DONE], grace_sec=0.5),
    ),
    Trap(
        "tries without end", "codex-cli", '{"type":"turn.started"}\n',
        f"while :; do echo '{RECONNECTING}'; sleep 0.05; done", "server", says="again and again",
    ),
    Trap(
        "a login nobody can make", "claude-code", "",
        "printf 'Please log in: '; sleep 600 & wait", "auth",
    ),
    Trap(
        "silence for good", "codex-cli", '{"type":"turn.started"}\n', HANG, "idle_timeout",
        trial=Trial([DONE], idle_sec=0.5),
    ),
    Trap(
        "a flag that is gone", "codex-cli", "",
        "echo \"error: unexpected argument '--disable' found\" >&2; exit 2", "protocol",
        says="--disable",
    ),
)  # fmt: skip


@pytest.mark.series(3)
@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: f"{trap.kind}: {trap.name}")
async def test_nobody_is_misled(trap: Trap, tmp_path: Path) -> None:
    require_bwrap()
    bench = Bench(tmp_path / "bench", trap.kind, trap.program(tmp_path))
    seen = await bench.run(trap.trial)
    assert seen.came.outcome == trap.outcome, f"{seen.came}\n{seen.said}"
    assert trap.says in seen.came.error
    assert seen.supervised.duration_sec < 12


async def test_a_stream_that_was_cut_and_asked_again_is_not_counted_as_nothing(
    tmp_path: Path,
) -> None:
    program = program_of("claude-code")
    cut = Turn("", WORK.actions, cut=True, times=1)
    seen = await Bench(tmp_path / "bench", "claude-code", program).run(Trial([cut, DONE]))
    assert seen.came.outcome == "completed" and seen.changed == ("hello.txt",), seen.said
    assert seen.used.total.unknown_calls == 1
    assert (seen.used.total.input_tokens, seen.used.total.output_tokens) == (
        seen.told.input_tokens,
        seen.told.output_tokens,
    )


async def test_a_sandbox_in_a_sandbox_is_not_taken_for_work(tmp_path: Path) -> None:
    # Its own sandbox cannot be made in ours. Nearly always its stream then shows no command at
    # all, its exit code is 0, and its model says that all is done.
    trial = Trial([WORK, DONE], sandboxed=False, env={"TMPDIR": "/usr"})
    seen = await Bench(tmp_path / "bench", "codex-cli", program_of("codex-cli")).run(trial)
    assert seen.supervised.exit_code == 0 and seen.reading.summary == DONE.text
    tried = seen.reading.actions or seen.changed
    assert seen.came.outcome == ("completed" if tried else "no_op"), seen.said


@pytest.mark.parametrize("kind", ["codex-cli", "claude-code"])
async def test_a_session_that_is_not_known_is_lost_and_not_a_failure_of_its_own(
    kind: str, tmp_path: Path
) -> None:
    bench = Bench(tmp_path / "bench", kind, program_of(kind))
    seen = await bench.run(Trial([WORK, DONE]), session=NOWHERE)
    assert (seen.came.outcome, seen.reading.session_lost) == ("failed", True), seen.said
    assert seen.used.total.calls == 0 and seen.changed == ()


@pytest.mark.parametrize("kind", ["codex-cli", "claude-code"])
async def test_nothing_of_a_command_outlives_the_stop(kind: str, tmp_path: Path) -> None:
    marker = tmp_path.name
    command = f"touch started; (setsid sh -c 'sleep 600; : {marker}' &) ; sleep 600"
    trial = Trial([Turn("Starting.", [Shell(command)]), DONE], stop_at="started")
    seen = await Bench(tmp_path / "bench", kind, program_of(kind)).run(trial)
    assert seen.came.outcome == "interrupted" and seen.changed == ("started",), seen.said
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [line for line in lines if f": {marker}".encode() in line]
