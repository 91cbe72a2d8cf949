"""Reads unittest, and runners built on its results (Django's): by our reporter; else by -v."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.lines import by_id, read_lines
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import made
from agentrunner.verification.results.shell import Word, quoted
from agentrunner.verification.results.tools.base import Tool, added, hooked, printed, replaced_words

REPORTER, TEXT = range(2)
LINE = lazy_regex(
    r"^(\w+) \(([\w.]+)(?: ?\((.*)\))?\)(?:\n.*)? \.\.\. "
    r"(ok|FAIL|ERROR|skipped .*|expected failure|unexpected success)$",
    re.MULTILINE,
)
WORDS = {"ok": "passed", "FAIL": "failed", "ERROR": "error", "skipped": "skipped",
         "expected": "xfailed", "unexpected": "xpassed"}  # fmt: skip
VALUED = ("-k", "--durations")
"""Options whose value is the next word."""
RAN = lazy_regex(r"^Ran (\d+) tests? in ", re.MULTILINE)


class Unittest(Tool):
    """Results by id, as in `tests.test_a.TestA.test_b`."""

    name = "unittest"
    means = ("reporter", "text")
    named_by = ("-k",)

    def matches(self, run: Run) -> bool:
        """`python -m unittest`, and Python scripts that may call it."""
        python = run.python
        if python is None:
            return run.program.endswith(".py")
        return not python[0].startswith("-m ") or python[0] in ("-m unittest", "-m django")

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Add a reporter that Python itself loads; else the option -v."""
        if means == REPORTER:
            return hooked(command.shell, place)
        runs = self.runs(command)
        if len(runs) == 1 and (python := runs[0].python) and python[0] == "-m unittest":
            words = runs[0].words
            after = python[1] + (2 if words[python[1] + 1 : python[1] + 2] == ("discover",) else 1)
            text = added(command.shell, runs[0], ["-v"], after)
            return Instrumented(text) if text else None
        return None

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read what the reporter wrote, or the lines of -v."""
        if means == REPORTER:
            return read_lines(ran.place, "unittest", ran.folder, by_id)
        return _text(ran)

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by `-k` with discovery, which matches ends of ids; else by the ids themselves."""
        python = run.python
        if python is None or python[0] != "-m unittest" or not run.direct or run.outer is None:
            return None
        wanted = [re.sub(r" [\[(].*", "", name.rpartition(":")[2]) for name in names]
        outer = run.outer.words[run.position + python[1] + 1 :]
        selected, given = _selection(outer)
        if not given or given[0].text == "discover":
            options = " ".join(f"-k {quoted(f'*{name}')}" for name in wanted)
            return replaced_words(shell, run, selected, options)
        return replaced_words(shell, run, [*selected, *given], " ".join(dict.fromkeys(wanted)))


def _selection(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """The words that select tests by a pattern, and those that name them or a command.

    Tests are run that fit any pattern, so one that stays would widen a narrowed run.
    """
    selected: list[Word] = []
    given: list[Word] = []
    option = ""
    for word in words:
        if option:
            selected += [word] if option == "-k" else []
            option = ""
        elif word.text.startswith("-"):
            selected += [word] if word.text.startswith("-k") else []
            option = word.text if word.text in VALUED else ""
        else:
            given.append(word)
    return selected, given


def _text(ran: Ran) -> Results | None:
    found: list[TestResult] = []
    for hit in LINE.finditer(ran.stderr or ran.stdout):
        method, where, subtest, word = hit.groups()
        name = where if where.endswith(f".{method}") else f"{where}.{method}"
        name += f" ({subtest})" if subtest else ""
        found.append(made(name, WORDS[word.split()[0]]))
    counted = sum(int(number) for number in RAN.findall(ran.stderr or ran.stdout))
    return printed("unittest", found, complete=counted == len(found))
