"""Whether a command could decide anything, or never started: judged before any worker is paid.

A command is started by the shell, the dynamic loader and the launcher of its language. Each of them
reports a failure to start with its own messages and exit codes. What fails to start may be a
program of the repository that is not written yet: that is red, not a missing environment.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone, speaks_of
from agentrunner.verification.results.commands import unwrapped
from agentrunner.verification.results.counts import Counts
from agentrunner.verification.results.files import json_of
from agentrunner.verification.results.model import ReadFile, Results, TestResult
from agentrunner.verification.results.names import uncoloured
from agentrunner.verification.results.shell import simple_commands, words_of
from agentrunner.verification.rooms.complaints import (
    NO_MODULE,
    NO_SUCH_FILE,
    condition_lacked_by,
    missing_programs,
    missing_targets,
    misused,
    unfetched,
    unresolved,
)
from agentrunner.verification.rooms.lacking_packages import (
    declared_in,
    lacking_package,
    package_lacked_by,
)
from agentrunner.verification.rooms.own_code import is_own_module, is_own_path

NO_TESTS = "no tests ran"
UNREADABLE_FOR_SHELL = lazy_regex(
    r"(?:sh: (?:-c: )?(?:line )?\d+: .*\n)*sh: (?:-c: )?(?:line )?\d+: [Ss]yntax error.*"
)
"""The whole output of a shell that cannot read a command, for example one with an open quote."""
NOT_WRITTEN = lazy_regex(
    r"(?m)^(?:.* is no folder of the repository|error: .*no such (?:sub)?command.*)$"
)
"""Messages about a folder or a part of Cargo that is not there."""
IN_PACKAGES = lazy_regex(
    r"(?P<home>(?:.*/)?)(?:(?P<node>node_modules/\.bin)|vendor/bin)/(?P<program>[^/]+)$"
)
"""Where npm and Composer put the programs of packages, beside the manifest."""
LOADER = lazy_regex(
    r"(?m)^(?P<program>[^\s:]+): (?:"
    r"error while loading shared libraries: .*|"
    r"symbol lookup error: .*|"
    r"relocation error: .*|"
    r".*: version `[^']+' not found \(required by .*\)"
    r")$"
)
"""Messages of the dynamic loader about a program whose libraries it does not find."""
LAUNCHERS = (
    lazy_regex(r"(?m)^Error: could not open `.*jvm\.cfg'.*$"),
    lazy_regex(
        r"(?m)^Error: (?:Could not create the Java Virtual Machine|could not find libjava).*$"
    ),
    lazy_regex(r"(?m)^Error occurred during initialization of (?:VM|boot layer).*$"),
    lazy_regex(r"(?m)^.*InternalError: Error loading java\.security file.*$"),
    lazy_regex(r"(?m)^Fatal Python error: (?:init_|initfsencoding|Py_Initialize).*$"),
    lazy_regex(r"(?m)^Could not create service of type \S+ using .*$"),  # Gradle
    lazy_regex(r"(?m)^go: cannot find GOROOT directory.*$"),
    lazy_regex(r"(?m)^go: .*\brequires go >= .*$"),
    lazy_regex(r"(?m)^go: (?:errors parsing \S*go\.work:|download go\S+ for ).*$"),
    lazy_regex(r"(?m)^(?:go: )?reading go\.work: .*$"),
    lazy_regex(r"(?m)^.*current directory is contained in a module that is not one of the .*$"),
    lazy_regex(r"(?m)^error: rustup could not choose a version of .*$"),
    lazy_regex(r"(?m)^error: toolchain '\S+' is not (?:installed|installable).*$"),
    lazy_regex(r"(?m)^\w+env: version [`'].+' is not installed.*$"),
    lazy_regex(r"(?m)^(?:\w+: )?Cannot connect to the Docker daemon.*$"),
)
"""Messages of a language's launcher about a missing installation or configuration of its own."""
FETCHES = (
    lazy_regex(
        r"(?m)^npm (?:ERR!|error) request to \S+/(?P<tool>[^\s/]+) failed: cache mode is .*$"
    ),
    lazy_regex(r"(?m)^.*[Bb]ecause (?P<tool>\S+) was not found in the cache and .*$"),
    lazy_regex(r"(?m)^[^\S\n]*ERROR: No matching distribution found for (?P<tool>\S+)$"),
    lazy_regex(
        r"(?m)^(?:.*: )?Could not find (?:gem '|(?=\S+-\d))(?P<tool>[^\s',]+).* in"
        r" (?:any of the sources|locally installed gems|rubygems repository|cached gems)\b.*$"
    ),
)
"""Messages of an offline package manager about a tool that it would have to fetch first."""
CONFTEST = lazy_regex(r"(?m)^ImportError while loading conftest .*$")
MISSING_MODULE = lazy_regex(r"(?m)^E\s+ModuleNotFoundError: No module named '(?P<module>\w+).*$")
INSTALL_ADVICE = lazy_regex(
    r"(?im)^(?:E\s+)?.*\binstall (?:it|this|them) with\b.*$|^(?:E\s+)?.*\bpip install\b.*$"
)
"""Messages of an installed package about one that is not installed."""
NOT_OF_GO = lazy_regex(r"(?m)package (?P<first>[^\s/.]+)(?:/\S+)? is not in (?:GOROOT|std)\b.*$")
"""A message of go about a package of its own library that this version of Go does not have."""
MISSING_MEMBER = lazy_regex(
    r"(?m)^go: (?:cannot load module (?P<place>\S+) listed in go\.work file"
    r"|open (?P<whole>\S+)/go\.mod: no such file or directory).*$"
)
"""Messages of go about a member of the workspace that does not exist."""
MAKE_FAILED = lazy_regex(r"(?m)^\w*make(?:\[\d+\])?: \*\*\* \[.*\] Error 12[67]$")
"""Messages of make about a program that it could not start."""
_LONGEST_HEAD = 256
"""Bytes of a script's first line, as the kernel reads it."""
SILENT_DEATHS = frozenset(
    128 + number
    for number in (
        signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS,
    )
)  # fmt: skip
_SHELL_ON_SIGNAL = lazy_regex(
    r"(?:.*: )?(?:line \d+: +\d+ |\d+ )?(?:Illegal instruction|Aborted|Bus error|"
    r"Floating point exception|Segmentation fault|Bad system call)(?: \(core dumped\))?.*"
)


