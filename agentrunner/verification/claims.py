"""Which tests have to turn, which were red for another reason, and what is gone. Pure.

A test that was red before the run is *claimed*: it has to pass by name. It is a *known red* where
a person listed it, or where nothing that was asked names it by test, file or subject.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from agentrunner.text.content_words import content_words
from agentrunner.verification.results.model import Results, TestResult

SENTENCE = re.compile(r"(?<=[.!?])\s+|。|\n\s*\n|(?=\()|(?<=\))")
LEFT_ALONE = re.compile(
    r"(?i)\bignore\s+(?:it|them|that|this|these|those)\b"
    r"|\bignore\s+(?:the\s+|that\s+|this\s+)?(?:[\w`-]+\s+){0,2}(?:tests?|specs?)(?:\b|_)"
    r"|\b(?:can|may|should|must|is|are)\s+(?:to\s+)?be\s+ignored\b|テスト[^。\n]{0,10}無視"
)
"""Said of a red test: it is not what is asked for."""


@dataclass(frozen=True)
class Claims:
    """What the red tests of the old tree stand for."""

    claimed: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()


def claims_of(
    before: Results | None,
    wanted: Sequence[str],
    *,
    listed: Sequence[str] = (),
    mapped: Collection[str] = (),
    only_listed: bool = False,
) -> Claims:
    """Claimed and known reds of the results before the run.

    `wanted` is all that was asked for: PRD, criteria, checks. `listed` are names or globs that a
    person took for known reds; `mapped` are names that a criterion stands on. With `only_listed`
    (mode strict) nothing else is known. Where nothing red is named by anybody, all is claimed.
    """
    if before is None:
        return Claims()
    red = {test.name: test for test in before.red}
    taken = {name for name in red if any(_is(name, one) for one in listed)} - set(mapped)
    rest = {name: test for name, test in red.items() if name not in taken}
    if only_listed or before.weak:
        return Claims(frozenset(rest), frozenset(taken))
    named = asked_for(rest, wanted, mapped)
    if not named:
        return Claims(frozenset(rest), frozenset(taken))
    return Claims(frozenset(named), frozenset(taken | (rest.keys() - named)))


def asked_for(
    red: Mapping[str, TestResult], wanted: Sequence[str], mapped: Collection[str]
) -> set[str]:
    """The red tests that a criterion stands on, or that a text names by test, file or subject.

    A sentence that tells to ignore a test asks for none.
    """
    text = "\n".join(wanted)
    for sentence in filter(LEFT_ALONE.search, SENTENCE.split(text)):
        text = text.replace(sentence, " ")
    words = content_words(text)
    return {name for name, test in red.items() if name in mapped or _names(test, text, words)}


@dataclass(frozen=True)
class Picked:
    """Names that a person calls known reds, held against the results before the run."""

    names: tuple[str, ...] = ()
    """The red tests they mean, by their whole names."""
    green: tuple[str, ...] = ()
    """What was said of tests that passed before, or did not run."""
    claimed: tuple[str, ...] = ()
    """Red tests that were asked for: they have to turn."""
    unknown: tuple[str, ...] = ()
    """What no test before the run is called."""


def pick(
    marks: Sequence[str], before: Results, wanted: Sequence[str], mapped: Collection[str]
) -> Picked:
    """Which red tests these names or globs mean, and which of them cannot be known reds.

    `wanted` and `mapped` are as for `claims_of`. That nothing at all is named by what was asked,
    so that every red test is claimed, is what a person may settle.
    """
    red = {test.name: test for test in before.red}
    asked = asked_for(red, wanted, mapped)
    names: list[str] = []
    green: list[str] = []
    unknown: list[str] = []
    for one in marks:
        meant = [name for name in red if _is(name, one)]
        names += meant
        if not meant:
            (green if any(_is(test.name, one) for test in before.tests) else unknown).append(one)
    each = dict.fromkeys(names)
    return Picked(
        tuple(name for name in each if name not in asked),
        tuple(green),
        tuple(name for name in each if name in asked),
        tuple(unknown),
    )


def listed_but_green(listed: Iterable[str], before: Results | None) -> list[str]:
    """Names on a list of known reds that are green: a mistake in the list."""
    if before is None:
        return []
    green = [test.name for test in before.tests if test.outcome == "passed"]
    red = [test.name for test in before.red]
    return [
        one
        for one in listed
        if any(_is(name, one) for name in green) and not any(_is(name, one) for name in red)
    ]


def _is(name: str, pattern: str) -> bool:
    return name == pattern or name.endswith(f"::{pattern}") or fnmatchcase(name, pattern)


def _names(test: TestResult, text: str, words: Collection[str]) -> bool:
    """Whether what was asked names a test, its file or its subject."""
    last = re.split(r"::|\s>\s|/", test.name)[-1].split("[")[0]
    if last and last in text:
        return True
    if test.file and (test.file in text or test.file.rsplit("/", 1)[-1] in text):
        return True
    subject = content_words(last) | content_words(test.file.rsplit("/", 1)[-1].rsplit(".", 1)[0])
    return not subject.isdisjoint(words)


def red_names(results: Results) -> list[str]:
    """Names that are red, each once, in their order."""
    return list(dict.fromkeys(test.name for test in results.red))


def turned(before: Results | None, now: Results, claimed: Collection[str]) -> list[str]:
    """Names that were claimed red and pass now; all that pass now where nothing ran before."""
    if before is None:
        return []
    return [
        name
        for name in dict.fromkeys(t.name for t in now.tests if t.name in claimed)
        if now.passed(name)
    ]


def fresh(before: Results | None, now: Results) -> list[str]:
    """Names that pass now and were not there before, or did not get so far as to run."""
    known = set(before.names) if before is not None else set()
    return [name for name in now.names if name not in known and now.passed(name)]
