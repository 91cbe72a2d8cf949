"""Lists the readers, and makes a command report, reads its results and narrows it to some tests."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentrunner.verification.results.commands import runs_of
from agentrunner.verification.results.files import read_small
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    ReadFile,
    Results,
    TestResult,
)
from agentrunner.verification.results.shell import quoted
from agentrunner.verification.results.tools.base import Tool
from agentrunner.verification.results.tools.behave import Behave
from agentrunner.verification.results.tools.cargo import Cargo
from agentrunner.verification.results.tools.ctest import CTest
from agentrunner.verification.results.tools.dotnet import Dotnet
from agentrunner.verification.results.tools.go import Go
from agentrunner.verification.results.tools.gtest import GTest
from agentrunner.verification.results.tools.java import Gradle, JunitConsole, Maven
from agentrunner.verification.results.tools.jest import Jest, Vitest
from agentrunner.verification.results.tools.minitest import Minitest
from agentrunner.verification.results.tools.mocha import Mocha
from agentrunner.verification.results.tools.node import Node
from agentrunner.verification.results.tools.phpunit import PHPUnit
from agentrunner.verification.results.tools.pytest import Pytest
from agentrunner.verification.results.tools.rspec import RSpec
from agentrunner.verification.results.tools.tap import Tap
from agentrunner.verification.results.tools.unittest import Unittest

READERS: list[Tool] = [
    Pytest(), Unittest(), Behave(), Jest(), Vitest(), Mocha(), Node(), Go(), Cargo(), CTest(),
    GTest(), Maven(), Gradle(), JunitConsole(), RSpec(), Minitest(), PHPUnit(), Dotnet(), Tap(),
]  # fmt: skip
"""In order of preference."""
FOLDERS = frozenset({"PATH", "PYTHONPATH", "RUBYLIB"})
OPTIONS = frozenset({"NODE_OPTIONS", "PYTEST_ADDOPTS", "SPEC_OPTS"})
STARTED = "started"


def readers_of(shell: str, cwd: str, read: ReadFile) -> list[Tool]:
    """The readers of the tools that a command runs, in order of preference."""
    command = Command(shell, cwd, read)
    return [reader for reader in READERS if reader.runs(command)]


def options_that_name(shell: str, cwd: str, read: ReadFile) -> list[str]:
    """The options by which the tools that a command runs choose tests by name."""
    return [option for one in readers_of(shell, cwd, read) for option in one.named_by]


def weaker(shell: str, cwd: str, read: ReadFile, means: int = 0) -> int | None:
    """The next weaker means for this command; None where only totals are left.

    `means` is passed to `instrument` and `read_results`. A reader that has no weaker means stays at
    its last one.
    """
    most = max((len(reader.means) for reader in readers_of(shell, cwd, read)), default=0)
    return means + 1 if means + 1 < most else None


def instrument(shell: str, cwd: str, read: ReadFile, place: str, means: int = 0) -> Instrumented:
    """The command, made to report to all readers that fit it; unchanged where none does.

    `place` is an absolute path in the sandbox, of a random name, that the command can write to.
    The result needs nothing but its files written there: its `env` is empty. Exit code, selection
    and order of the tests do not change, except that cargo continues after the first program that
    fails: otherwise nobody would know what is red in the others.
    """
    readers = readers_of(shell, cwd, read)
    if not readers:
        return Instrumented(shell)
    env: dict[str, str] = {}
    files: dict[str, str | bytes] = {}
    after: list[str] = []
    for reader in readers:
        command = Command(shell, cwd, read)
        instrumented = reader.instrument(command, place, _index_of_means(reader, means))
        if instrumented is None:
            continue
        shell = instrumented.shell
        for name, value in instrumented.env.items():
            env[name] = _joined_value(name, env.get(name, ""), value)
        files |= instrumented.files
        after += [instrumented.after] * (
            bool(instrumented.after) and instrumented.after not in after
        )
    files["enter.sh"] = _enter_script(place, env, any(name.startswith("bin/") for name in files))
    enter = f"[ ! -r {place}/enter.sh ] || . {place}/enter.sh"
    if not after:
        return Instrumented(f"{enter}\n{shell}", files=files)
    files["leave.sh"] = "\n".join(after) + "\n"
    return Instrumented(
        f"{enter}\n(\n{shell}\n)\nagentrunner_code=$?\n"
        f"( . {place}/leave.sh ) >/dev/null 2>&1 </dev/null\nexit $agentrunner_code",
        files=files,
    )


def read_results(
    shell: str,
    cwd: str,
    read: ReadFile,
    place_on_host: Path,
    stdout: str,
    stderr: str,
    exit_code: int,
    means: int = 0,
    paths: Collection[str] = (),
) -> Results | None:
    """What a command reported, all its tools together; None where no tool reported anything.

    `paths` are the files of the tree that it ran on. The results are not complete where a tool's
    own report is not, or where the command failed and a tool that it names reported nothing.
    """
    folder = read_small(place_on_host, STARTED).rstrip("\n")
    ran = Ran(place_on_host, stdout, stderr, exit_code, folder, cwd, paths, read)
    readers = readers_of(shell, cwd, read)
    found = [_read(reader, ran, means) for reader in readers]
    parts = [results for results in found if results is not None]
    if not parts:
        return None
    silent = len(parts) < len(found) and len(parts) < len(_runs_of_known_tools(shell, cwd, read))
    whole = all(part.complete for part in parts) and not (exit_code and silent)
    if len(parts) == 1:
        return replace(parts[0], complete=whole)
    tests: list[TestResult] = [test for part in parts for test in part.tests]
    return Results(
        "+".join(dict.fromkeys(part.reader for part in parts)),
        tuple(tests),
        weak=any(part.weak for part in parts),
        complete=whole,
        looked=sum(part.looked for part in parts),
        exchanged=tuple(one for part in parts for one in part.exchanged),
    )


def select(shell: str, names: Sequence[str], cwd: str, read: ReadFile) -> str | None:
    """The command narrowed to these tests, or to little more; None where that is not possible."""
    command = Command(shell, cwd, read)
    selected = (reader.select(command, names) for reader in readers_of(shell, cwd, read))
    return next((one for one in selected if one is not None), None)


def _read(reader: Tool, ran: Ran, means: int) -> Results | None:
    try:
        return reader.read(ran, _index_of_means(reader, means))
    except Exception:  # noqa: BLE001 - reports are hostile
        return Results(reader.name, complete=False)


def _index_of_means(reader: Tool, means: int) -> int:
    return min(means, len(reader.means) - 1)


def _runs_of_known_tools(shell: str, cwd: str, read: ReadFile) -> list[str]:
    """The commands that run known tools, each as one text."""
    runs = [shlex.join(run.words) for run in runs_of(shell, cwd, read)]
    return [alone for alone in runs if readers_of(alone, cwd, read)]


def _joined_value(name: str, before: str, value: str) -> str:
    if not before or before == value:
        return value
    if name in FOLDERS:
        return ":".join(dict.fromkeys([*before.split(":"), *value.split(":")]))
    return f"{before} {value}" if name in OPTIONS else value


def _enter_script(place: str, env: Mapping[str, str], programs: bool) -> str:
    """Shell text for the start of the command's own shell: sets variables, records the folder."""
    lines = [f"pwd -P >{quoted(f'{place}/{STARTED}')} 2>/dev/null"]
    if programs:
        # Copies, since whoever runs this may not be the owner of the files.
        here = quoted(place)
        lines.append(f"mkdir {here}/run && cp {here}/bin/* {here}/run && chmod 755 {here}/run/*")
        env = {**env, "PATH": f"{place}/run"}
    for name, value in env.items():
        if name in FOLDERS:
            lines.append(f'{name}={quoted(value)}"${{{name}:+:${name}}}"')
        elif name in OPTIONS:
            lines.append(f'{name}="${{{name}:+${name} }}"{quoted(value)}')
        elif name == "PHP_INI_SCAN_DIR":
            lines.append(f'{name}="${{{name}-}}":{quoted(value)}')
        else:
            lines.append(f"{name}={quoted(value)}")
        lines.append(f"export {name}")
    if env:
        # tox passes on only the variables that it is configured to, in each of its two forms of
        # configuration; tox 3 has a variable of its own.
        names = ",".join(env)
        passed = f"testenv.pass_env+={names};env_run_base.pass_env+={names}"
        lines.append(f'TOX_OVERRIDE="${{TOX_OVERRIDE:+$TOX_OVERRIDE;}}"{quoted(passed)}')
        lines.append("export TOX_OVERRIDE")
        lines.append(f"TOX_TESTENV_PASSENV={quoted(' '.join(env))}; export TOX_TESTENV_PASSENV")
    return "\n".join(lines) + "\n"
