"""Detach work: it continues in a session of its own, which outlives the terminal.

Until it has begun it uses the terminal as usual: a failing preliminary check ends there, with its
exit code. From then on its output goes to a file in the folder of the run or plan.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from agentrunner.commands.console import Output, show, show_json, width_of
from agentrunner.text.times import stamp_now

OUTPUT = "output.txt"
"""Output of detached work, in the folder of the run or the plan."""
Begun = Callable[[str, Path], None]
"""Called by the work when it has begun, with the run's id ("" for a plan) and its folder."""
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def in_background(work: Callable[[Begun], int], output: Output, text: Callable[[str], str]) -> int:
    """Do `work` in another process; return once it has begun, or its exit code if it ends first.

    `text` returns, for the run's id, what to tell the person then.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(work, writing, output)
    os.close(writing)
    with _forwarding_signals(child), os.fdopen(reading, "rb") as pipe:
        line = pipe.readline()
        if not line:
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            return 128 - code if code < 0 else code
    begun = json.loads(line)
    if output.json:
        show_json({"ts": stamp_now(), "event": "detached", **begun})
    else:
        show(text(str(begun["run_id"] or "")))
    return 0


def _work(work: Callable[[Begun], int], writing: int, output: Output) -> None:
    """Run the work in the new process and exit; never returns into the parent's code."""
    from agentrunner.commands.fail import tell

    code = 1
    try:
        os.setsid()
        code = work(lambda run_id, folder: _leave(run_id, folder, writing))
    except Exception as error:  # noqa: BLE001 - nothing above may continue in this process
        code = tell(error, as_json=output.json, state_dir=output.state_dir)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _leave(run_id: str, folder: Path, writing: int) -> None:
    """Detach from the terminal: output to a file, no input; then report to the parent."""
    place = folder / OUTPUT
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    file, nothing = os.open(place, how, 0o600), os.open(os.devnull, os.O_RDONLY)
    sys.stdout.flush()
    sys.stderr.flush()
    for source, target in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(source, target)
    os.close(file)
    os.close(nothing)
    begun = {"run_id": run_id or None, "pid": os.getpid(), "output": str(place)}
    with contextlib.suppress(BrokenPipeError):  # the waiting process was ended; the work continues
        os.write(writing, json.dumps(begun).encode() + b"\n")
    os.close(writing)


@contextlib.contextmanager
def _forwarding_signals(child: int) -> Iterator[None]:
    """Forward signals that would end us to the work, which stops gracefully; we wait for it."""

    def forward(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def detached_text(steps: list[tuple[str, str]], *texts: str) -> str:
    """Return sentences about detached work, and the next commands with their purposes."""
    from agentrunner.screens.layout import wrap
    from agentrunner.screens.next_steps import next_lines

    width = width_of(sys.stdout)
    lines = [line for text in texts for line in wrap(text, width)]
    return "\n".join([*lines, "", *next_lines(steps, width)])


def run_text(run_id: str) -> str:
    """Return the message about a detached run."""
    steps = [
        (f"agentrunner watch {run_id}", "see it work, and answer it there"),
        (f"agentrunner answer {run_id} --detach", "when it asks; it continues by itself"),
        (f"agentrunner cancel {run_id}", "end it"),
    ]
    return detached_text(
        steps,
        f"{run_id} runs on its own; this terminal may be closed.",
        "A question pauses it: then nothing runs and nothing is spent until you answer.",
    )
