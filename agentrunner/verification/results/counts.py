"""Reads from a runner's output how many tests it ran.

Exit codes lie when a module calls `os._exit(0)`; the count that is then missing does not.
A command may run its runner several times (`pytest a && pytest b`): the summaries are added up.
Formats: pytest, unittest, Jest, Vitest, Mocha, node --test, Bun, Deno, go test, cargo test and
nextest, Maven, dotnet, RSpec, PHPUnit, CTest, TAP; anything else is not counted. Gradle prints
counts only of failures, which cannot be compared with anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
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
    texts = [ESCAPES.sub("", output).replace("\r\n", "\n") for output in outputs]
    found = [counts for text in texts for read in READERS if (counts := read(text)) is not None]
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


def _names(pattern: str, text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(pattern, text, re.MULTILINE)))[:MAX_NAMES]


def _total(found: Iterable[re.Match[str]]) -> int:
    """The sum of the first groups, each of which is a number."""
    return sum(int(match[1]) for match in found)


def _numbers_by_word(summaries: Iterable[str]) -> dict[str, int]:
    """The sum of numbers by word, in summaries like `1 failed, 3 passed`."""
    total: dict[str, int] = {}
    for summary in summaries:
        for number, word in re.findall(r"(\d+) ([A-Za-z]+)", summary):
            total[word] = total.get(word, 0) + int(number)
    return total


def _sum(words: Mapping[str, int], *names: str) -> int:
    return sum(words.get(name, 0) for name in names)


def _by_outcome(
    text: str,
    summary: str,
    *red: str,
    failed: Sequence[str] = ("failed",),
    skipped: Sequence[str] = ("ignored",),
) -> Counts | None:
    """The counts of lines such as `3 passed; 1 failed`, by their words; None without such a line.

    The names of red tests are what the first of the patterns `red` finds that finds any.
    """
    lines = _matches(summary, text)
    if not lines:
        return None
    words = _numbers_by_word(line[1] for line in lines)
    names = next(filter(None, (_names(pattern, text) for pattern in red)), [])
    return Counts(_sum(words, "passed"), _sum(words, *failed), _sum(words, *skipped), names)


def _pytest(text: str) -> Counts | None:
    lines = _matches(r"^(?:=+ )?((?:no tests ran|\d+ [a-z]+)[a-z0-9, ]*) in [\d.]+s.*$", text)
    if not lines:
        return None
    words = _numbers_by_word(line[1] for line in lines)
    errors = _sum(words, "error", "errors")
    return Counts(
        passed=_sum(words, "passed"),
        failed=_sum(words, "failed") + errors,
        skipped=_sum(words, "skipped", "deselected"),
        failing=_names(r"^(?:FAILED|ERROR) (\S+)", text),
        errors=errors,
    )


def _unittest(text: str) -> Counts | None:
    ends = _matches(
        r"^Ran (\d+) tests? in [\d.]+s\n+(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", text
    )
    if not ends:
        return None
    # "expected failures" ends in a word that is a count by itself.
    parts = re.findall(r"([a-z][a-z ]*)=(\d+)", " ".join(end[2] or "" for end in ends))
    words: dict[str, int] = {}
    for word, number in parts:
        words[word] = words.get(word, 0) + int(number)
    errors, skipped = _sum(words, "errors"), _sum(words, "skipped")
    surprises = _sum(words, "unexpected successes")
    failed = _sum(words, "failures") + errors + surprises
    passed = max(0, _total(ends) - failed - skipped - _sum(words, "expected failures"))
    names = _names(r"^(?:FAIL|ERROR): (\S+ \(\S+\)|\S+)", text)
    return Counts(passed, failed, skipped, names, errors=min(errors, failed))


def _jest(text: str) -> Counts | None:
    summary = r"^\s*Tests:?[ \t]+((?:\d+ \w+(?:, | \| )?)+)(?: ?\(\d+\))?\s*$"
    skipped = ("skipped", "todo", "pending")
    return _by_outcome(text, summary, r"^\s+● (.+)$", r"^\s*(?:FAIL|×)\s+(.+)$", skipped=skipped)


def _mocha(text: str) -> Counts | None:
    passing = _matches(r"^\s+(\d+) passing\b", text)
    if not passing:
        return None
    failing, pending = (
        _matches(r"^\s+(\d+) failing\b", text),
        _matches(r"^\s+(\d+) pending\b", text),
    )
    return Counts(_total(passing), _total(failing), _total(pending))


def _node(text: str) -> Counts | None:
    passed = _matches(r"^(?:#|ℹ) pass (\d+)$", text)
    failed = _matches(r"^(?:#|ℹ) fail (\d+)$", text)
    if not passed or not failed:
        return None
    skipped = _matches(r"^(?:#|ℹ) skipped (\d+)$", text)
    names = _names(r"^\s*not ok \d+ - (.+)$", text)
    return Counts(_total(passed), _total(failed), _total(skipped), names)


def _bun(text: str) -> Counts | None:
    if not _matches(r"^Ran \d+ tests? across \d+ files?\.", text):
        return None
    passed, failed = _matches(r"^\s*(\d+) pass$", text), _matches(r"^\s*(\d+) fail$", text)
    skipped = _matches(r"^\s*(\d+) (?:skip|todo)$", text)
    return Counts(
        _total(passed), _total(failed), _total(skipped), _names(r"^\(fail\) (.+?)(?: \[.*)?$", text)
    )


def _deno(text: str) -> Counts | None:
    summary = r"^(?:ok|FAILED) \| (\d+ passed.*?) \(\d+\w+\)$"
    return _by_outcome(text, summary, r"^(.+) \.\.\. FAILED")


def _cargo(text: str) -> Counts | None:
    summary = r"^test result: \w+\. (\d+ passed; \d+ failed; \d+ ignored)"
    return _by_outcome(text, summary, r"^test (\S+) \.\.\. FAILED$")


def _nextest(text: str) -> Counts | None:
    summary = r"^\s+Summary \[.*?\] .*? tests? run: (.*)$"
    return _by_outcome(
        text, summary, r"^\s+FAIL \[.*?\] (.+)$", failed=("failed", "timed"), skipped=("skipped",)
    )


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


def _maven(text: str) -> Counts | None:
    """Surefire's totals of each module. `mvn -q` prints them only where something failed."""
    if "[INFO]" not in text:
        return None
    lines = _matches(
        r"^\[\w+\] Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$", text
    )
    if not lines:
        return None
    ran, failures, errors, skipped = (sum(int(line[n]) for line in lines) for n in range(1, 5))
    failed = failures + errors
    names = _names(r"^\[ERROR\]\s+(\w+\.\w+):\d+", text)
    return Counts(max(0, ran - failed - skipped), failed, skipped, names)


