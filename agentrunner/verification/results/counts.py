"""Reads from a runner's output how many tests it ran.

Exit codes lie when a module calls `os._exit(0)`; the count that is then missing does not.
A command may run its runner several times (`pytest a && pytest b`): the summaries are added up.
Formats: pytest, unittest, Jest, Vitest, Mocha, node --test, Bun, Deno, go test, cargo test and
nextest, Maven, dotnet, RSpec, PHPUnit, CTest, TAP; anything else is not counted. Gradle prints
counts only of failures, which cannot be compared with anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.names import uncoloured

MAX_NAMES = 50


@dataclass(frozen=True)
class Counts:
    """Numbers of tests by outcome; errors count as failed, expected failures as neither."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failing: list[str] = field(default_factory=list)
    errors: int = 0
    """Those of the failed that broke outside of a test, maybe beside one that was counted."""
    packages: bool = False
    """Whether packages were counted and not tests, as the tool names no more."""

    @property
    def ran(self) -> int:
        """How many tests were executed."""
        return self.passed + self.failed

    @property
    def sure(self) -> int:
        """How many tests were executed at least: a broken fixture may be counted twice."""
        return self.ran - self.errors


def read_counts(*outputs: str) -> Counts | None:
    """The counts of all summaries in `outputs`; None where no known runner wrote one."""
    texts = [uncoloured(output).replace("\r\n", "\n") for output in outputs]
    found = [counts for text in texts for counts in _read(text)]
    # Others print TAP beside their own summary.
    found = found or [counts for text in texts if (counts := _tap(text)) is not None]
    if not found:
        return None
    return Counts(
        passed=sum(counts.passed for counts in found),
        failed=sum(counts.failed for counts in found),
        skipped=sum(counts.skipped for counts in found),
        failing=[name for counts in found for name in counts.failing][:MAX_NAMES],
        errors=sum(counts.errors for counts in found),
        packages=all(counts.packages for counts in found),
    )


def _matches(pattern: str, text: str) -> list[re.Match[str]]:
    return list(re.finditer(pattern, text, re.MULTILINE))


class _Runner(Struct, frozen=True):
    """How a runner prints its totals."""

    totals: tuple[str, ...]
    """Patterns of lines with totals. Their groups are `ran`, `passed`, `failed` and `skipped`, and
    `words` for a list such as `1 failed, 3 passed`. Where tests that ran are counted, those passed
    that did not do anything else."""
    red: tuple[str, ...] = ()
    """Patterns of names of red tests, of which the first one counts that finds any; a name is the
    last group that matched."""
    needs: tuple[str, ...] = ()
    """What stands in its output, too."""

    def read(self, text: str) -> Counts | None:
        """The sum of all totals; None where it printed none."""
        lines = [line for pattern in self.totals for line in _matches(pattern, text)]
        if not lines or not all(_matches(pattern, text) for pattern in self.needs):
            return None
        sums = Counter[str]()
        for line in lines:
            groups = line.groupdict()
            for number, word, same_word, same_number in WORD.findall(groups.pop("words", "") or ""):
                sums[WORDS.get(word or same_word, "")] += int(number or same_number)
            sums.update({name: int(number or 0) for name, number in groups.items()})
        failed = sums["failed"] + sums["errors"]
        if "ran" in sums:
            sums["passed"] = max(0, sums["ran"] - failed - sums["skipped"] - sums["expected"])
        names = next(filter(None, (_names(pattern, text) for pattern in self.red)), [])
        return Counts(sums["passed"], failed, sums["skipped"], names, sums["errors"])