class ShellOutcome(Protocol):
    """How a shell command ended, as far as it says whether it started."""

    @property
    def exit_code(self) -> int:
        """The command's exit code."""

    @property
    def tail(self) -> str:
        """The end of its output."""

    @property
    def counts(self) -> Counts | None:
        """The counts of tests in its output."""


class _Colourless(Struct, frozen=True):
    """A command that ran to its end, with its output without colours."""

    exit_code: int
    tail: str
    counts: Counts | None


def why_not_started(
    shell: str, ran: ShellOutcome, repo: Path, *, is_test: bool, wanted: str = "", cwd: str = "."
) -> str:
    """Why the command could not start and so decided nothing; "" where it did start.

    `cwd` is the folder of the repository in which it runs.
    A program of the repository that is not written yet is red, not a missing environment; so is
    a file that the command reads if `wanted`, the text of the PRD, names it.
    """
    ran = _Colourless(ran.exit_code, uncoloured(ran.tail), ran.counts)
    ran_none = ran.counts is None or not ran.counts.sure
    if ran.exit_code in (126, 127):
        # A path of the repository (`./run.sh`, `bin/tool`) may still have to be written.
        named = (*missing_programs(ran.tail), *LOADER.finditer(ran.tail))
        own = [hit["program"] for hit in named if is_own_path(hit["program"], repo)]
        if why := next(filter(None, (_leads_out(one, repo, cwd) for one in own)), ""):
            return why
        if not own:
            return ran.tail.strip().splitlines()[-1] if ran.tail.strip() else "command not found"
    elif ran.exit_code == 2 and UNREADABLE_FOR_SHELL.fullmatch(output := ran.tail.strip()):
        return f"the shell cannot read it: {output.splitlines()[0]}"
    elif ran.exit_code and ran_none and (why := _start_failed(shell, repo, ran, wanted)):
        return why
    if not is_test:
        return ""
    if ran.exit_code and ran_none and (why := _file_lacking(shell, ran.tail, repo, wanted)):
        return why
    if ran_none and (why := misused(shell, ran.exit_code, ran.tail, repo, wanted, cwd)):
        return why
    if ran.counts is not None and ran.counts.ran == 0 and ran.counts.skipped == 0:
        return NO_TESTS
    if ran.exit_code == 0:
        return ""
    # A test command that names a target which nobody wrote is mistaken; a check may wait for it.
    missing = (one.text for one in missing_targets(ran.tail) if not one.inner)
    if why := next(missing, "") or (NOT_WRITTEN.search(ran.tail) or [""])[0].strip():
        return why
    return tool_lacking(shell, ran, repo)


