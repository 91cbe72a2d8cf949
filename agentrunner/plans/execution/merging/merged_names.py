"""What became of each test in a merge, by its name. Pure, but for reading files of commits."""

from __future__ import annotations

import posixpath
from collections.abc import Collection

from msgspec import Struct

from agentrunner.verification.evidence.claims import red_names
from agentrunner.verification.results.model import ReadFile, Results
from agentrunner.verification.results.names import changing, gone, settled
from agentrunner.verification.syntax.word_tests import number_of_definitions
from agentrunner.verification.test_changes.moves import not_moved


class NamedTests(Struct, frozen=True):
    """Results of one commit by name, and its files."""

    results: Results
    read: ReadFile
    cwd: str = "."
    """The folder that the test command runs in."""


def red_since(before: NamedTests, now: NamedTests) -> list[str]:
    """Names that are red now and were not before."""
    known = {settled(name) for name in red_names(before.results)}
    return [name for name in red_names(now.results) if settled(name) not in known]


def lost_since(before: NamedTests, now: NamedTests, taken: Collection[str] = ()) -> list[str]:
    """Names that passed before and are missing or skipped now, without those `taken` away.

    A test that passes under another name with the same text is not lost.
    """
    was, is_now = before.results, now.results
    lost = [name for name in gone(was, is_now, changing(was)) if name not in taken]
    return not_moved(lost, was, is_now, now.cwd, (before.read, now.read))


def not_kept_of(
    own: NamedTests, base: Results | None, before: Results, now: NamedTests
) -> list[str]:
    """Names that pass in one's own work and do not on the merge, though nobody else decided that.

    What passed on `base`, which both sides began with, and not on `before`, the other side, was
    decided there.
    """
    passing = [one.name for one in own.results.tests if one.outcome == "passed"]
    missing = [
        name
        for name in dict.fromkeys(passing)
        if own.results.passed(name)
        and not now.results.passed(name)
        and not (base is not None and base.passed(name) and not before.passed(name))
    ]
    red = set(red_names(now.results))
    lost = lost_since(own, now)
    return [name for name in missing if name in red or name in lost]


def defined_twice(
    now: NamedTests, sides: tuple[ReadFile, ReadFile], files: Collection[str]
) -> list[str]:
    """Names of tests that the merge defines more often than each side, and that run less often.

    `files` are those that both sides changed.
    """
    found = []
    for name, times in now.results.names.items():
        file = next(one.file for one in now.results.named(name))
        path = posixpath.normpath(posixpath.join(now.cwd, file)) if file else ""
        if path not in files:
            continue
        here = _definitions(now.read, path, name)
        if here > times and here > max(_definitions(read, path, name) for read in sides):
            found.append(name)
    return found


def _definitions(read: ReadFile, path: str, name: str) -> int:
    source = read(path)
    return number_of_definitions(source, path, name) if source is not None else 0
