"""Detect mistakes in a PRD through which a check or a criterion would be lost silently.

A check that is read as prose looks like proof but is none, so a near miss is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from agentrunner.config.markdown import MarkdownLine, mask, section_title
from agentrunner.errors.task_files import BadCheck, LostCriteria
from agentrunner.text.lazy_regex import lazy_regex

_ALIKE = 0.7
"""Similarity from which a word counts as a mistyped `check`: chekc, chck, checks, checked."""
_LETTERS = 2
"""Largest difference in length; `checkout` and `checklist` are words of their own."""
_HEADING_ALIKE = 0.88
_MEANT = frozenset({"test", "tests", "verify"})
"""Words that people write instead of `check`, whatever follows them."""
_BEFORE_CODE = frozenset(
    {"run", "runs", "command", "cmd", "proof", "prove", "proven by", "verified by", "tested by",
     "checked by", "verified", "verification", "確認方法", "検証方法", "テスト", "コマンド"}
)  # fmt: skip
"""Words that mean a check if a command in back-ticks follows directly."""
_WORD = r"([^\W\d_][^:()`\0]{0,20}?)\s*:"
_LAST = lazy_regex(rf"\(\s*{_WORD}\s*(.*)\)$")
_NO_COLON = lazy_regex(r"\(\s*([^\W\d_][^:()`\0]{0,20}?)\s+((?:test\s+)?`+\0+`+)\s*\)$")
"""A word followed by code only; `(check `x` first)` is prose."""
_ALONE = lazy_regex(r"^\(\s*(\w+)\s*\)|\(\s*(\w+)\s*\)$")
_OPTIONAL_ALIKE = 0.87
_LINE = lazy_regex(rf"(?:[-*+]\s+)?{_WORD}\s*(`.*)$")
_CODE = lazy_regex(r"(?:test\s+|file\s+)?`", re.IGNORECASE)
_CHECKS = ("check", "確認", "検証")


def refuse_near_check(text: str, line: MarkdownLine, *, alone: bool) -> None:
    """Raise UsageError (`bad-check`) for something meant as a check that is none.

    `alone` means that the text is a line of its own, where prose with a colon is common.
    """
    masked = mask(text.strip()).rstrip(".。 ")
    match = _LINE.match(masked) if alone else None
    if match := match or _LAST.search(masked):
        word, behind = match[1].strip().casefold(), match[2].strip()
        if word in _CHECKS or not _means_check(word, code=_CODE.match(behind) is not None):
            return
        message = f'"{match[1].strip()}:" makes no check; the word is "check".'
    elif match := _NO_COLON.search(masked):
        word = match[1].strip().casefold()
        if word not in _CHECKS and not _means_check(word, code=True):
            return
        message = f'"{match[1].strip()}" without a colon makes no check.'
    else:
        return
    remedy = "write (check: `COMMAND`) or (check: test `NAME`)"
    raise line.error(BadCheck, message, remedy)


def refuse_near_optional(text: str, line: MarkdownLine) -> None:
    """Raise UsageError (`bad-check`) for a mistyped `(optional)`, which would leave it critical."""
    for match in _ALONE.finditer(mask(text.strip()).rstrip(".。 ")):
        word = (match[1] or match[2]).casefold()
        if SequenceMatcher(None, word, "optional").ratio() >= _OPTIONAL_ALIKE:
            word = match[1] or match[2]
            message = f'"({word})" makes nothing optional; the word is "optional".'
            raise line.error(BadCheck, message, "write (optional)")


def _means_check(word: str, *, code: bool) -> bool:
    return word in _MEANT or (code and word in _BEFORE_CODE) or _resembles_check(word)


def _resembles_check(word: str) -> bool:
    near = abs(len(word) - len("check")) <= _LETTERS
    return near and SequenceMatcher(None, word, "check").ratio() >= _ALIKE


def refuse_lost(
    heading: MarkdownLine | None,
    checks: Sequence[MarkdownLine],
    items: bool,
    known: Iterable[str],
    named: Sequence[str],
) -> None:
    """Raise UsageError (`lost-criteria`) for a section that holds criteria but is not read.

    `checks` are its list items' lines that have a check, `items` is whether it has a list at all,
    `known` are the headings that are read, `named` those in the language of the PRD.
    """
    title = section_title(heading.title) if heading else ""
    near = _near_heading(title, known) if items and title else ""
    if not checks and not near:
        return
    line = heading if heading is not None and near else checks[0]
    under = f'under "{heading.title}"' if heading else "under no heading"
    message = (
        f'the heading "{heading.title}" is not one that is read, so its list would be lost.'
        if heading is not None and near
        else f"a check stands {under}, where no criteria are read: it would be lost."
    )
    remedy = f"name the heading {_listed([near] if near else named)}"
    raise line.error(LostCriteria, message, remedy)


def _listed(headings: Sequence[str]) -> str:
    """Return `"Acceptance criteria", "Definition of done" or "Done when"`; Japanese as 「…」."""
    *first, last = (
        f'"{one.capitalize()}"' if one.isascii() else f"\u300c{one}\u300d" for one in headings
    )
    return f"{', '.join(first)} or {last}" if first else last


def _near_heading(title: str, known: Iterable[str]) -> str:
    for heading in known:
        if SequenceMatcher(None, title, heading).ratio() >= _HEADING_ALIKE:
            return heading
    return ""
