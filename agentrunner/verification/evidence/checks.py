"""Turns a criterion's check into a command to run, or decides it by reading the tree."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct

from agentrunner.config.spec import Check, TaskSpec, TestSpec
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.globs import matches
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.names import OF_CRATE, TITLES, function_of, parts_of
from agentrunner.verification.results.registry import readers_of
from agentrunner.verification.results.tools.go import package_and_test

MOST_CHARS = 1_000_000
LIMIT_SEC = 5.0
SEARCH = """\
import json, re, sys
pattern, text = json.load(sys.stdin)
hit = re.search(pattern, text, re.MULTILINE)
print(hit.start() if hit else -1)
"""


class PatternError(ValueError):
    """The pattern cannot be read, or takes too long on this text.

    A pattern such as `(a+)+$` runs practically for ever on the wrong text, and Python cannot
    interrupt it. So another process does the search, and is killed when it takes too long.
    """


TITLE_OPTIONS = {"mocha": "-g", "ava": "-m"}
"""How tools take a test's title that differ from most: `-t` is Mocha's time-out."""
NPM_TEST = lazy_regex(r"(npm|pnpm|yarn)( run)? test\b")
NODE_TEST = lazy_regex(r"\bnode\b[^;&|\n]*?\s--test(?=\s|$)")


@dataclass(frozen=True)
class CommandCheck:
    """A check that is decided by an exit code."""

    shell: str
    cwd: str = "."
    timeout_sec: float = 600
    expect_exit: int = 0


class CheckReading(Struct, frozen=True):
    """The result of a check that is decided by looking at the tree; `detail` is what was seen."""

    passed: bool | None
    """None where the check itself is invalid, such as a pattern that cannot be read."""
    detail: str


def command_of(
    check: Check, test: TestSpec | None, read: ReadFile | None = None
) -> CommandCheck | None:
    """The command that decides `check`; None where none can be executed.

    A `test` check with a name becomes the test command narrowed to that test, where it is known
    how its tool narrows. `read` shows which tool is behind `npm test`.
    """
    match check.kind:
        case "command" if check.run.strip():
            return CommandCheck(check.run, check.cwd, check.timeout_sec, check.expect_exit)
        case "test" if check.name and test is not None:
            shell = _narrowed(*_behind_npm_test(test, read), test_name(check))
            return CommandCheck(shell, test.cwd, test.timeout_sec) if shell else None
        case "pytest" if check.file or check.test_name:
            shell = _pytest_command(check, test)
        case "playwright" if check.file:
            shell = _with_option("npx playwright test", check.file, "-g", check.test_name)
        case "go-test":
            package = check.file if check.file and not check.file.endswith(".go") else "./..."
            shell = _with_option(
                "go test", package, "-run", f"^{check.test_name}$" * bool(check.test_name)
            )
        case "npm-script" if check.test_name or check.file:
            shell = _with_option("npm run --silent", check.test_name or check.file)
        case _:
            return None
    return CommandCheck(shell, check.cwd, check.timeout_sec, check.expect_exit)


def commands_of(spec: TaskSpec, read: ReadFile) -> list[tuple[str, str]]:
    """The commands that decide about a task, each with its folder: tests first, then checks."""
    test = spec.task.test
    found = [(test.command, test.cwd)] if test else []
    for criterion in spec.criteria:
        command = command_of(criterion.check, test, read) if criterion.check else None
        if command is not None:
            found.append((command.shell, command.cwd))
    return list(dict.fromkeys(found))


def no_file(_path: str) -> bytes | None:
    """Read nothing: there are no files."""
    return None


def is_executable(check: Check | None, test: TestSpec | None, read: ReadFile = no_file) -> bool:
    """Whether code alone can decide this check; `read` reads what the test command starts."""
    if check is None:
        return False
    if check.kind == "test" and not check.name:
        return test is not None
    if check.kind == "file":
        return bool(check.path)
    if check.kind == "diff":
        return bool(check.must_change or check.must_not_change)
    return command_of(check, test, read) is not None or stands_in_suite(check, test, read)


def stands_in_suite(check: Check | None, test: TestSpec | None, read: ReadFile = no_file) -> bool:
    """Whether a check is a test that cannot be run alone but that the test command reports.

    Recipes and scripts are followed to the tool that they start.
    """
    if check is None or check.kind != "test" or not check.name or test is None:
        return False
    alone = command_of(check, test, read) is not None
    return not alone and bool(readers_of(test.command, test.cwd, read))


def read_check(check: Check, read: ReadFile, changed: Sequence[str]) -> CheckReading | None:
    """Decide a `file` or `diff` check; None for every other kind.

    `changed` are the paths that the run changed, against the tree before it.
    """
    if check.kind == "file" and check.path:
        return _read_file_check(check, read(check.path.removeprefix("./")))
    if check.kind == "diff":
        return _read_diff_check(check, changed)
    return None


def _read_file_check(check: Check, content: bytes | None) -> CheckReading:
    if check.exists is False:
        return CheckReading(
            content is None, f"{check.path} {'is absent' if content is None else 'exists'}"
        )
    if content is None:
        return CheckReading(False, f"{check.path} does not exist")
    text = content.decode("utf-8", "replace")
    if check.contains:
        return _reading_at(check.path, text, text.find(check.contains), repr(check.contains))
    if check.matches:
        try:
            position = search(check.matches, text)
        except PatternError as error:
            return CheckReading(None, str(error))
        return _reading_at(check.path, text, position, f"/{check.matches}/")
    return CheckReading(True, f"{check.path} exists")


def _reading_at(path: str, text: str, position: int, what: str) -> CheckReading:
    if position < 0:
        return CheckReading(False, f"{path} has no {what}")
    return CheckReading(True, f"{path}:{text.count(chr(10), 0, position) + 1}")


def _read_diff_check(check: Check, changed: Sequence[str]) -> CheckReading:
    missing = [glob for glob in check.must_change if not any(matches(p, [glob]) for p in changed)]
    forbidden = [path for path in changed if matches(path, check.must_not_change)]
    if missing:
        return CheckReading(False, f"nothing changed under {', '.join(missing)}")
    if forbidden:
        return CheckReading(False, f"changed: {', '.join(forbidden[:5])}")
    return CheckReading(True, f"{len(changed)} files changed, as asked")


def _with_option(prefix: str, target: str, flag: str = "", value: str = "") -> str:
    parts = [prefix, shlex.quote(target)]
    if value:
        parts += [flag, shlex.quote(value)]
    return " ".join(parts)


def _pytest_command(check: Check, test: TestSpec | None) -> str:
    """A pytest command; it starts as the test command does, where that is pytest too."""
    base = "python -m pytest -q"
    if test is not None and (hit := re.match(r"(.*?\bpytest)\b", test.command)):
        base = f"{hit[1]} -q"
    if check.file and check.test_name and re.fullmatch(r"[\w:\[\]., -]+", check.test_name):
        return f"{base} {shlex.quote(f'{check.file}::{check.test_name}')}"
    return _with_option(base, check.file or ".", "-k", check.test_name)


def _behind_npm_test(test: TestSpec, read: ReadFile | None) -> tuple[str, str]:
    """The test command, and for `npm test` the script behind it; "" where there is none.

    A script of Node's own runner takes the place of the command: it takes options only before the
    files, and rejects the `-t` of other tools.
    """
    if read is None or not NPM_TEST.match(test.command):
        return test.command, ""
    try:
        package = json.loads(read(posixpath.normpath(f"{test.cwd}/package.json")) or b"{}")
        script = str(package["scripts"]["test"])
    except (ValueError, KeyError, TypeError):
        return test.command, ""
    if NODE_TEST.search(script):
        return f"PATH=$PWD/node_modules/.bin:$PATH; {script}", script
    return test.command, script


def test_name(check: Check) -> str:
    """The name of a check's test, without the file that planners sometimes put before it."""
    name = check.name.removeprefix(check.file).lstrip(":") if check.file else check.name
    return (name or check.name).removeprefix("./")