def _leads_out(program: str, repo: Path, cwd: str) -> str:
    """Where a program of the repository that is there leads out of it; "" where it does not.

    A virtual environment's Python is a link to that of the machine where it was made.
    """
    path = repo / cwd / program
    with contextlib.suppress(OSError), path.open("rb") as file:  # a link may be broken
        first = file.readline(_LONGEST_HEAD).decode("utf-8", "replace")
        if first.startswith("#!") and (words := first[2:].split()):
            path = Path(words[0])
    target = path.resolve()
    if not path.is_symlink() or repo.resolve() in target.parents:
        return ""
    return f"{program} leads to {target}, which is not in the sandbox"


def missing_program(shell: str, exit_code: int, repo: Path, cwd: str = ".") -> str:
    """The path in the repository of the program that a command is alone and that does not exist.

    "" for none. What stands before a program in a command may be what builds it.
    """
    commands = [one.texts for one in simple_commands(shell) if one.texts]
    if exit_code != 127 or len(commands) != 1:
        return ""
    words = commands[0][unwrapped(commands[0])[0] :]
    if not words or not is_own_path(words[0], repo):
        return ""
    path = Path(os.path.normpath(repo / cwd / words[0]))
    return "" if path.exists() or repo not in path.parents else str(path.relative_to(repo))


def may_be_made(path: str, read: ReadFile) -> bool:
    """Whether a program in a folder of packages is of one that no manifest of the tree names yet.

    The work may then be to add it. False for other programs, and where there is no manifest.
    """
    hit = IN_PACKAGES.match(path)
    if hit is None:
        return False
    name = "package" if hit["node"] else "composer"
    found = [read(f"{hit['home']}{name}{ending}") for ending in (".json", "-lock.json", ".lock")]
    listed = [json_of(text.decode("utf-8", "replace")) for text in found if text is not None]
    program = re.compile(alone(hit["program"]))
    return bool(listed) and not any(program.search(str({**one, "scripts": {}})) for one in listed)


def names_missing_file(shell: str, why: str) -> bool:
    """Whether `why_not_started` says of a file that the command names that it does not exist."""
    words = [word for word in shell.split()[1:] if _names_a_file(word)]
    return bool(NO_SUCH_FILE.search(why)) and any(word in why for word in words)


def _file_lacking(shell: str, output: str, repo: Path, wanted: str) -> str:
    """The message about a file that the command itself names and that does not exist.

    A program that the command starts by its path is another matter: it may be built first.
    """
    lacking = [
        word
        for word in words_of(shell)[1:]
        if _names_a_file(word)
        and not speaks_of(wanted, Path(word).name)
        and not (repo / word).exists()
    ]
    for line in output.splitlines():
        if NO_SUCH_FILE.search(line) and any(word in line for word in lacking):
            return line.strip()
    return ""


def _names_a_file(word: str) -> bool:
    return bool(re.fullmatch(r"[\w@+./-]*\w\.\w+", word)) and not word.startswith(("-", "./"))


def why_no_test_says_anything(
    shell: str,
    ran: ShellOutcome,
    results: Results | None,
    repo: Path,
    wanted: str = "",
    cwd: str = ".",
) -> str:
    """Why the test command could decide nothing: it could not start, or its tests could not.

    "" where a test decided something, by name or by number; `NO_TESTS` where there is none.
    """
    why = why_not_started(shell, ran, repo, is_test=True, wanted=wanted, cwd=cwd)
    if results is not None and results.tests:
        none_loaded = all(test.unloaded for test in results.tests)
        also = _why_none_of(results, ran, repo, wanted) if ran.exit_code else ""
        return also or (why if none_loaded and why != NO_TESTS else "")
    failed = ran.counts.failed if ran.counts is not None else 1
    if why or not ran.exit_code or (ran.counts is not None and ran.counts.passed):
        return why
    return lacking_package(ran.tail, repo, wanted, failed)


def _why_none_of(results: Results, ran: ShellOutcome, repo: Path, wanted: str) -> str:
    """Why a command that failed can never say more, with tests by name; "" where one could.

    A part of the project whose tests no tool could even start has no names to go on without.
    """
    tests = [test for test in results.tests if test.outcome != "skipped"]
    reasons = [_why_it_could_not_run(test, repo, wanted) for test in tests]
    return reasons[0] if reasons and all(reasons) else unresolved(uncoloured(ran.tail))