WORD = lazy_regex(r"(?<!\d)(\d++) ([A-Za-z]+)|([A-Za-z][a-z ]{0,40})(?:=|: )(\d+)")
WORDS = {
    "passed": "passed",
    **dict.fromkeys(("failed", "timed", "failures", "unexpected successes"), "failed"),
    **dict.fromkeys(("Failures", "Errors"), "failed"),
    **dict.fromkeys(("error", "errors"), "errors"),
    **dict.fromkeys(("skipped", "deselected", "ignored", "todo", "pending"), "skipped"),
    **dict.fromkeys(("Skipped", "Incomplete"), "skipped"),
    "expected failures": "expected",
}
"""What a word in a list of totals counts. Errors of PHPUnit are exceptions in tests."""
RUNNERS = {
    "pytest": _Runner(
        (r"^(?:=+ )?(?P<words>(?:no tests ran|\d+ [a-z]+)[a-z0-9, ]*) in [\d.]+s.*$",),
        (r"^(?:FAILED|ERROR) (\S+)",)),
    "unittest": _Runner(
        ((r"^Ran (?P<ran>\d+) tests? in [\d.]+s\n+"
         r"(?:OK|FAILED|NO TESTS RAN)(?: \((?P<words>.*)\))?$"),),
        # Since Python 3.11 the whole name of a test stands in the brackets behind its own.
        ((r"^(?:FAIL|ERROR): (?:(\S+) \((?:unittest\.loader\._FailedTest\.)?"
         r"((?:\S+\.)?\1)\)|(\S+ \(\S+\)|\S+))"),)),
    "jest, vitest": _Runner(
        (r"^\s*Tests:?[ \t]+(?P<words>(?:\d+ \w+(?:, | \| )?)+)(?: ?\(\d+\))?\s*$",),
        (r"^\s+● (.+)$", r"^\s*(?:FAIL|×)\s+(.+)$")),
    "mocha": _Runner(
        (r"^\s+(?P<passed>\d+) passing\b", r"^\s+(?P<failed>\d+) failing\b",
         r"^\s+(?P<skipped>\d+) pending\b"),
        needs=(r"^\s+\d+ passing\b",)),
    "node": _Runner(
        (r"^(?:#|ℹ) pass (?P<passed>\d+)$", r"^(?:#|ℹ) fail (?P<failed>\d+)$",
         r"^(?:#|ℹ) skipped (?P<skipped>\d+)$"),
        (r"^\s*not ok \d+ - (.+)$",),
        needs=(r"^(?:#|ℹ) pass \d+$", r"^(?:#|ℹ) fail \d+$")),
    "bun": _Runner(
        (r"^Ran \d+ tests? across \d+ files?\.", r"^\s*(?P<passed>\d+) pass$",
         r"^\s*(?P<failed>\d+) fail$", r"^\s*(?P<skipped>\d+) (?:skip|todo)$"),
        (r"^\(fail\) (.+?)(?: \[.*)?$",),
        needs=(r"^Ran \d+ tests? across \d+ files?\.",)),
    "deno": _Runner(
        (r"^(?:ok|FAILED) \| (?P<words>\d+ passed.*?) \(\d+\w+\)$",), (r"^(.+) \.\.\. FAILED",)),
    "cargo": _Runner(
        (r"^test result: \w+\. (?P<words>\d+ passed; \d+ failed; \d+ ignored)",),
        (r"^test (\S+) \.\.\. FAILED$",)),
    "nextest": _Runner(
        (r"^\s+Summary \[.*?\] .*? tests? run: (?P<words>.*)$",), (r"^\s+FAIL \[.*?\] (.+)$",)),
    # Surefire's totals of each module. `mvn -q` prints them only where something failed.
    "maven": _Runner(
        ((r"^\[\w+\] Tests run: (?P<ran>\d+), (?P<words>Failures: \d+, Errors: \d+"
         r", Skipped: \d+)\s*$"),),
        (r"^\[ERROR\]\s+(\w+\.\w+):\d+",),
        needs=(r"\[INFO\]",)),
    "dotnet": _Runner(
        ((r"^(?:Passed|Failed|Skipped)! +- Failed: +(?P<failed>\d+), Passed: +(?P<passed>\d+)"
         r", Skipped: +(?P<skipped>\d+)"),
         (r"^Test summary: total: \d+, failed: (?P<failed>\d+), succeeded: (?P<passed>\d+)"
         r", skipped: (?P<skipped>\d+)")),
        (r"^\s+Failed (\S+) \[",)),
    "rspec": _Runner(
        (r"^(?P<ran>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?",),
        (r"^rspec (\S+)",)),
    "phpunit": _Runner(
        (r"^OK \((?P<ran>\d+) tests?, \d+ assertions?\)$",
         r"^Tests: (?P<ran>\d+), Assertions: \d+(?P<words>.*)\.$"),
        (r"^\d+\) (\S+::\S+)",)),
    "ctest": _Runner(
        (r"^\d+% tests passed, (?P<failed>\d+) tests? failed out of (?P<ran>\d+)$",),
        (r"^\s+\d+ - (\S+) \(",)),
}  # fmt: skip


def _read(text: str) -> Iterator[Counts]:
    """The counts of each runner that printed any."""
    for read in (*(runner.read for runner in RUNNERS.values()), _go):
        if (counts := read(text)) is not None:
            yield counts


def _names(pattern: str, text: str) -> list[str]:
    found = (line[line.lastindex or 0] for line in _matches(pattern, text))
    return list(dict.fromkeys(found))[:MAX_NAMES]


def _go(text: str) -> Counts | None:
    """Without -v go names only packages; a package then counts as one test."""
    tests = re.findall(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", text, re.MULTILINE)
    packages = re.findall(
        r"^(ok|FAIL)\s+(\S+)\s+(?:[\d.]+s|\(cached\)|\[)(?!.*\[no tests to run\])",
        text,
        re.MULTILINE,
    )
    if not packages and not _matches(r"^ok .*\[no tests to run\]", text):
        return None
    verbose = any(outcome == "PASS" for outcome, _ in tests)
    named = tests if verbose else [("PASS" if o == "ok" else "FAIL", p) for o, p in packages]
    failing = [name for outcome, name in tests if outcome == "FAIL"]
    not_built = [] if verbose else _matches(r"^FAIL\s+\S+\s+\[setup failed\]", text)
    return Counts(
        sum(outcome == "PASS" for outcome, _ in named),
        sum(outcome == "FAIL" for outcome, _ in named),
        sum(outcome == "SKIP" for outcome, _ in named),
        failing[:MAX_NAMES],
        len(not_built),
        packages=not verbose,
    )


def _tap(text: str) -> Counts | None:
    if not _matches(r"^1\.\.\d+", text):
        return None
    lines = re.findall(r"^(not ok|ok)\b(.*)$", text, re.MULTILINE)
    skipped = sum("# SKIP" in rest.upper() for _, rest in lines)
    failing = [rest.strip(" -0123456789") for word, rest in lines if word == "not ok"]
    return Counts(
        sum(word == "ok" for word, _ in lines) - skipped,
        len(failing),
        skipped,
        failing[:MAX_NAMES],
    )


def disbelief(
    exit_code: int, now: Counts | None, before: Counts | None, *, fewer_is_wanted: bool = False
) -> str:
    """Why exit 0 is not believed, as one clause; "" where it is, or where the exit is not 0.

    `before` are the counts of the baseline; None where there are none to compare with.
    """
    if exit_code != 0:
        return ""
    if now is not None and now.failed:
        return f"exit 0, but the output says {now.failed} failed"
    if now is not None and now.ran == 0:
        return "exit 0, but no test ran"
    if before is None:
        return ""
    if now is None:
        return f"exit 0, but the output ends without a count ({before.ran} tests ran before)"
    if now.ran < before.sure and not fewer_is_wanted:
        return f"exit 0, but only {now.ran} tests ran ({before.sure} before)"
    return ""