def _narrowed(command: str, script: str, name: str) -> str | None:
    """The test command narrowed to one test; None where it is not known how.

    `script` is what `npm test` starts: options go to its last program.
    """
    if NODE_TEST.search(command):  # it knows each title by itself
        option = shlex.quote(f"--test-name-pattern={_verbatim(TITLES.split(name)[-1])}")
        return NODE_TEST.sub(lambda hit: f"{hit[0]} {option}", command)
    if re.search(r"\bpytest\b", command):
        if "/" in name:
            return f"{command} {shlex.quote(name)}"
        # `-k` takes no blanks, as they are in brackets: which case decides, its name says.
        names = [one for part in name.split("::") for one in _parts_for_pytest(function_of(part))]
        return f"{command} -k {shlex.quote(' and '.join(filter(None, names)))}"
    if re.search(r"\bgo test\b", command):
        test = (package_and_test(name)[1] or name).replace(" ", "_")
        levels = (f"^{_verbatim(level)}$" for level in test.split("/"))
        return f"{command} -run {shlex.quote('/'.join(levels))}"
    if re.search(r"\bcargo (nextest run|test)\b", command):
        return f"{command} {shlex.quote(OF_CRATE.sub('', name))}"
    titles = shlex.quote(_verbatim(" ".join(TITLES.split(name))))
    if re.search(r"\b(jest|vitest|mocha)\b", command):
        return f"{command} {'-g' if 'mocha' in command else '-t'} {titles}"
    if NPM_TEST.match(command):
        tools = re.findall(r"\b(?:mocha|jest|vitest|ava)\b", script) or [""]
        given = shlex.quote(name) if tools[-1] == "ava" else titles  # which takes no pattern
        return f"{command} -- {TITLE_OPTIONS.get(tools[-1], '-t')} {given}"
    if re.search(r"-m unittest\b", command):
        return f"{command} -k {shlex.quote(name.replace('::', '.'))}"
    return None


def _parts_for_pytest(name: str) -> list[str]:
    return [name] if name.endswith(".py") else parts_of(name)


def _verbatim(name: str) -> str:
    """A pattern for just this text, as JavaScript and Go read it."""
    return re.sub(r"[\\^$.*+?()[\]{}|]", r"\\\g<0>", name)


def search(pattern: str, text: str) -> int:
    """The position of the first match in the first million characters of `text`, else -1.

    Raises PatternError after 5 s, or where the pattern is invalid. Blocks.
    """
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"the pattern cannot be read: {error}") from error
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", SEARCH],
            input=json.dumps([pattern, text[:MOST_CHARS]]).encode(),
            capture_output=True,
            timeout=LIMIT_SEC,
            check=False,
            env={},
        )
    except subprocess.TimeoutExpired as error:
        raise PatternError(f"the pattern takes longer than {LIMIT_SEC:g} s") from error
    if done.returncode != 0:
        raise PatternError("the search failed")
    return int(done.stdout)
