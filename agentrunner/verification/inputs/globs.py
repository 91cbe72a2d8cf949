"""Globs as test tools write them, and which paths can later run code on the host (threat T2). Pure.

They are anchored at the repository root.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import lru_cache
from pathlib import PurePosixPath

from agentrunner.text.lazy_regex import lazy_regex

EXECUTABLE_CONFIG = """.gitmodules .gitattributes .gitconfig .claude/** .codex/** .cursor/**
    .gemini/** .mcp.json .vscode/** .idea/** .devcontainer/** .github/workflows/**
    .github/actions/** .gitlab-ci.yml **/.husky/** .pre-commit-config.yaml .envrc
    lefthook.yml""".split()
"""What a person's editor, agent, CI or git runs without being asked (threat T2)."""

PART = lazy_regex(r"\*\*/?|[*?]|[^*?]+")
SIGNS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}

WILD = lazy_regex(r"[*?\[{]|[@+!]\(")
MOST = 500
"""The most characters of a glob that is understood."""


def is_glob(path: str, files: Container[str] = ()) -> bool:
    """Whether a path has wildcards, and is none of these files: `app/[id]/page.tsx`.

    A file that is called `test_*.py` takes nothing from what the pattern means.
    """
    is_file = path in files and "*" not in path and "?" not in path
    return bool(WILD.search(path)) and not is_file


def fixed_folder(glob: str) -> str:
    """Return the folder that contains everything the glob can match; "" for the root."""
    match = WILD.search(glob)
    return (glob[: match.start()] if match else glob).rpartition("/")[0]


@lru_cache(maxsize=2048)
def glob_regex(glob: str) -> re.Pattern[str]:
    """Return a whole-path pattern; `**` crosses folders, `{a,b}`, `[ab]`, `?(x)`, `+(a|b)` work.

    A glob that cannot be translated matches only itself.
    """
    if len(glob) > MOST:
        return re.compile(re.escape(glob) + r"\Z")
    try:
        return re.compile(_translate(glob) + r"\Z", re.DOTALL)
    except re.error:
        return re.compile(re.escape(glob) + r"\Z")


def _translate(glob: str) -> str:
    out: list[str] = []
    closing: list[str] = []
    at = 0
    while at < len(glob):
        char, pair = glob[at], glob[at : at + 2]
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            out.append("(?:.*/)?")
            at += 3
        elif pair == "**":
            out.append(".*")
            at += 2
        elif pair in ("?(", "*(", "+(", "@("):
            out.append("(?:")
            closing.append(")" + {"@": ""}.get(char, char))
            at += 2
        elif pair == "!(":
            out.append("(?!")
            closing.append(")[^/]*?")
            at += 2
        elif char == "{":
            out.append("(?:")
            closing.append(")")
            at += 1
        elif char in ")}" and closing:
            out.append(closing.pop())
            at += 1
        elif char in "|," and closing:
            out.append("|")
            at += 1
        elif char == "[" and (end := glob.find("]", at + 2)) > 0:
            body = glob[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out.append("[" + ("^" + body[1:] if body[0] in "!^" else body) + "]")
            at = end + 1
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char))
            at += 1
    out += reversed(closing)
    return "".join(out)


def inside(folder: str, glob: str) -> str:
    """Return the glob below a folder: `inside("a", "**/*.t")` is `a/**/*.t`; "" is the root."""
    clean = glob.removeprefix("./").lstrip("/")
    return f"{literal(folder)}/{clean}" if folder not in ("", ".") else clean


def literal(path: str) -> str:
    """Return a path escaped so that its characters mean themselves in a glob."""
    return re.sub(r"[*?\[{]", lambda found: f"[{found[0]}]", path)


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    """Translate a .gitignore-style glob: `**` crosses folders, a bare name matches anywhere."""
    start = "" if "/" in pattern.strip("/") else "(?:.*/)?"
    body = PART.sub(lambda hit: SIGNS.get(hit[0]) or re.escape(hit[0]), pattern.strip("/"))
    return re.compile(rf"^{start}{body}(?:/.*)?$", re.DOTALL)


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether a repository path matches any glob; a folder's name matches everything below it."""
    return any(_glob(pattern).match(path) for pattern in patterns if pattern.strip("/"))


def is_executable_config(path: str) -> bool:
    """Whether tools on the user's machine later run this file without being asked (T2).

    A folder with a HEAD is a repository to git, even if it is not called `.git`.
    """
    parts = PurePosixPath(path).parts
    return matches(path, EXECUTABLE_CONFIG) or ".git" in parts or parts[-1:] == ("HEAD",)