def _dotnet(text: str) -> Counts | None:
    lines = _matches(
        r"^(?:Passed|Failed|Skipped)! +- Failed: +(\d+), Passed: +(\d+), Skipped: +(\d+)"
        r"|^Test summary: total: \d+, failed: (\d+), succeeded: (\d+), skipped: (\d+)",
        text,
    )
    if not lines:
        return None
    failed, passed, skipped = (
        sum(int(line[n] or line[n + 3] or 0) for line in lines) for n in (1, 2, 3)
    )
    return Counts(passed, failed, skipped, _names(r"^\s+Failed (\S+) \[", text))


def _rspec(text: str) -> Counts | None:
    lines = _matches(r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?", text)
    if not lines:
        return None
    failed, pending = (sum(int(line[n] or 0) for line in lines) for n in (2, 3))
    return Counts(_total(lines) - failed - pending, failed, pending, _names(r"^rspec (\S+)", text))


def _phpunit(text: str) -> Counts | None:
    good = _matches(r"^OK \((\d+) tests?, \d+ assertions?\)$", text)
    other = _matches(r"^Tests: (\d+), Assertions: \d+(.*)\.$", text)
    if not good and not other:
        return None
    words: dict[str, int] = {}
    for line in other:
        for word, number in re.findall(r"(\w+): (\d+)", line[2]):
            words[word] = words.get(word, 0) + int(number)
    failed = _sum(words, "Failures", "Errors")
    skipped = _sum(words, "Skipped", "Incomplete")
    passed = max(0, _total(good) + _total(other) - failed - skipped)
    return Counts(passed, failed, skipped, _names(r"^\d+\) (\S+::\S+)", text))


def _ctest(text: str) -> Counts | None:
    lines = _matches(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)$", text)
    if not lines:
        return None
    failed, total = (sum(int(line[n]) for line in lines) for n in (1, 2))
    return Counts(total - failed, failed, 0, _names(r"^\s+\d+ - (\S+) \(", text))


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


READERS: tuple[Callable[[str], Counts | None], ...] = (
    _pytest, _unittest, _jest, _mocha, _node, _bun, _deno, _cargo, _nextest, _go, _maven, _dotnet,
    _rspec, _phpunit, _ctest,
)  # fmt: skip
"""TAP is looked for where none of these is found: others print it beside their own summary."""


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
