"""How many tests a runner says it ran, read off the end of its output.

Exit codes lie when a module calls `os._exit(0)`; the count that is then missing does not.
Formats: pytest, unittest, Jest, Vitest, Mocha, node --test, go test, cargo test, TAP, and
anything else stays uncounted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
MAX_NAMES = 50


@dataclass(frozen=True)
class Counts:
    """Tests by outcome; errors count as failed."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failing: list[str] = field(default_factory=list)

    @property
    def ran(self) -> int:
        """How many tests were executed."""
        return self.passed + self.failed


def read_counts(output: str) -> Counts | None:
    """The counts of the last summary in `output`, or None where no known runner wrote one."""
    text = ESCAPES.sub("", output)
    for reader in READERS:
        counts = reader(text)
        if counts is not None:
            return counts
    return None


def _sum(pairs: list[tuple[str, str]], *names: str) -> int:
    return sum(int(number) for number, name in pairs if name in names)


def _last(pattern: str, text: str) -> re.Match[str] | None:
    found = None
    for match in re.finditer(pattern, text, re.MULTILINE):
        found = match
    return found


def _pytest(text: str) -> Counts | None:
    line = _last(r"^(?:=+ )?((?:no tests ran|\d+ [a-z]+)[a-z0-9, ]*) in [\d.]+s.*$", text)
    if line is None:
        return None
    pairs = re.findall(r"(\d+) ([a-z]+)", line[1])
    names = re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    return Counts(
        passed=_sum(pairs, "passed", "xfailed", "xpassed"),
        failed=_sum(pairs, "failed", "error", "errors"),
        skipped=_sum(pairs, "skipped", "deselected"),
        failing=list(dict.fromkeys(names))[:MAX_NAMES],
    )


def _unittest(text: str) -> Counts | None:
    ran = _last(r"^Ran (\d+) tests? in [\d.]+s$", text)
    if ran is None:
        return None
    end = _last(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", text[ran.end() :])
    if end is None:
        return None
    parts = dict(re.findall(r"(\w+)=(\d+)", end[1] or ""))
    failed = int(parts.get("failures", 0)) + int(parts.get("errors", 0))
    skipped = int(parts.get("skipped", 0))
    names = re.findall(r"^(?:FAIL|ERROR): (\S+ \(\S+\)|\S+)", text, re.MULTILINE)
    return Counts(int(ran[1]) - failed - skipped, failed, skipped, names[:MAX_NAMES])


def _jest(text: str) -> Counts | None:
    line = _last(r"^\s*Tests:?\s+((?:\d+ \w+(?:, | \| )?)+)(?: ?\(\d+\))?\s*$", text)
    if line is None:
        return None
    pairs = re.findall(r"(\d+) (\w+)", line[1])
    names = re.findall(r"^\s+● (.+)$", text, re.MULTILINE) or re.findall(
        r"^\s*(?:FAIL|×)\s+(.+)$", text, re.MULTILINE
    )
    return Counts(
        _sum(pairs, "passed"),
        _sum(pairs, "failed"),
        _sum(pairs, "skipped", "todo", "pending"),
        list(dict.fromkeys(names))[:MAX_NAMES],
    )


def _mocha(text: str) -> Counts | None:
    passing = _last(r"^\s+(\d+) passing\b", text)
    if passing is None:
        return None
    failing = _last(r"^\s+(\d+) failing\b", text)
    pending = _last(r"^\s+(\d+) pending\b", text)
    return Counts(
        int(passing[1]), int(failing[1]) if failing else 0, int(pending[1]) if pending else 0
    )


def _node(text: str) -> Counts | None:
    passed = _last(r"^(?:#|ℹ) pass (\d+)$", text)
    failed = _last(r"^(?:#|ℹ) fail (\d+)$", text)
    if passed is None or failed is None:
        return None
    skipped = _last(r"^(?:#|ℹ) skipped (\d+)$", text)
    names = re.findall(r"^\s*not ok \d+ - (.+)$", text, re.MULTILINE)
    return Counts(
        int(passed[1]), int(failed[1]), int(skipped[1]) if skipped else 0, names[:MAX_NAMES]
    )


def _cargo(text: str) -> Counts | None:
    lines = re.findall(
        r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", text, re.MULTILINE
    )
    if not lines:
        return None
    names = re.findall(r"^test (\S+) \.\.\. FAILED$", text, re.MULTILINE)
    passed, failed, ignored = (sum(int(line[column]) for line in lines) for column in range(3))
    return Counts(passed, failed, ignored, names[:MAX_NAMES])


def _go(text: str) -> Counts | None:
    """Without -v go names packages only; a package is then counted as one test."""
    tests = re.findall(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", text, re.MULTILINE)
    packages = re.findall(r"^(ok|FAIL)\s+(\S+)\s+(?:[\d.]+s|\(cached\)|\[)", text, re.MULTILINE)
    if not packages:
        return None
    verbose = any(outcome == "PASS" for outcome, _ in tests)
    named = tests if verbose else [("PASS" if o == "ok" else "FAIL", p) for o, p in packages]
    failing = [name for outcome, name in tests if outcome == "FAIL"]
    return Counts(
        sum(outcome == "PASS" for outcome, _ in named),
        sum(outcome == "FAIL" for outcome, _ in named),
        sum(outcome == "SKIP" for outcome, _ in named),
        failing[:MAX_NAMES],
    )


def _tap(text: str) -> Counts | None:
    if _last(r"^1\.\.\d+", text) is None:
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
    _pytest,
    _unittest,
    _jest,
    _mocha,
    _node,
    _cargo,
    _go,
    _tap,
)


def disbelief(
    exit_code: int, now: Counts | None, before: Counts | None, *, fewer_is_wanted: bool = False
) -> str:
    """Why exit 0 is not believed, as one clause; "" where it is, or where the exit is not 0.

    `before` are the counts of the baseline, None where it had none to compare with.
    """
    if exit_code != 0:
        return ""
    if now is not None and now.failed:
        return f"exit 0, but the output says {now.failed} failed"
    if before is None or before.ran == 0:
        return "exit 0, but no test ran" if now is not None and now.ran == 0 else ""
    if now is None:
        return f"exit 0, but the output ends without a count ({before.ran} tests ran before)"
    if now.ran < before.ran and not fewer_is_wanted:
        return f"exit 0, but only {now.ran} tests ran ({before.ran} before)"
    return ""
