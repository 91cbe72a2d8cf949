"""A scripted conversation: what the model says and does, turn by turn, and what goes wrong.

    Scenario([
        Turn("Creating it.", [Write("hello.py", "print('hello')\n")]),
        Turn("Running it.", [Shell("python3 hello.py")]),
        Turn("Done."),
    ])

Actions are abstract: each is mapped to whichever tool the CLI offers in that very request, so a
scenario outlives the CLI's next renaming of its tools.
"""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.kit.faults import Refusal, ResetIn

SHELL_TOOLS = (
    "exec_command", "shell_command", "local_shell", "shell", "bash", "Bash", "run_shell_command",
)  # fmt: skip


@dataclass(frozen=True)
class Write:
    """Write a file, relative to the CLI's working directory."""

    path: str
    content: str


@dataclass(frozen=True)
class Shell:
    """Run a shell command."""

    command: str


@dataclass(frozen=True)
class Patch:
    """Apply a patch in the `*** Begin Patch` format."""

    text: str


@dataclass(frozen=True)
class Use:
    """Use a tool by its name, as it is offered."""

    name: str
    arguments: Mapping[str, Any]


Action = Write | Shell | Patch | Use


@dataclass(frozen=True)
class Turn:
    """One answer of the model, or a fault in its place."""

    text: str = ""
    actions: Sequence[Action] = ()
    status: int = 0
    """An HTTP error with this status, `text` as its message."""
    refusal: Refusal | None = None
    """An HTTP error in the provider's own words."""
    reset_sec: int = 5
    """Of a refusal for a spent quota: when it is there again."""
    reset_in: ResetIn = ""
    """Where that is told; "" nowhere."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent with the HTTP error."""
    delay_sec: float = 0
    """Wait so long before answering."""
    hang: bool = False
    """Send the headers, then nothing until the server stops."""
    cut: bool = False
    """Close the connection in mid-stream."""
    raw: str | None = None
    """Answer 200 with this body."""
    finish_reason: str = ""
    """In place of the normal one, for instance `length`."""
    times: int | None = None
    """The fault hits only the first so many requests for this turn."""


class Scenario:
    """The turns, and how many requests have met a fault that wears off."""

    def __init__(
        self, turns: Sequence[Turn], side_reply: str = "ok", *, toolless: bool = False
    ) -> None:
        """`side_reply` answers requests without tools, such as a title for the session.

        A `toolless` one is for a CLI that offers no tools and reads edits off the text.
        """
        self.turns = tuple(map(as_text, turns)) if toolless else tuple(turns)
        self.side_reply = side_reply
        self.toolless = toolless
        self._known = {turn.text.strip() for turn in self.turns if turn.text}
        self._hits = [0] * len(self.turns)
        self._lock = threading.Lock()

    def done(self, turns: Sequence[tuple[str, bool]]) -> int:
        """How many of its own turns a request holds, given (text, calls a tool) of each.

        The server keeps no conversation: retries, resumed sessions and parallel ones all get
        the right turn. Canned turns that a CLI puts in front don't count.
        """
        return sum(calls or any(text in said for text in self._known) for said, calls in turns)

    def pick(self, done: int) -> Turn:
        """The turn to play; after the last one, the last again."""
        index = min(done, len(self.turns) - 1)
        turn = self.turns[index]
        with self._lock:
            self._hits[index] += 1
            spent = turn.times is not None and self._hits[index] > turn.times
        if spent:
            return replace(
                turn, status=0, refusal=None, delay_sec=0, hang=False, cut=False, raw=None
            )
        return turn


def as_text(turn: Turn) -> Turn:
    """The turn with the files that it writes in its text, as aider's format `whole` wants them."""
    files = [
        f"{action.path}\n```\n{action.content}```\n"
        for action in turn.actions
        if isinstance(action, Write)
    ]
    return replace(turn, text="\n\n".join([turn.text, *files]), actions=())


@dataclass(frozen=True)
class Tool:
    """A tool as offered in a request."""

    schema: Mapping[str, Any] = field(default_factory=dict)
    freeform: bool = False
    """Takes a text in place of arguments."""
    namespace: str = ""


@dataclass(frozen=True)
class ToolCall:
    """A call of an offered tool: arguments, or a text for a free-form tool."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None


def tool_call(action: Action, tools: Mapping[str, Tool]) -> ToolCall:
    """The action as a call of a tool on offer; raises LookupError where none fits."""
    if isinstance(action, Use):
        if action.name not in tools:
            raise LookupError(f"no tool {action.name!r} among {sorted(tools)}")
        return ToolCall(action.name, action.arguments)
    if isinstance(action, Patch):
        if "apply_patch" in tools and tools["apply_patch"].freeform:
            return ToolCall("apply_patch", text=action.text)
        return _shell_call(f"apply_patch <<'PATCH'\n{action.text}\nPATCH", tools)
    if isinstance(action, Write):
        content, path = shlex.quote(action.content), shlex.quote(action.path)
        return _shell_call(f"printf '%s' {content} > {path}", tools)
    return _shell_call(action.command, tools)


def _shell_call(command: str, tools: Mapping[str, Tool]) -> ToolCall:
    for name in SHELL_TOOLS:
        if name in tools:
            properties = tools[name].schema.get("properties", {})
            key = "cmd" if "cmd" in properties else "command"
            array = properties.get(key, {}).get("type") == "array"
            said = {key: ["bash", "-lc", command] if array else command}
            return ToolCall(name, {**_required(tools[name].schema), **said})
    if "exec" in tools and tools["exec"].freeform:
        # Newer models of Codex have one tool that runs JavaScript.
        script = f"text(JSON.stringify(await tools.exec_command({{cmd: {json.dumps(command)}}})));"
        return ToolCall("exec", text=script)
    raise LookupError(f"no tool for {command!r} among {sorted(tools)}")


def _required(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Harmless values for what a tool wants to be told beside its command."""
    properties = schema.get("properties", {})
    return {
        name: False if properties.get(name, {}).get("type") == "boolean" else "A step"
        for name in schema.get("required", ())
    }


ONE_STEP = [Turn("Creating it.", [Write("hello.py", "print('hello')\n")]), Turn("Created.")]
"""A model that has one file written."""