def tests_that_could_not_run(results: Results, repo: Path, wanted: str) -> dict[str, str]:
    """Red tests that could say nothing here, with the reason; the others did say something."""
    found: dict[str, str] = {}
    for test in results.red:
        if why := _why_it_could_not_run(test, repo, wanted):
            found.setdefault(test.name, why)
    return found


def _why_it_could_not_run(test: TestResult, repo: Path, wanted: str) -> str:
    """Why a red test could say nothing here: a package or a condition that is missing; else ""."""
    if not test.red:
        return ""
    if why := package_lacked_by(test.message, repo, wanted) or condition_lacked_by(test, wanted):
        return why
    return unfetched(test.message, wanted) if test.outcome == "error" else ""


def tool_lacking(shell: str, ran: ShellOutcome, repo: Path) -> str:
    """Python's message that the test tool is not installed; "" where there is none.

    A submodule of the product may be what is still to be written: that is red.
    """
    hit = NO_MODULE.search(ran.tail) if ran.exit_code else None
    if hit is None or not re.search(rf"-m\s+{re.escape(hit['module'])}(?![\w.])", shell):
        return ""
    package, _, submodule = hit["module"].partition(".")
    return "" if submodule and is_own_module(package, repo) else hit[0].strip()


def _start_failed(shell: str, repo: Path, ran: ShellOutcome, wanted: str) -> str:
    """The message of a loader, a launcher, make or the kernel; "" where a program did start."""
    for hit in LOADER.finditer(ran.tail):
        if not is_own_path(hit["program"], repo):
            return hit[0].strip()
    for pattern in FETCHES:
        if found := pattern.search(ran.tail):
            tool = found["tool"].replace("%2f", "/")
            return (
                f"{tool} is not installed: it would be fetched at run time, and there is no"
                " network here; task.setup.command can install it"
            )
    for pattern in LAUNCHERS:
        if found := pattern.search(ran.tail):
            return " ".join(found[0].split())
    if (package := NOT_OF_GO.search(ran.tail)) and not _is_of_own_go_module(package["first"], repo):
        return package[0]
    if why := unfetched(ran.tail, wanted):
        return why
    if (member := MISSING_MEMBER.search(ran.tail)) and not _is_below(
        member["place"] or member["whole"], repo
    ):
        return member[0].strip()
    if why := _missing_for_conftest(ran.tail, repo):
        return why
    if MAKE_FAILED.search(ran.tail):
        for hit in missing_programs(ran.tail):
            if not is_own_path(hit["program"], repo):
                return hit[0].strip()
    if ran.exit_code in SILENT_DEATHS and not _names_own_files(shell, repo):
        lines = [line for line in ran.tail.splitlines() if line.strip()]
        if all(_SHELL_ON_SIGNAL.fullmatch(line.strip()) for line in lines):
            return f"killed by {signal.Signals(ran.exit_code - 128).name} before it said anything"
    return ""


def _missing_for_conftest(output: str, repo: Path) -> str:
    """The message about a package that pytest's conftest needs and nobody installed; "" for none.

    A module of the repository's own that is still to be written is red.
    """
    if not CONFTEST.search(output):
        return ""
    if advice := INSTALL_ADVICE.search(output):
        return advice[0].removeprefix("E").strip()
    missing = MISSING_MODULE.search(output)
    if missing is not None and declared_in(missing["module"], repo):
        return missing[0].removeprefix("E").strip()
    return ""


def _is_of_own_go_module(first: str, repo: Path) -> bool:
    """Whether a package whose path begins so may be one of the repository, still to be written."""
    try:
        manifest = (repo / "go.mod").read_text("utf-8", "replace")
    except OSError:
        return True  # its modules are further down
    return re.search(rf"(?m)^module\s+\"?{re.escape(first)}(?:[/\"\s]|$)", manifest) is not None


def _is_below(place: str, repo: Path) -> bool:
    try:
        return (repo / place).resolve().is_relative_to(repo.resolve())
    except OSError:
        return False


def _names_own_files(shell: str, repo: Path) -> bool:
    """Whether the command names anything of the repository, which then may be what died."""
    try:
        words = shlex.split(shell, comments=True)
    except ValueError:
        return True
    return any("/" in w.lstrip("/") or (repo / w).exists() for w in words if not w.startswith("-"))
