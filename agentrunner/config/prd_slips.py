"""Slips in a PRD by which a check or a criterion would be lost without a word.

A check that is read as prose looks like proof and is none, so a near miss is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from agentrunner.config.markdown import MarkdownLine, mask, section_title
from agentrunner.errors.task_files import BadCheck, LostCriteria

_ALIKE = 0.7
"""From which likeness on a word is taken for a mistyped `check`: chekc, chck, checks, checked."""
_LETTERS = 2
"""Letters more or less; `checkout` and `checklist` are words of their own."""
_HEADING_ALIKE = 0.88
_MEANT = frozenset({"test", "tests", "verify"})
"""Words that people write in place of `check`, whatever follows them."""
_BEFORE_CODE = frozenset(
    {"run", "runs", "command", "cmd", "proof", "prove", "proven by", "verified by", "tested by",
     "checked by", "verified", "verification", "確認方法", "検証方法", "テスト", "コマンド"}
)  # fmt: skip
"""Words that mean a check where a command in backticks follows them at once."""
_WORD = r"([^\W\d_][^:()`\0]{0,20}?)\s*:"
_LAST = re.compile(rf"\(\s*{_WORD}\s*(.*)\)$")
_NO_COLON = re.compile(r"\(\s*([^\W\d_][^:()`\0]{0,20}?)\s+((?:test\s+)?`+\0+`+)\s*\)$")
"""A word and nothing but code behind it; `(check `x` first)` is prose."""
_ALONE = re.compile(r"^\(\s*(\w+)\s*\)|\(\s*(\w+)\s*\)$")
_OPTIONAL_ALIKE = 0.87
_LINE = re.compile(rf"(?:[-*+]\s+)?{_WORD}\s*(`.*)$")
_CODE = re.compile(r"(?:test\s+|file\s+)?`", re.IGNORECASE)
_CHECKS = ("check", "確認", "検証")


def refuse_near_check(text: str, line: MarkdownLine, file_name: str, *, alone: bool) -> None:
    """Raise UsageError (`bad-check`) for what was meant as a check and is none.

    `alone` says that the text is a line of its own, where prose with a colon is common.
    """
    masked = mask(text.strip()).rstrip(".。 ")
    match = _LINE.match(masked) if alone else None
    if match := match or _LAST.search(masked):
        word, behind = match[1].strip().casefold(), match[2].strip()
        if word in _CHECKS or not _meant(word, code=_CODE.match(behind) is not None):
            return
        message = f'"{match[1].strip()}:" makes no check; the word is "check".'
    elif match := _NO_COLON.search(masked):
        word = match[1].strip().casefold()
        if word not in _CHECKS and not _meant(word, code=True):
            return
        message = f'"{match[1].strip()}" without a colon makes no check.'
    else:
        return
    raise BadCheck(
        message,
        path=f"{file_name}:{line.number}",
        source_line=line.text.strip()[:200],
        remedy="write (check: `COMMAND`) or (check: test `NAME`)",
    )


def refuse_near_optional(text: str, line: MarkdownLine, file_name: str) -> None:
    """Raise UsageError (`bad-check`) for a mistyped `(optional)`, which would make it critical."""
    for match in _ALONE.finditer(mask(text.strip()).rstrip(".。 ")):
        word = (match[1] or match[2]).casefold()
        if SequenceMatcher(None, word, "optional").ratio() >= _OPTIONAL_ALIKE:
            raise BadCheck(
                f'"({match[1] or match[2]})" makes nothing optional; the word is "optional".',
                path=f"{file_name}:{line.number}",
                source_line=line.text.strip()[:200],
                remedy="write (optional)",
            )


def _meant(word: str, *, code: bool) -> bool:
    return word in _MEANT or (code and word in _BEFORE_CODE) or _like_check(word)


def _like_check(word: str) -> bool:
    near = abs(len(word) - len("check")) <= _LETTERS
    return near and SequenceMatcher(None, word, "check").ratio() >= _ALIKE


def refuse_lost(
    heading: MarkdownLine | None,
    checks: Sequence[MarkdownLine],
    items: bool,
    known: Iterable[str],
    file_name: str,
) -> None:
    """Raise UsageError (`lost-criteria`) for a section that holds criteria and is not read.

    `checks` are the lines of its list items that have a check, `items` whether it has a list at
    all, `known` the headings that are read.
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
    raise LostCriteria(
        message,
        path=f"{file_name}:{line.number}",
        source_line=line.text.strip()[:200],
        remedy=f'name the heading "{near.capitalize() if near else "Acceptance criteria"}"',
    )


def _near_heading(title: str, known: Iterable[str]) -> str:
    for heading in known:
        if SequenceMatcher(None, title, heading).ratio() >= _HEADING_ALIKE:
            return heading
    return ""
