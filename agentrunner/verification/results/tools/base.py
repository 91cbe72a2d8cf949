"""The base of the readers of all tools."""

from __future__ import annotations

import functools
import marshal
import posixpath
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.util import MAGIC_NUMBER

from agentrunner.verification.results.commands import Run, runs_of
from agentrunner.verification.results.files import ReportFile
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.reporters import sitecustomize_of, text_of
from agentrunner.verification.results.shell import Word, edited, put_first, quoted, simple_commands
from agentrunner.verification.results.xml import ReportedCase, read_junit

NAMES = ("agentrunner_python.py", "agentrunner_look.py")


class Tool:
    """The reader of one test tool, which knows nothing of others.

    It knows how a command that runs the tool is made to write a report, how the report is read, and
    how the command is narrowed to a few tests.
    """

    name = ""
    """A short name, as in "pytest"."""
    means: Sequence[str] = ()
    """How it can obtain results, the strongest first, as in "plug-in", "junit", "text"."""
    by_path = False
    """Whether test names begin with a path relative to the folder the command starts in."""
    named_by: Sequence[str] = ()
    """The options by which a command chooses tests by name itself."""

    def matches(self, run: Run) -> bool:
        """Whether this program is the tool."""
        raise NotImplementedError

    def runs(self, command: Command) -> list[Run]:
        """The runs of this tool that a command finally starts.

        `make`, `just`, `npm`, `tox` and the like are followed as far as that is plain.
        """
        runs = runs_of(command.shell, command.cwd, command.read)
        return [run for run in runs if self.matches(run)]

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """The command that writes its report below `place`, an absolute path in the sandbox.

        None where these means need no other command, for example where its text is read. Exit code,
        selection and order of the tests must not change. `means` is an index into `self.means`.
        """
        return None

    def read(self, ran: Ran, means: int) -> Results | None:
        """The reported results; None where the report cannot be used."""
        return None

    def select(self, command: Command, names: Sequence[str]) -> str | None:
        """The command narrowed to these tests; None unless the command has exactly one such run."""
        runs = self.runs(command)
        if len(runs) != 1 or not names or runs[0].outer is None:
            return None
        run = runs[0]
        there = below_folder(names, run.folder, command.cwd) if self.by_path else list(names)
        return self.narrowed(command.shell, run, there) if there is not None else None

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """The command whose only run of this tool is narrowed to these tests; None where the tool
        cannot be."""
        return None

    def is_narrow(self, run: Run) -> bool:
        """Whether a command chooses tests by name itself: a second pattern beside it finds none."""
        return any(word.partition("=")[0] in self.named_by for word in run.words)

    def with_options(self, command: Command, options: Sequence[str]) -> Instrumented | None:
        """The command with options added; None unless it has exactly one such run."""
        runs = self.runs(command)
        text = added(command.shell, runs[0], options) if len(runs) == 1 else None
        return Instrumented(text) if text else None


def printed(tool: str, tests: Sequence[TestResult], *, complete: bool) -> Results | None:
    """The results that a tool printed, as the product can print them, too; None without any."""
    return Results(tool, tuple(tests), weak=True, complete=complete) if tests else None


def join_junit(
    tool: str,
    reports: Iterable[ReportFile],
    named: Callable[[ReportedCase], TestResult | None],
    exit_code: int | None = 0,
) -> Results | None:
    """The results of all JUnit files of a run, as `join_reports` has them."""
    return join_reports(tool, reports, lambda report: read_junit(report.content, named), exit_code)


def join_reports(
    tool: str,
    reports: Iterable[ReportFile],
    read: Callable[[ReportFile], tuple[list[TestResult], bool]],
    exit_code: int | None = 0,
) -> Results | None:
    """The results of all report files of a run; None where it wrote none.

    `read` gives the tests of one file, and whether it is whole. With an exit code that says that
    something failed, one of the tests has to be red, or else some are missing.
    """
    read_all = [(*read(report), report.cut) for report in reports]
    if not read_all:
        return None
    found = tuple(test for tests, _, _ in read_all for test in tests)
    complete = all(whole and not cut for _, whole, cut in read_all)
    explained = not exit_code or any(test.red for test in found)
    return Results(tool, found, complete=complete and explained)


