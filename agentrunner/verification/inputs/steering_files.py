"""Repository path globs, and which paths can later run code on the host (threat T2). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
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
