"""Judge one trial of a test command by a table of test runners. Pure.

An exit code means little without its runner: 5 is "no tests" for pytest and nothing for make. A run
that neither the runner's counts nor this table explain never counts as a start of the tests.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agentrunner.discovery.found import FoundCommand
from agentrunner.discovery.services import lacking
from agentrunner.text.cut import cut, telling_line
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome
from agentrunner.verification.rooms.own_code import is_own_module
from agentrunner.verification.rooms.start_up import NO_TESTS, why_no_test_says_anything

Kind = Literal["passes", "red", "no_count", "running", "unclear", "not_tried", "no_tests", "fails"]
"""`no_count`: exit 0, but no test counts; `unclear`: tests passed, but the command failed;
`running`: the time limit ended it.
"""


class ExitMeaning(Struct, frozen=True):
    """The meaning of an exit code, if the output shows that it came from this runner."""

    runner: str
    code: int
    text: str
    shown_by: str = ""
    """Output of the runner: uv, make or a shell may end with the same code."""


NOT_COLLECTED = "the tests could not be collected"
MEANINGS = (
    ExitMeaning(
        r"\bpytest\b", 2, NOT_COLLECTED,
        r"during collection|ERROR collecting|Interrupted:",
    ),
    ExitMeaning(r"\bpytest\b", 3, "pytest itself failed", r"INTERNALERROR"),
    ExitMeaning(
        r"\bpytest\b", 4, "pytest does not know an option, a path or a plug-in of it",
        r"^ERROR: |error: unrecognized|usage: |ImportError while loading conftest|conftest\.py",
    ),
    ExitMeaning(r"\bpytest\b", 5, NO_TESTS, r"no tests|collected 0 items|deselected"),
    ExitMeaning(r"-m\s+unittest\b", 5, NO_TESTS, r"^NO TESTS RAN|^Ran 0 tests"),
    ExitMeaning(r"\bnextest\b", 4, NO_TESTS),
    ExitMeaning(r"\bcargo\b", 101, "it does not compile, or a package is missing", r"^error"),
)  # fmt: skip
"""Exit codes that a runner's manual explains; red tests are known by their counts instead."""
_LINE = 160


@dataclass(frozen=True)
class TriedCommand:
    """A test command, and the result of its trial."""

    found: FoundCommand
    """The command as it was run, with fixes if it needed some."""
    kind: Kind = "not_tried"
    summary: str = ""
    """One line: "41 passed, 1 failed, 3.8 s"."""
    exit_code: int | None = None
    passed: int = 0
    failed: int = 0
    failing: tuple[str, ...] = ()
    """Names of tests that were red before any change."""
    duration_sec: float = 0
    lacks: tuple[str, ...] = ()
    """A sentence for each thing that a sandbox does not provide: a database, a browser, Docker."""
    offline: bool = False
    """Whether it failed because the network, or what a set-up fetches with it, is not there."""

    @property
    def runs(self) -> bool:
        """Whether tests ran to their end."""
        return self.kind in ("passes", "red")


def not_tried(found: FoundCommand, why: str = "") -> TriedCommand:
    """Return the entry of a candidate that was not run."""
    return TriedCommand(
        found, summary=f"not tried: {why or found.needs}" if why or found.needs else ""
    )


