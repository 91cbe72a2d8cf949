"""Map short names to classes, which are imported only on request.

An unused adapter costs nothing, and an unknown name is answered with the known ones. Others can add
kinds, by an entry point of an installed package or by a line in the user's settings; a repository
cannot. Our own names cannot be overridden.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from importlib import import_module
from traceback import walk_tb
from types import ModuleType
from typing import Any

from agentrunner.environment import user_file
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.command_line import BadExtension, UnknownKind
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.likeness import likest

PLACE = lazy_regex(r"([A-Za-z_]\w*(\.[A-Za-z_]\w*)*|~?/[^\0]+\.py):[A-Za-z_]\w*")
"""`module:Class`, as entry points and settings name a class; settings also `/FILE.py:Class`."""


class Kinds(MutableMapping[str, str]):
    """The kinds of one sort by name: our own, then those that others add."""

    def __init__(self, group: str, own: Mapping[str, str]) -> None:
        self.group = group
        """Key in `extensions` of the settings; entry points have the group `agentrunner.GROUP`."""
        self.own = dict(own)
        """The kinds that come with AgentRunner."""

    def __getitem__(self, name: str) -> str:
        return self.own[name] if name in self.own else self.added()[name]

    def __setitem__(self, name: str, place: str) -> None:
        self.own[name] = place

    def __delitem__(self, name: str) -> None:
        del self.own[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (name for name in self.added() if name not in self.own)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def named(self) -> str:
        """Return our own kinds, for the description of a setting."""
        return ", ".join(f"`{name}`" for name in self.own)

    def added(self) -> Mapping[str, str]:
        """Return the kinds that others add, also those that have a name of ours."""
        return {**_installed().get(f"agentrunner.{self.group}", {}), **_in_settings(self.group)}


@cache
def _installed() -> Mapping[str, Mapping[str, str]]:
    """Return what packages of this environment offer, by group; read once for all groups."""
    from importlib.metadata import entry_points  # it loads half of `email`

    offered = entry_points()
    return {
        group: {one.name: one.value for one in offered.select(group=group)}
        for group in offered.groups
        if group.startswith("agentrunner.")
    }


def _in_settings(group: str) -> Mapping[str, str]:
    """Return the user's own kinds. Mistakes in that file are reported where tasks are read."""
    path = user_file(os.environ)
    if path is None or not path.is_file():
        return {}
    import yaml  # a sandbox tried alone, by a Python that has nothing, needs no settings

    try:
        written = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return {}
    for key in ("extensions", group):
        written = written.get(key) if isinstance(written, dict) else None
    if not isinstance(written, dict):
        return {}
    return {str(name): place for name, place in written.items() if isinstance(place, str)}


SANDBOXES = Kinds(
    "sandboxes",
    {
        "docker": "agentrunner.sandboxes.docker:DockerSandbox",
        "bwrap": "agentrunner.sandboxes.bwrap:BwrapSandbox",
        "none": "agentrunner.sandboxes.local:LocalSandbox",
    },
)
AUTO_SANDBOXES = tuple(name for name in SANDBOXES.own if name != "none")
"""What `auto` tries, in this order."""
WORKERS = Kinds(
    "workers",
    {
        "codex-cli": "agentrunner.workers.codex:CodexWorker",
        "claude-code": "agentrunner.workers.claude:ClaudeWorker",
        "gemini-cli": "agentrunner.workers.gemini:GeminiWorker",
        "qwen-code": "agentrunner.workers.qwen:QwenWorker",
        "opencode": "agentrunner.workers.opencode:OpencodeWorker",
        "copilot-cli": "agentrunner.workers.copilot:CopilotWorker",
        "cursor-cli": "agentrunner.workers.cursor:CursorWorker",
        "aider": "agentrunner.workers.aider:AiderWorker",
        "mini-swe-agent": "agentrunner.workers.mini:MiniWorker",
        "command": "agentrunner.workers.command:CommandWorker",
        "mock": "agentrunner.workers.mock:MockWorker",
    },
)
_WORKER_ALIASES = {
    "codex": "codex-cli",
    "claude": "claude-code",
    "claude-code-cli": "claude-code",
    "cursor": "cursor-cli",
    "cursor-agent": "cursor-cli",
    "gemini": "gemini-cli",
    "qwen": "qwen-code",
    "qwen-cli": "qwen-code",
    "copilot": "copilot-cli",
    "github-copilot": "copilot-cli",
    "opencode-cli": "opencode",
    "open-code": "opencode",
    "aider-cli": "aider",
    "aider-chat": "aider",
    "mini": "mini-swe-agent",
    "mini-swe": "mini-swe-agent",
}
"""Other names that people and models write for them."""
LOGINS = {
    "codex-cli": "agentrunner.workers.codex_login:CodexLogin",
    "claude-code": "agentrunner.workers.claude_login:ClaudeLogin",
}
PLANNERS = Kinds(
    "planners",
    {  # in the order in which `auto` prefers CLIs
        "openai-chat": "agentrunner.planners.openai_chat:OpenAIChatPlanner",
        "chat": "agentrunner.planners.chat:ChatPlanner",
        "claude-code": "agentrunner.planners.claude_code:ClaudePlanner",
        "codex-cli": "agentrunner.planners.codex_cli:CodexPlanner",
        "mock": "agentrunner.planners.mock:MockPlanner",
        "script": "agentrunner.planners.script:ScriptPlanner",
        "checklist": "agentrunner.planners.checklist:ChecklistPlanner",
    },
)