def added(shell: str, run: Run, options: Sequence[str], position: int | None = None) -> str | None:
    """The command with options added to a run.

    They come after its words, or before the word at `position` where the run is direct. None where
    options do not reach it.
    """
    text = " ".join(quoted(option) for option in options)
    if run.outer is None:
        return None
    words = run.outer.words
    if run.direct and position is not None:
        at = run.position + position
        if at < len(words):
            return edited(shell, [(words[at].start, words[at].start, f"{text} ")])
    if not run.direct and run.appended is None:
        return None
    dashes = "" if run.direct else run.appended
    return edited(shell, [(words[-1].end, words[-1].end, f"{dashes} {text}")])


def plain_words(words: Iterable[Word], valued: Collection[str]) -> list[Word]:
    """The words that are no option, and no value of one of these options."""
    found, before = [], ""
    for word in words:
        if not word.text.startswith("-") and before not in valued:
            found.append(word)
        before = word.text
    return found


def replaced_words(shell: str, run: Run, words: Iterable[Word], text: str) -> str | None:
    """The command with a text at the end of a run, in place of some of its words."""
    if run.outer is None:
        return None
    end = run.outer.words[-1].end
    return edited(shell, [*((word.start, word.end, "") for word in words), (end, end, f" {text}")])


def below_folder(names: Sequence[str], folder: str, cwd: str) -> list[str] | None:
    """Names with a path relative to the folder the tool runs in; None where one lies elsewhere.

    The given names are relative to `cwd`.
    """
    below = posixpath.relpath(folder or ".", cwd or ".")
    if below == ".":
        return list(names)
    if not all(name.startswith(f"{below}/") for name in names):
        return None
    return [name[len(below) + 1 :] for name in names]


def shimmed(shell: str, place: str, *programs: str) -> Instrumented:
    """The command with a shim for each of these programs; `registry` puts them on PATH.

    Where the command sets PATH itself, as for a toolchain of its own, they come before that, too,
    and so they do where it names a program by its path.
    """
    here = f"{place}/run"
    shell = put_first(_by_name(shell, here, programs), "PATH", here)
    text = text_of("agentrunner_shim.sh")
    return Instrumented(shell, {}, {f"bin/{program}": text for program in programs})


def _by_name(shell: str, here: str, programs: tuple[str, ...]) -> str:
    """The command with `PATH=/opt/go/bin:$PATH go` in place of `/opt/go/bin/go`."""
    edits = []
    for command in simple_commands(shell):
        for word in command.words[:1]:
            folder, slash, name = shell[word.start : word.end].rpartition("/")
            if slash and folder[:1] in ("/", "~", "$") and name in programs:
                set_first = f'PATH={quoted(here)}:{folder}:"$PATH" {name}'
                edits.append((word.start, word.end, set_first))
    return edited(shell, edits)


def hooked(shell: str, place: str) -> Instrumented:
    """The command with our files on Python's path, also where it sets PYTHONPATH itself."""
    here = f"{place}/py"
    first = sitecustomize_of(text_of("sitecustomize.py"))
    files = {"py/sitecustomize.py": first, **{f"py/{name}": text_of(name) for name in NAMES}}
    return Instrumented(
        put_first(shell, "PYTHONPATH", here), {"PYTHONPATH": here}, {**files, **_compiled()}
    )


@functools.cache
def _compiled() -> Mapping[str, bytes]:
    """Our files as this Python compiles them, for projects whose Python is of the same kind.

    Others compile the text, which takes 15 ms of CPU each time that a test tool starts.
    """
    kind = f"{sys.implementation.cache_tag}-{MAGIC_NUMBER.hex()}"
    return {
        f"py/{name}.{kind}": marshal.dumps(compile(text_of(name), "<agentrunner>", "exec"))
        for name in NAMES
    }