def judge(
    found: FoundCommand, ran: CommandOutcome, output: str, repo: Path, runners: Sequence[str] = ()
) -> TriedCommand:
    """Judge one run of the command; `output` is all that was kept of it.

    `runners` are the shell texts behind the command, in which its test runner is looked for.
    """
    took = f"{ran.duration_sec:.1f} s" if ran.duration_sec < 10 else f"{ran.duration_sec:.0f} s"
    counts = ran.counts
    seen = TriedCommand(
        found,
        exit_code=ran.exit_code,
        passed=counts.passed if counts else 0,
        failed=counts.failed if counts else 0,
        failing=tuple(counts.failing) if counts else (),
        duration_sec=ran.duration_sec,
        lacks=lacking(output) if ran.exit_code else (),
    )
    if ran.timed_out:
        last = next((line for line in reversed(output.splitlines()[:-1]) if line.strip()), "")
        note = f"it printed: {cut(last.strip(), _LINE)}" if last else "nothing printed yet"
        return replace(seen, kind="running", summary=f"still running after {took}, {note}")
    made = _OF_MAKE.search(output) if ran.exit_code == 2 else None  # make's own code is always 2
    code = int(made[1]) if made else ran.exit_code
    meaning = _meaning([found.command, *runners], code, output)
    why = why_no_test_says_anything(found.command, ran, None, repo)
    if meaning == NO_TESTS or why == NO_TESTS:
        return replace(seen, kind="no_tests", summary=f"finds no tests, {took}")
    if meaning == NOT_COLLECTED and (names := own_imports(output, repo)):
        more = f" and {len(names) - 1} more" * (len(names) > 1)
        missing = f"the tests import what the project does not have yet: {names[0]}{more}, {took}"
        return replace(seen, kind="red", failed=max(seen.failed, len(names)), summary=missing)
    seen = replace(seen, offline=bool(ran.exit_code and OFFLINE.search(f"{output}\n{why}")))
    line = telling_line(output, _LINE)
    if why or (meaning and not (counts and counts.passed)):
        note = f"exit {code}: {meaning or why}" + (f"; {line}" if meaning and line else "")
        return replace(seen, kind="fails", summary=note)
    if counts is not None and counts.ran:
        whose = " of its packages" * counts.packages
        counted = f"{counts.passed}{whose} passed, {counts.failed} failed, {took}"
        if ran.exit_code == 0 or counts.failed:
            return replace(seen, kind="red" if counts.failed else "passes", summary=counted)
        clause = f"; {meaning or line or 'nothing says why'}"
        return replace(
            seen, kind="unclear", summary=f"{counted}, and yet exit {ran.exit_code}{clause}"
        )
    if ran.exit_code == 0:
        note = f"exit 0, {took}; how many tests ran is not told"
        return replace(seen, kind="no_count", summary=note)
    reason = meaning or line or "nothing says why"
    more = f"; {line}" if meaning and line else ""
    note = f"exit {code}, no test was seen to run: {reason}{more}"
    return replace(seen, kind="fails", summary=note)


OFFLINE = lazy_regex(
    r"(?i)temporary failure in name resolution|name or service not known|could not resolve host"
    r"|network is unreachable|\bENOTFOUND\b|\bEAI_AGAIN\b|dial tcp|failed to lookup address"
    r"|dns error|failed to fetch|could not fetch|unknown host|download of .* failed"
    r"|failed to establish a new connection|getaddrinfo|\boffline mode\b"
    r"|no required module provides package|missing go\.sum entry|is not installed\b"
)
"""Messages of tools that needed the network but had none, or packages that a set-up fetches."""


_IMPORT_FAILS = lazy_regex(r"(?m)^E\s+((?:Import|ModuleNotFound|Attribute|Name|Syntax)Error: .*)$")
_NO_NAME = lazy_regex(r"ImportError: cannot import name '(\w+)' from .*\((/[^()]+)\)")
_NO_MODULE = lazy_regex(r"ModuleNotFoundError: No module named '([\w.]+)'")


def own_imports(output: str, repo: Path) -> list[str]:
    """Return names that tests import from the project's own modules and that do not exist yet.

    [] if anything else is missing as well, such as a package: then the tests are unknown.
    """
    names: list[str] = []
    for error in _IMPORT_FAILS.findall(output):
        name, module = _NO_NAME.search(error), _NO_MODULE.search(error)
        if name and _lies_in(name[2], repo):
            names.append(name[1])
        elif module and is_own_module(module[1].split(".")[0], repo, ("", "src", "lib")):
            names.append(module[1])
        else:
            return []
    return names