ECOSYSTEMS = ("go", "cargo", "maven", "gradle", "uv", "pip", "npm", "yarn", "pnpm", "nuget", "gem")
"""Ecosystems whose package caches a sandbox can be shown."""
GRADLE_FILES = ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts")
"""What Gradle reads of a project: the first two in each of its modules, the others at its top."""


def canonical_worker_type(name: str) -> str:
    """Return the name by which a worker is registered: `claude-code` for `Claude_Code`."""
    plain = name.strip().lower().replace("_", "-")
    return _WORKER_ALIASES.get(plain, plain)


def load(table: Mapping[str, str], name: str, what: str) -> Any:
    """Import and return the class registered under `name`.

    Raises UsageError with the known names if there is none of that name, and with the place if an
    added one cannot be imported.
    """
    if name not in table:
        near = likest(name, table)
        raise UnknownKind(
            f'{what} "{name}" is not known. Known: {", ".join(table)}.',
            remedy=f"did you mean {near}?" if near else "",
        )
    place = table[name]
    try:
        module, _, attribute = place.rpartition(":")
        return getattr(_imported(module), attribute)
    except Exception as error:
        if not isinstance(table, Kinds) or name in table.own:
            raise
        raise BadExtension(
            f'{what} "{name}" is {place}, which can\'t be imported: '
            f"{error or type(error).__name__}{_line_of(error)}",
            path=f"extensions.{table.group}.{name}",
            remedy="install the package that has it beside agentrunner, or correct its place",
        ) from error


def make(table: Kinds, name: str, what: str, *args: Any, **settings: Any) -> Any:
    """Return an instance of the class registered under `name`.

    Raises UsageError like `load`, and with the place if the code of an added one fails.
    """
    cls = load(table, name, what)
    try:
        return cls(*args, **settings)
    except AgentRunnerError:
        raise
    except Exception as error:
        if name in table.own:
            raise
        raise BadExtension(
            f'{what} "{name}" is {table[name]}, which can\'t be made: '
            f"{type(error).__name__}: {error}{_line_of(error)}",
            path=f"extensions.{table.group}.{name}",
            remedy="correct its class: agentrunner explain how-to/extend.md",
        ) from error


def extension_of(error: BaseException) -> str:
    """Return the place of the added class whose code raised the error; "" if none did."""
    files = {frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)}
    for table in (WORKERS, PLANNERS, SANDBOXES):
        for place in table.added().values():
            module = sys.modules.get(_module_name(place.rpartition(":")[0]))
            if getattr(module, "__file__", None) in files:
                return place
    return ""


def _line_of(error: BaseException) -> str:
    """Return ` (FILE:LINE)` of the code of others that raised the error; "" where it was ours."""
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    library = sysconfig.get_path("stdlib") + "/"
    others = [
        (file, line)
        for file, line in frames
        if file[:1] == "/"
        and file != __file__
        and (not file.startswith(library) or "/site-packages/" in file)
    ]
    return " ({}:{})".format(*others[-1]) if others else ""


def _module_name(module: str) -> str:
    return os.path.expanduser(module) if module.endswith(".py") else module  # noqa: PTH111


def _imported(module: str) -> ModuleType:
    name = _module_name(module)
    if name == module and not module.endswith(".py"):
        return import_module(name)
    if name not in sys.modules:
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location(name, name)
        if spec is None or spec.loader is None:
            raise ImportError(f"{name} is no Python file")
        sys.modules[name] = made = module_from_spec(spec)
        try:
            spec.loader.exec_module(made)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
