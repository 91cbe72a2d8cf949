"""The facts that the event streams of all CLIs share: what an adapter makes of one record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from agentrunner.workers.base import FailureKind
from agentrunner.workers.streams import text_of

Change = Literal["add", "update", "delete"]
"""What becomes of a file."""


class WorkerMessage(Struct, frozen=True):
    """The worker printed a message."""

    text: str
    joins: bool = False
    """A piece, which continues the previous piece if nothing came between."""


class ToolUse(Struct, frozen=True):
    """What a tool is used for: a command, a file to change, or anything else by its name."""

    name: str = ""
    command: str = ""
    path: str = ""
    """The path of the file that it changes; "" for a tool that changes none."""
    change: Change = "update"


class ToolBegan(Struct, frozen=True):
    """A tool is being used."""

    id: str
    tool: ToolUse


class ToolEnded(Struct, frozen=True):
    """The use of a tool is over."""

    id: str
    failed: bool = False
    exit_code: int | None = None
    """The exit code of a command."""
    status: str = ""
    tool: ToolUse | None = None
    """None if `ToolBegan` had it; an end without either is ignored."""


class FileChanged(Struct, frozen=True):
    """A file was changed, reported independently of any tool."""

    path: str
    change: Change = "update"


class ToolDenied(Struct, frozen=True):
    """A tool was requested, and denied."""

    name: str


class Tokens(Struct, frozen=True):
    """What the model has read, including cached parts, and written."""

    input: int
    output: int
    scope: Literal["step", "run", "session"] = "run"
    """`step`: to be added to the others. `run`: this run's total so far. `session`: the total of
    all runs of the session so far."""


class Cost(Struct, frozen=True):
    """The cost so far, in US dollars."""

    usd: float


class Trouble(Struct, frozen=True):
    """Something went wrong."""

    message: str
    kind: FailureKind | None = None
    """Its kind, if the record has a code for it; otherwise its message is classified."""
    fatal: bool = True
    """False for a remark, after which the run continues."""


class Retrying(Struct, frozen=True):
    """The model is asked again, after this went wrong."""

    message: str
    kind: FailureKind | None = None


class Session(Struct, frozen=True):
    """The session has this id."""

    id: str


class Model(Struct, frozen=True):
    """This model answers."""

    name: str


class TurnBegan(Struct, frozen=True):
    """Work begins; what was finished before is not the end of the run."""


class Finished(Struct, frozen=True):
    """The CLI's own last word on the run."""

    clean: bool
    text: str | None = None
    """The final text; None means the last message is the final text."""


Fact = (
    WorkerMessage | ToolBegan | ToolEnded | FileChanged | ToolDenied | Tokens | Cost | Trouble
    | Retrying | Session | Model | TurnBegan | Finished
)  # fmt: skip

Translate = Callable[[Mapping[str, object]], Iterable[Fact]]
"""Returns the facts of one record. Pure; accepts any JSON object, and never raises."""


def change_of(word: object) -> Change:
    """Return what becomes of a file, by a CLI's word for it: `update` for any that is not ours."""
    return "add" if word == "add" else "delete" if word == "delete" else "update"


def stream_began(record: Mapping[str, object]) -> Iterator[Fact]:
    """Yield the facts in the first event of a stream that resembles Claude Code's."""
    yield Session(text_of(record.get("session_id")))
    yield Model(text_of(record.get("model")))
    yield TurnBegan()


def tool_of(
    name: str,
    given: Mapping[str, object],
    *,
    shell: str,
    changes: Mapping[str, Change],
    path: str = "file_path",
) -> ToolUse:
    """Return what a tool is used for, by its name and what it is `given`.

    `shell` is the name of the tool that runs commands, `changes` are those that change a file, each
    with the kind of its change, and `path` is the key of that file.
    """
    if name == shell:
        return ToolUse(name, command=text_of(given.get("command")))
    if name in changes:
        return ToolUse(name, path=text_of(given.get(path)), change=changes[name])
    return ToolUse(name)


def tool_ended(
    name: str, *, failed: bool, code: int | None = None, tool: ToolUse | None = None
) -> ToolEnded:
    """Return the end of a tool of which a CLI says only whether it failed, and its exit code."""
    return ToolEnded(name, failed, code, "failed" if failed or code else "completed", tool)
