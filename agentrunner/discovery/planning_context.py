"""What a planner should know of a repository before it plans: tree, documentation, tools.

Everything but the commands is read from a snapshot: it has no ignored folders and no links that
lead outside, and reading it cannot block or race with changes.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from agentrunner.config.text_files import MAX_BYTES, decode
from agentrunner.discovery.candidates import detect_tests
from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.set_up import detect_setup
from agentrunner.errors import UsageError
from agentrunner.git.snapshot_writer import LARGE_MARK
from agentrunner.git.snapshots import Snapshots
from agentrunner.text.cut import cut
from agentrunner.text.unicode import clean

Facts = dict[str, Any]
Read = Callable[[str], bytes | None]
Redact = Callable[[str], str]

MOST_LINES = 200
MOST_TREE_CHARS = 8_000
MOST_DEPTH = 4
LINE_CHARS = 120
README_CHARS = 6_000
INSTRUCTION_CHARS = 4_000
"""Limit for one file of instructions."""
MOST_SUFFIXES = 8

INSTRUCTIONS = (
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
)
"""Files with instructions for agents; material for a planner, never its orders."""
_READMES = ("readme.md", "readme.rst", "readme.txt", "readme", "readme.adoc", "readme.ja.md")
_STACK = (
    ("pyproject.toml", "Python"),
    ("setup.py", "Python"),
    ("requirements.txt", "Python"),
    ("package.json", "Node.js"),
    ("tsconfig.json", "TypeScript"),
    ("deno.json", "Deno"),
    ("Cargo.toml", "Rust"),
    ("go.mod", "Go"),
    ("pom.xml", "Java (Maven)"),
    ("build.gradle*", "Java or Kotlin (Gradle)"),
    ("Gemfile", "Ruby"),
    ("composer.json", "PHP"),
    ("mix.exs", "Elixir"),
    ("*.csproj", ".NET"),
    ("*.sln", ".NET"),
    ("CMakeLists.txt", "C or C++ (CMake)"),
    ("Package.swift", "Swift"),
    ("pubspec.yaml", "Dart"),
    ("Dockerfile", "Docker"),
)
"""The technology that a file name implies, at the top or one folder below."""


def repository_context(
    snapshots: Snapshots,
    tree: str,
    repo: Path,
    redact: Redact,
    asked: str = "",
    outline_tokens: int | None = None,
) -> Facts:
    """Return facts about the tree without secrets, JSON-native, limited in size. Blocks.

    The commands for tests and set-up are read from the work tree, as for `test: auto`. Files that
    `asked` names come first in the outline, which has at most `outline_tokens`.
    """
    from agentrunner.discovery.outline import MOST_TOKENS, outline_of

    most = MOST_TOKENS if outline_tokens is None else min(outline_tokens, MOST_TOKENS)
    outline = outline_of(snapshots, tree, redact, asked, most)
    return {
        **facts_of(list(snapshots.list(tree)), snapshots.reader(tree), redact),
        "test_command": _command(detect_tests(repo), redact),
        "setup_command": _command(detect_setup(repo), redact),
        **({"outline": outline} if outline else {}),
    }


def facts_of(paths: Collection[str], read: Read, redact: Redact) -> Facts:
    """Return tree, stack, README and instructions of a repository. Pure but for `read`.

    `read` returns a file's content, or None for what is no file.
    """
    names = sorted(paths)
    return {
        "files": len(names),
        "tree": [redact(line) for line in tree_lines(names)],
        "file_types": _suffixes(names),
        "stack": [redact(line) for line in _stack(names)],
        "readme": _readme(names, read, redact),
        "agent_instructions": _instructions(names, read, redact),
    }


def _command(found: FoundCommand | None, redact: Redact) -> Facts | None:
    return {"command": redact(found.command), "found_in": redact(found.where)} if found else None


# -- the tree -----------------------------------------------------------------------------------


def tree_lines(paths: Collection[str]) -> list[str]:
    """Return files and folders, as many levels as fit; deeper folders are shown with a file count.

    At least the top level is shown, truncated if even that is too long.
    """
    shown: dict[str, int] = {}
    for depth in range(MOST_DEPTH, 0, -1):
        shown = _counts_to_depth(paths, depth)
        if len(shown) <= MOST_LINES:
            lines = _lines(shown)
            if sum(map(len, lines)) <= MOST_TREE_CHARS:
                return lines
    return _cut(_lines(shown))


def _counts_to_depth(paths: Iterable[str], depth: int) -> dict[str, int]:
    shown: dict[str, int] = {}
    for path in paths:
        parts = path.split("/", depth)
        name = path if len(parts) <= depth else "/".join(parts[:depth]) + "/"
        shown[name] = shown.get(name, 0) + 1
    return shown


def _lines(shown: dict[str, int]) -> list[str]:
    return [_line(name, count) for name, count in sorted(shown.items())]


def _line(name: str, count: int) -> str:
    text = "".join(char if char.isprintable() else "\ufffd" for char in clean(name))
    text = cut(text, LINE_CHARS)
    return f"{text} ({count} files)" if name.endswith("/") else text


def _cut(lines: list[str]) -> list[str]:
    kept: list[str] = []
    size = 0
    for line in lines[:MOST_LINES]:
        size += len(line)
        if size > MOST_TREE_CHARS:
            break
        kept.append(line)
    return [*kept, f"… and {len(lines) - len(kept)} more"]


# -- the stack ----------------------------------------------------------------------------------


def _suffixes(paths: Iterable[str]) -> dict[str, int]:
    """Return the number of files of the most frequent types."""
    found: Counter[str] = Counter()
    for suffix, count in Counter(posixpath.splitext(path)[1] for path in paths).items():
        found[clean(suffix.lower())[:LINE_CHARS]] += count
    del found["."], found[""]
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return dict(ranked[:MOST_SUFFIXES])


def _stack(paths: Iterable[str]) -> list[str]:
    """Return each technology with the first file that implies it: "Python: pyproject.toml"."""
    near = sorted((path for path in paths if path.count("/") <= 1), key=lambda p: (p.count("/"), p))
    first: dict[str, str] = {}
    for path in near:
        first.setdefault(path.rpartition("/")[2], path)
    found: dict[str, str] = {}
    for pattern, what in _STACK:
        names = fnmatch.filter(first, pattern)
        if names and what not in found:
            found[what] = _line(first[names[0]], 1)
    return [f"{what}: {path}" for what, path in found.items()]


# -- documentation ------------------------------------------------------------------------------


def _readme(paths: Collection[str], read: Read, redact: Redact) -> Facts | None:
    top = {path.lower(): path for path in paths if "/" not in path}
    for name in _READMES:
        if name in top and (shown := _read_beginning(top[name], read, redact, README_CHARS)):
            return shown
    return None


def _instructions(paths: Collection[str], read: Read, redact: Redact) -> list[Facts]:
    """Return each file of instructions whose text differs from the earlier ones."""
    found: list[Facts] = []
    for name in INSTRUCTIONS:
        shown = _read_beginning(name, read, redact, INSTRUCTION_CHARS) if name in paths else None
        if shown and all(shown["text"] != other["text"] for other in found):
            found.append(shown)
    return found


def _read_beginning(path: str, read: Read, redact: Redact, most: int) -> Facts | None:
    """Return the beginning of a text file; None if it is empty, large, not UTF-8 or binary."""
    data = read(path)
    if not data or len(data) > MAX_BYTES or data.startswith(LARGE_MARK):
        return None
    try:
        text = redact(decode(data, path)).strip()  # before the cut, which could split a secret
    except UsageError:
        return None
    if not text:
        return None
    return {"path": path, "text": cut(text, most)}