def _lies_in(path: str, repo: Path) -> bool:
    """Whether a path in a trial's folder is also a file of the repository."""
    parts = Path(path).parts[1:]
    return any((repo / Path(*parts[at:])).is_file() for at in range(len(parts)))


_OF_MAKE = lazy_regex(r"(?m)^g?make(?:\[\d+\])?: \*\*\* .*\bError (\d+)")


def _meaning(texts: Sequence[str], code: int, output: str) -> str:
    for row in MEANINGS:
        if row.code != code or not any(re.search(row.runner, text) for text in texts):
            continue
        if not row.shown_by or re.search(row.shown_by, output, re.MULTILINE):
            return row.text
    return ""


_ORDER: dict[Kind, int] = {
    "passes": 0,
    "red": 0,
    "unclear": 1,
    "no_count": 1,
    "running": 1,
    "not_tried": 2,
    "no_tests": 3,
    "fails": 4,
}


def ranked(seen: Sequence[TriedCommand]) -> list[TriedCommand]:
    """Sort the best first: ran tests, most passed, fewest failed, fastest.

    `seen` is in the order of the table, which decides ties. A command that only lacked the network
    is grouped with those that were not tried; one that was not tried and begins with a tool that is
    not there, with those that failed.
    """
    absent = {_tool(one) for one in seen if one.exit_code == 127 and one.kind == "fails"}

    def key(item: tuple[int, TriedCommand]) -> tuple[int, int, int, int, int]:
        index, one = item
        group = _ORDER[one.kind]
        if one.kind == "fails" and one.offline:
            group = _ORDER["not_tried"]
        if one.kind == "not_tried" and _tool(one) in absent:
            group = _ORDER["fails"]
        if one.kind == "red" and not one.passed:
            group = 1
        if one.kind == "not_tried" and one.found.needs:
            index += len(seen)
        # Times within a factor of four count as equal: they vary from trial to trial.
        slow = max(0, int(one.duration_sec)).bit_length() // 2 if one.runs else 0
        counted = (-one.passed, one.failed) if group == 0 else (0, 0)
        return (group, *counted, slow, index)

    return [one for _, one in sorted(enumerate(seen), key=key)]


def _tool(one: TriedCommand) -> str:
    return one.found.command.partition(" ")[0]


_UNKNOWN = lazy_regex(r"error: unrecognized arguments: (.+)")


def from_the_root(command: str, output: str, repo: Path) -> str:
    """Return the command as `python -m pytest`, which can import modules at the root, unlike
    `pytest`.

    "" if that would not help: the missing module is elsewhere, or does not exist.
    """
    hit = re.match(r"(?:(\S+/)(?=pytest\b))?pytest\b(?!\S)", command)
    missing = {name.split(".")[0] for name in _NO_MODULE.findall(output)}
    if hit is None or not missing or not all(is_own_module(name, repo, ("",)) for name in missing):
        return ""
    python = f"{hit[1]}python" if hit[1] else "python3"
    return f"{python} -m pytest{command[hit.end() :]}"


def without_missing_plugins(command: str, output: str) -> str:
    """Return the command without options of missing pytest plug-ins; "" if that changes nothing.

    pytest names the unknown options. If they are in its configuration, `addopts` is cleared.
    """
    hit = _UNKNOWN.search(output)
    if hit is None or not re.search(r"\bpytest\b", command):
        return ""
    unknown = {word.partition("=")[0] for word in hit[1].split() if word.startswith("-")}
    words = command.split()
    kept, left_out, index = list[str](), False, 0
    while index < len(words):
        if words[index].partition("=")[0] in unknown:
            left_out = True
            valued = "=" not in words[index] and index + 1 < len(words)
            # A plug-in's option may have its value in the next word; a path is never such a value.
            index += 2 if valued and re.fullmatch(r"\w+", words[index + 1]) else 1
        else:
            kept.append(words[index])
            index += 1
    if not left_out:
        return f"{command} -o addopts=" if "addopts" not in command else ""
    return " ".join(kept)
