"""Which red tests have to turn green, and which were red for another reason. Pure.

A test that was red before the run is *claimed*: it has to pass by name. It is a *known red* where
a person listed it, or where nothing that was asked for names it by test, file or subject. What
stands for a file that could not be loaded is a known red only where a person listed it: nobody
knows what the tests in it ask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import content_words, speaks_of
from agentrunner.text.sentences import sentences
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.results.names import belongs_to, own_name

TELLS_TO_IGNORE = lazy_regex(
    r"(?i)\bignore\s+(?:it|them|that|this|these|those)\b"
    r"|\bignore\s+(?:the\s+|that\s+|this\s+)?(?:[\w`-]+\s+){0,2}(?:tests?|specs?)(?:\b|_)"
    r"|\b(?:can|may|should|must|is|are)\s+(?:to\s+)?be\s+ignored\b|テスト[^。\n]{0,10}無視"
)
"""What tells a worker to leave a red test alone: such a test is not asked for."""

PLAIN_WORD = lazy_regex(r"[A-Z]?[a-z]*|[A-Z]+|[\W\d_]*")
"""The name of a test that is no name in a sentence: a word, of which only the subject counts, or
none."""


class Claims(Struct, frozen=True):
    """The red tests of the old tree: those that have to turn green, and those that need not."""

    claimed: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    listed: frozenset[str] = frozenset()
    """Those of the known reds that a person listed."""


def claims_of(
    before: Results | None,
    wanted: Sequence[str],
    *,
    listed: Sequence[str] = (),
    mapped: Collection[str] = (),
    named: Collection[str] = (),
    only_listed: bool = False,
) -> Claims:
    """Divide the tests that were red before the run into claimed tests and known reds.

    `wanted` is all that was asked for: PRD, criteria, checks. `listed` are names or globs that a
    person calls known reds; `mapped` are tests that stand for a criterion, `named` those that a
    person named for one, as people write them. With `only_listed` (mode strict) nothing else is a
    known red. Where nothing names any red test, all are claimed.
    """
    if before is None:
        return Claims()
    red = {test.name: test for test in before.red}
    meant = _stand_for_criteria(red, mapped, named)
    listed_red = {name for name in red if any(_matches(name, one) for one in listed)} - meant
    rest = {name: test for name, test in red.items() if name not in listed_red}
    if only_listed or before.weak:
        return Claims(frozenset(rest), frozenset(listed_red), frozenset(listed_red))
    asked = asked_for(rest, wanted, meant) or rest.keys()
    asked |= {name for name, test in rest.items() if test.unloaded}
    others = rest.keys() - asked
    return Claims(frozenset(asked), frozenset(listed_red | others), frozenset(listed_red))


def asked_for(
    red: Mapping[str, TestResult], wanted: Sequence[str], meant: Collection[str]
) -> set[str]:
    """The red tests that stand for a criterion, or that a text names by test, file or subject.

    A sentence that says to ignore a test asks for none.
    """
    text = "\n".join(wanted)
    for sentence in filter(TELLS_TO_IGNORE.search, sentences(text, points=False, brackets=True)):
        text = text.replace(sentence, " ")
    words = content_words(text)
    return {name for name, test in red.items() if name in meant or _is_named_in(test, text, words)}


class Picked(Struct, frozen=True):
    """Tests that a person calls known reds, compared with the results before the run."""

    names: tuple[str, ...] = ()
    """The red tests that are meant, by their full names."""
    green: tuple[str, ...] = ()
    """Names or globs of tests that passed before, or did not run."""
    claimed: tuple[str, ...] = ()
    """Red tests that were asked for, and so have to turn green."""
    unknown: tuple[str, ...] = ()
    """Names or globs that match no test of the results before the run."""


def pick(
    marks: Sequence[str],
    before: Results,
    wanted: Sequence[str],
    mapped: Collection[str],
    named: Collection[str] = (),
) -> Picked:
    """Find which red tests these names or globs (`marks`) mean, and which cannot be known reds.

    `wanted`, `mapped` and `named` are as for `claims_of`. A red test that is claimed only because
    nothing that was asked for names any red test may be called a known red.
    """
    red = {test.name: test for test in before.red}
    asked = asked_for(red, wanted, _stand_for_criteria(red, mapped, named))
    each = dict.fromkeys(name for mark in marks for name in red if _matches(name, mark))
    others = [mark for mark in marks if not any(_matches(name, mark) for name in red)]
    green = [mark for mark in others if any(_matches(name, mark) for name in before.names)]
    return Picked(
        tuple(name for name in each if name not in asked),
        tuple(green),
        tuple(name for name in each if name in asked),
        tuple(mark for mark in others if mark not in green),
    )


def listed_but_green(listed: Iterable[str], before: Results | None) -> list[str]:
    """Patterns of a list of known reds that match passed tests and no red one: mistakes."""
    if before is None:
        return []
    green = [test.name for test in before.tests if test.outcome == "passed"]
    red = [test.name for test in before.red]
    return [
        pattern
        for pattern in listed
        if any(_matches(name, pattern) for name in green)
        and not any(_matches(name, pattern) for name in red)
    ]


def listed_for_nothing(listed: Iterable[str], before: Results | None) -> list[str]:
    """Patterns of a list of known reds that match no test at all, where every test has a name."""
    if before is None or before.weak or not before.all_named:
        return []
    names = [test.name for test in before.tests]
    return [one for one in listed if not any(_matches(name, one) for name in names)]


ENDS = ("::", " > ", ".", "/")
"""What tools put between the parts of a test's name."""


def is_listed(name: str, listed: Sequence[str]) -> bool:
    """Whether a list of known reds has this test."""
    return any(_matches(name, pattern) for pattern in listed)


def _matches(name: str, pattern: str) -> bool:
    short = tuple(f"{end}{pattern}" for end in ENDS)
    return name == pattern or name.endswith(short) or fnmatchcase(name, pattern)


def _stand_for_criteria(
    red: Mapping[str, TestResult], mapped: Collection[str], named: Collection[str]
) -> set[str]:
    return {
        name
        for name, test in red.items()
        if name in mapped or any(belongs_to(test, one) for one in named)
    }


def _is_named_in(test: TestResult, text: str, words: Collection[str]) -> bool:
    """Whether what was asked for names a test, its file or its subject."""
    last = own_name(test.name.split("[")[0]).rpartition("/")[2]
    file = test.file.rpartition("/")[2]
    if not PLAIN_WORD.fullmatch(last) and speaks_of(text, last):
        return True
    if speaks_of(text, file):
        return True
    subject = content_words(last) | content_words(file.rpartition(".")[0])
    return not subject.isdisjoint(words)


def red_names(results: Results) -> list[str]:
    """Names of red tests, each once, in their order."""
    return list(dict.fromkeys(test.name for test in results.red))


def turned(before: Results | None, now: Results, claimed: Collection[str]) -> list[str]:
    """Names of claimed tests that pass now; [] where there are no results from before."""
    if before is None:
        return []
    return [
        name
        for name in dict.fromkeys(t.name for t in now.tests if t.name in claimed)
        if now.passed(name)
    ]


def fresh(before: Results | None, now: Results) -> list[str]:
    """Names that pass now and were not reported before: they are new, or could not run then."""
    known = set(before.names) if before is not None else set()
    return [name for name in now.names if name not in known and now.passed(name)]
