"""The test that a check names and that is not there yet. Pure."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentrunner.config.spec import Check
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.evidence.target import Measured, Target
from agentrunner.verification.results.commands import Run, runs_of
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.registry import options_that_name, readers_of
from agentrunner.verification.results.shell import words_of
from agentrunner.verification.syntax.languages import language_of

NO_ATTRIBUTE = lazy_regex(r"has no attribute '(?P<name>\w+)'")
"""What unittest says of a class or method that it was to run and that is not there."""


@dataclass(frozen=True)
class Absent:
    """A test that a check names and no test tool found."""

    file: str
    """Relative to the repository; "" where the check names no file."""
    name: str
    exact: bool = False
    """Whether its author said that it is new; a command may misname one that exists."""

    @property
    def where(self) -> str:
        """File and name, as people read them."""
        return "::".join(part for part in (self.file, self.name) if part)


def absent_test(measured: Measured, check: Check, read: ReadFile) -> Absent | None:
    """The test that a check names, where its tool ran no test at all and says so; else None.

    A program that is no known test tool decides by its exit code alone, and so does a program in
    the command itself.
    """
    target = measured.target
    if not readers_of(target.shell, target.cwd, read) or ran_any_test(measured):
        return None
    named = posixpath.normpath(check.file) if check.kind == "test" and check.file else ".."
    if not named.startswith(("..", "/")):
        return Absent(named, check.name, exact=True)
    errors = measured.results is not None and bool(measured.results.tests)
    for run in runs_of(target.shell, target.cwd, read):
        found = _named_by(run, check, measured, read, errors=errors)
        if found is not None:
            return found
    if runs_a_test_tool(target, read):  # a script of a package passes its arguments on
        return next(_files_in(words_of(target.shell), target.cwd, check, read, errors=errors), None)
    return None


def ran_any_test(measured: Measured) -> bool:
    """Whether a test tool ran at least one test, which may have failed."""
    if measured.results is not None:
        return any(test.outcome != "error" for test in measured.results.tests)
    counts = measured.ran.counts
    return counts is not None and counts.ran > 0


def runs_a_test_tool(target: Target, read: ReadFile) -> bool:
    """Whether a command runs a test tool itself, and not just a program of the product."""
    return any(
        _is_test_run(run) and readers_of(shlex.join(run.words), run.folder, read)
        for run in runs_of(target.shell, target.cwd, read)
    )


def _is_test_run(run: Run) -> bool:
    """Whether a run is one of a test tool: no interpreter with a script or a program in words."""
    python = run.python
    if python is not None:
        return python[0].startswith("-m ")
    if run.program == "node":
        return "--test" in run.words
    return run.program not in ("ruby", "perl", "php", "sh", "bash", "deno", "bun") or (
        len(run.words) > 1 and run.words[1] == "test"
    )


def _named_by(
    run: Run, check: Check, measured: Measured, read: ReadFile, *, errors: bool
) -> Absent | None:
    if not _is_test_run(run):
        return None
    if run.python is not None and run.python[0] == "-m unittest":
        named = next(_named_for_unittest(run, measured, read, errors=errors), None)
        if named is not None:
            return named
    selected = _selected(run, read)
    for found in _files_in(run.words[1:], run.folder, check, read, errors=errors):
        return replace(found, name=found.name or selected)
    if errors:
        return None
    name = check.test_name or check.name or selected
    return Absent("", name) if name else None


def _files_in(
    words: Sequence[str], folder: str, check: Check, read: ReadFile, *, errors: bool
) -> Iterator[Absent]:
    """The sources among the words of a command, with the tests that are named in them."""
    for word in words:
        path, _, name = word.partition("::")
        if language_of(path) is None or path.startswith("-"):
            continue
        file = posixpath.normpath(posixpath.join(folder, path))
        # Where a tool reports that it failed to load a file, the file may exist and be broken.
        if not file.startswith(("..", "/")) and not (errors and read(file) is not None):
            yield Absent(file, name or check.test_name or "")


def _selected(run: Run, read: ReadFile) -> str:
    """The name by which an option selects tests; "" for none, or for more than a name."""
    words = [*run.words, ""]
    for option in options_that_name(shlex.join(run.words), run.folder, read):
        for index, word in enumerate(words[:-1]):
            name = words[index + 1] if word == option else word.removeprefix(f"{option}=")
            if name != word and re.fullmatch(r"\^?[\w ./-]+\$?", name):
                return name.strip("^$")
    return ""


def _named_for_unittest(
    run: Run, measured: Measured, read: ReadFile, *, errors: bool
) -> Iterator[Absent]:
    """What `python -m unittest package.module.Class.method` names and does not find."""
    messages = [test.message for test in measured.results.tests] if measured.results else []
    missing = set(NO_ATTRIBUTE.findall("\n".join([*messages, measured.ran.tail])))
    assert run.python is not None
    words = list(run.words[run.python[1] + 1 :])
    for word in () if words[:1] == ["discover"] else words:
        if not re.fullmatch(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*", word) or language_of(word):
            continue
        parts = word.split(".")
        for end in range(len(parts), 0, -1):
            file = posixpath.normpath(posixpath.join(run.folder, *parts[:end]) + ".py")
            if read(file) is not None:
                rest = parts[end:]
                if rest and (not errors or missing & set(rest)):
                    yield Absent(file, ".".join(rest))
                break
        else:
            end = next((i for i, part in enumerate(parts) if part[0].isupper()), len(parts))
            module = parts[:end] or parts[:1]
            package = posixpath.normpath(posixpath.join(run.folder, *module, "__init__.py"))
            if read(package) is None:
                file = posixpath.normpath(posixpath.join(run.folder, *module) + ".py")
                yield Absent(file, ".".join(parts[end:]))
