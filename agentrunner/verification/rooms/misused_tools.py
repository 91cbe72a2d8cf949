"""Whether a test tool says itself that it was called wrongly, so that no test could run.

Each tool keeps such an end apart from red tests: pytest has an exit code for it, npm a report that
stands in place of any output of a script, and the others have words (`tool_usage`).
"""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path

from agentrunner.text.mentions import speaks_of
from agentrunner.verification.results.commands import runs_of
from agentrunner.verification.results.files import MOST_READ, read_plain
from agentrunner.verification.rooms.tool_usage import NODE, Complaint, complaint, has_sources

MISUSED = "the tool says: "
PYTEST_USAGE = 4
"""pytest's exit code for a command line or configuration that it cannot use."""
PYTEST_SAYS = re.compile(
    r"(?m)^ERROR: (?:usage: .*\n(?:.*\n)*?.*: (?P<why>error: .+)|(?!usage:)(?P<what>.+))$"
)
"""How pytest reports it. A conftest that cannot be imported has the same exit code and another
report: that may be a module that is still to be written."""
MAKE_SAYS = re.compile(r"(?m)^\w*make(?:\[\d+\])?: \*\*\* \[.*\] Error (?P<code>\d+)$")
MODULES = ("-m pytest", "-m py.test")
NPM_SAYS = re.compile(
    r"npm (?:ERR!|error) (?:(?P<field>code|syscall|path|errno) |(?:enoent|JSON\.parse) )?"
    r"(?P<text>.*)"
)
OWN_FAULT = re.compile(r"E(?!LIFECYCLE)[A-Z_]+")
"""npm's codes of what it could not do itself; a script that failed has a number, or ELIFECYCLE."""
NPM_WARNS = re.compile(r"npm (?:WARN|warn|notice)\b")
MANIFEST = "package.json"
TEXTS = frozenset({".md", ".txt", ".rst", ".yaml", ".yml"})


def misused(
    shell: str, exit_code: int, output: str, repo: Path, wanted: str, cwd: str = "."
) -> str:
    """The tool's own words that it was called wrongly; "" where it does not say so.

    `cwd` is the folder of the repository in which the command runs. What `wanted`, the text of the
    PRD, names may still be written, and so may everything in a repository that holds nothing but
    texts, and a project of which it holds no source: there the command is red.
    """
    found = complaint_of(shell, exit_code, output, repo, cwd)
    if found is None or holds_only_texts(repo):
        return ""
    return "" if any(speaks_of(wanted, name) for name in found.lacks) else f"{MISUSED}{found.text}"


def complaint_of(
    shell: str,
    exit_code: int,
    output: str,
    repo: Path,
    cwd: str = ".",
    *,
    anywhere: bool = False,
) -> Complaint | None:
    """What the tool says of its call, with the names that it lacks; None where it says nothing.

    `anywhere` also takes a missing project for wrong where the repository has no source of its
    language.
    """
    words = _pytest(shell, exit_code, output, repo) or _npm(exit_code, output)
    manifest = MANIFEST in words and not (repo / cwd / MANIFEST).exists()
    if manifest and not anywhere and not has_sources(repo, NODE):
        words = ""
    if words:
        names = [*_named(words, shell), *([MANIFEST] if manifest else [])]
        return Complaint(words, tuple(dict.fromkeys(names)))
    return complaint(shell, output, repo, cwd, anywhere=anywhere) if exit_code else None


def _pytest(shell: str, exit_code: int, output: str, repo: Path) -> str:
    made = list(MAKE_SAYS.finditer(output))
    if (int(made[0]["code"]) if made else exit_code) != PYTEST_USAGE:
        return ""
    if not any(
        run.program in ("pytest", "py.test") or (run.python or ("",))[0] in MODULES
        for run in runs_of(shell, ".", partial(read_plain, repo, most=MOST_READ))
    ):
        return ""
    words = PYTEST_SAYS.search(output)
    return (words["what"] or words["why"]).strip() if words else ""


def _npm(exit_code: int, output: str) -> str:
    """What npm reports before any script was started; it names its fault by a code."""
    lines = [line for line in output.splitlines() if line.strip() and not NPM_WARNS.match(line)]
    if not exit_code or not lines or not NPM_SAYS.fullmatch(lines[0].strip()):
        return ""
    report = [hit for line in lines if (hit := NPM_SAYS.fullmatch(line.strip()))]
    codes = [hit["text"] for hit in report if hit["field"] == "code"]
    if len(report) < len(lines) or not any(OWN_FAULT.fullmatch(code) for code in codes):
        return ""
    return next((hit["text"] for hit in report if not hit["field"] and hit["text"].strip()), "")


def _named(words: str, shell: str) -> list[str]:
    """The files, folders and tests that a message names, by their last names."""
    try:
        given = {word.rstrip("/") for word in shlex.split(shell)}
    except ValueError:
        given = set()
    tokens = [word.strip("'\"`(),:") for word in words.split()]
    paths = [word for word in tokens if word.rstrip("/") in given or "/" in word or "." in word]
    return [Path(re.sub(r":\d+$", "", path).rpartition("::")[2]).name for path in paths]


def holds_only_texts(repo: Path) -> bool:
    """Whether a repository holds no file but texts, so that everything is still to be written."""
    try:
        return all(
            entry.name.startswith(".") or (entry.is_file() and entry.suffix in TEXTS)
            for entry in repo.iterdir()
        )
    except OSError:
        return False
