"""Extract acceptance criteria from a PRD, by rules and not by a model.

The criteria are the list items under a heading such as "Acceptance criteria" or 「受け入れ条件」.
If there is no such heading, in any language, the unticked check boxes (`- [ ]`) of the text are.
docs/reference/task-file.md gives the grammar of an item.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher

from msgspec import Struct, field

from agentrunner.config.markdown import (
    MarkdownLine,
    detect_language,
    has_japanese,
    lines_of,
    mask,
    section_title,
)
from agentrunner.config.spec import Check, CriterionSpec
from agentrunner.errors.task_files import (
    BadCheck,
    DuplicateId,
    EmptyCriteria,
    FileOutside,
    FileTooLarge,
    LostCriteria,
)
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

HEADINGS_OF: Mapping[str, tuple[str, ...]] = {
    "en": ("acceptance criteria", "definition of done", "done when"),
    "ja": ("受け入れ条件", "受入条件", "受け入れ基準", "受入基準", "完了条件", "完了の定義"),
}
"""By language, the headings under which criteria are read."""
HEADINGS = frozenset(heading for headings in HEADINGS_OF.values() for heading in headings)


def title_in(text: str) -> str:
    """Return the title of a PRD: a heading of the first level, or one that begins the text; "" for
    neither. The heading of its criteria is none."""
    lines = [line for line in lines_of(text) if line.kind not in ("blank", "comment")]
    headings = [
        line
        for at, line in enumerate(lines)
        if line.kind == "heading" and (line.level == 1 or at == 0)
    ]
    titles = (line.title for line in headings if section_title(line.title) not in HEADINGS)
    return next(titles, "")


MAX_LINE = 4000
"""Most characters in a criterion's line; longer lines are slow to read, and nobody writes them."""

MAX_CRITERIA = 200

_BULLET = lazy_regex(r"(\s*)(?:[-*+]|\d{1,3}[.)])(?:\s+|$)")
_RULE = lazy_regex(r"\s*([-*_])(?:\s*\1){2,}\s*$")
_CHECKBOX = lazy_regex(r"\[[\sxX]\](?:\s+|$)")
_TO_DO = lazy_regex(r"\[\s\]\s+\S")
_ID = lazy_regex(r"(?:\*\*|__)?(AC-\d{1,6}[a-z]?)(?:\*\*|__)?\s*:(?:\*\*|__)?\s*", re.IGNORECASE)
_OPTIONAL_FIRST = lazy_regex(r"\(\s*(?:optional|任意)\s*\)\s*", re.IGNORECASE)
_OPTIONAL_LAST = lazy_regex(r"\(\s*(?:optional|任意)\s*\)$", re.IGNORECASE)
_KEY = r"(?:check|確認|検証)\s*:"
_CHECK_LAST = lazy_regex(rf"\(\s*{_KEY}(.*)\)$", re.IGNORECASE)
_CHECK_LINE = lazy_regex(rf"(?:[-*+]\s+)?{_KEY}(.*)$", re.IGNORECASE)
_CHECK_STRAY = lazy_regex(rf"\(\s*{_KEY}|(?<![\w-]){_KEY}\s*(?:test\s+|file\s+)?`", re.IGNORECASE)

_TESTS_PASS = lazy_regex(
    r"""(?:(?:all|the|of|existing|other|old|unit|present|current|whole|full|automated|remaining)\s+)*
    (?:tests?|suite|specs?)(?:\s+(?:suite|cases?))?
    (?:\s+(?:still|all|must|should|has|have|to|be|continues?|keeps?|remains?|stays?|are|is|runs?))*
    \s+(?:pass|passes|passing|green|succeeds?)(?:\s+(?:again|too|as|before|afterwards|now))*
    |(?:(?:alle|die|der|bestehenden?|übrigen|anderen|vorhandenen)\s+)*tests?\s+
    (?:(?:laufen|sind|bleiben|bestehen)\s*)(?:weiter(?:hin)?|alle|noch)?\s*(?:durch|grün)?
    |(?:tous\s+|toutes\s+)?les\s+(?:autres\s+)?tests\s+(?:passent|sont|restent)
    (?:\s+(?:encore|toujours|verts?))*
    |(?:tod[ao]s\s+)?(?:l[ao]s\s+)?(?:demás\s+)?(?:pruebas|tests)\s+(?:pasan|siguen\s+pasando)
    |(?:すべて|全て|既存|他|ほか|その他|単体|の)*テスト(?:スイート)?(?:が|は)?(?:すべて|全て|引き続き)*
    (?:通る|通ります|成功する|パスする|緑である|グリーンである)(?:こと)?
    |(?:所有|全部|现有|其他|其余|的)*测试(?:都|均|全部|仍然|仍)*(?:能)?通过""",
    re.IGNORECASE | re.VERBOSE,
)
"""A criterion that only says that the tests as a whole pass."""
_COMMAND = lazy_regex(r"(`+)(\0+)\1")
_TEST = lazy_regex(r"test\s+(`+)(\0+)\1", re.IGNORECASE)
_FILE = lazy_regex(
    r"file\s+(?:(?P<ticks>`+)(?P<span>\0+)(?P=ticks)|(?P<bare>\S+))\s+contains\s+"
    r'(?:"(?P<quoted>.*)"|“(?P<curly>.*)”|「(?P<corner>.*)」|(?P<t2>`+)(?P<code>\0+)(?P=t2))',
    re.IGNORECASE,
)


def read_criteria(
    text: str,
    file_name: str,
    first_line: int = 1,
    *,
    written: Sequence[CriterionSpec] = (),
) -> list[CriterionSpec]:
    """Return `written` (from the task file) and the criteria of a PRD, all with ids.

    `first_line` is the line of the file that `text` begins with. Missing ids become the next free
    `AC-n`. Raises UsageError (`bad-check`, `duplicate-id`, `empty-criteria`, `lost-criteria`) with
    the line.
    """
    lines, language = [*lines_of(text, first_line, file_name)], detect_language(text)
    drafts = [_parse_item(item) for item in _items(lines, language, boxes=not written)]
    ids = _assign_ids(
        [c.id for c in written] + [draft.id for draft in drafts], drafts, len(written)
    )
    done = [c.model_copy(update={"id": i}) for c, i in zip(written, ids, strict=False)]
    return done + [
        _to_criterion(draft, id_) for draft, id_ in zip(drafts, ids[len(written) :], strict=True)
    ]


def read_item(text: str, file_name: str, line: int) -> CriterionSpec:
    """Parse a task file's criterion that is text, in the grammar of an item; its id may be ""."""
    raw = enumerate(text.strip().split("\n"), line)
    lines = [MarkdownLine(file_name, number, one, "text") for number, one in raw]
    draft = _parse_item(_Item(lines[0].text, lines[0], lines[1:]))
    return _to_criterion(draft, draft.id)


def read_words(text: str, file_name: str, line: int, name: str) -> Check | None:
    """The check that a text of a task file means, where it is in the words of a PRD: a test of the
    suite, or a text in a file. None for a command.

    As a command `file README.md contains "x"` would look at three files, and always succeed.
    Raises UsageError (`file-outside`).
    """
    masked = mask(text.strip())
    if _TEST.fullmatch(masked) or _FILE.fullmatch(masked):
        return _read_check(text, MarkdownLine(file_name, line, text.strip(), "text"), name)
    return None


def describe_check(check: Check | None) -> str:
    """Describe in one line what the check does: its command, or what a file must hold."""
    if check is None:
        return "nothing to execute"
    place = "" if check.cwd in ("", ".") else f" (in {check.cwd})"
    exit_code = "" if check.expect_exit == 0 else f" (exit code {check.expect_exit})"
    target = f"{check.file} {check.test_name}".strip()
    match check.kind:
        case "command" if check.run:
            return check.run + place + exit_code
        case "test":
            where = f"{check.file}::" if check.file else ""
            return f"test {where}{check.name}" if check.name else "the test command"
        case "file" if check.path:
            return f"{check.path} {_about_file(check)}"
        case "pytest" if target:
            return "pytest -q " + "::".join(filter(None, (check.file, check.test_name))) + place
        case "playwright" if target:
            return f"playwright test {target}{place}"
        case "go-test" if target:
            return f"go test {target}{place}"
        case "npm-script" if target:
            return f"npm run {target}{place}"
        case "diff" if check.must_change or check.must_not_change:
            wanted = [f"{glob} changed" for glob in check.must_change]
            return ", ".join(wanted + [f"{glob} unchanged" for glob in check.must_not_change])
    return "nothing to execute"


def _about_file(check: Check) -> str:
    if check.contains:
        return f'contains "{check.contains}"'
    if check.matches:
        return f"matches /{check.matches}/"
    return "does not exist" if check.exists is False else "exists"


class _Item(Struct):
    """A list item as it is written in the file."""

    head: str
    line: MarkdownLine
    more: list[MarkdownLine] = field(default_factory=list)


class _Draft(Struct):
    """An item with its checkbox, id and marks parsed, and its check found but not parsed."""

    item: _Item
    id: str
    description: str
    critical: bool
    checks: list[tuple[str, MarkdownLine]]
    detail: list[str]
    strays: list[MarkdownLine]


def _items(lines: Sequence[MarkdownLine], language: str, *, boxes: bool) -> Iterator[_Item]:
    """Yield the items of all sections in order; a section without items is an error.

    If there is no section and `boxes` is set, yield all unticked check boxes instead.
    """
    level = 0
    opened: MarkdownLine | None = None
    sections: list[tuple[MarkdownLine, list[MarkdownLine]]] = []
    other: list[MarkdownLine] = []
    """The current heading that opens no section, and the lines under it."""
    others: list[list[MarkdownLine]] = []
    for line in lines:
        if line.kind == "heading" and (opened is None or line.level <= level):
            others.append(other)
            opened = line if section_title(line.title) in HEADINGS else None
            level, other = line.level, [] if opened else [line]
            if opened is not None:
                sections.append((opened, []))
        elif opened is not None:
            sections[-1][1].append(line)
        else:
            other.append(line)
    for lost in [*others, other]:
        _refuse_lost(lost, language, boxes=boxes and not sections)
    for heading, section in sections:
        yield from _section_items(heading, section)
    if boxes and not sections:
        yield from _list_items(lines, is_item=_TO_DO)


def _refuse_lost(lines: Sequence[MarkdownLine], language: str, *, boxes: bool) -> None:
    """Raise UsageError (`lost-criteria`) for criteria in a place where none are read.

    With `boxes` the unticked check boxes are read wherever they stand.
    """
    heading = lines[0] if lines and lines[0].kind == "heading" else None
    checks: list[MarkdownLine] = []
    inside = items = is_read = False
    for line in lines:
        if line.kind == "text" and len(line.text) <= MAX_LINE:
            masked = mask(line.text)
            match = _BULLET.match(masked)
            bullet = match is not None and not _RULE.match(masked)
            if match is not None and bullet:
                is_read = boxes and bool(_TO_DO.match(masked[match.end() :]))
            inside = bullet or (inside and line.indent > 0)
            items = items or bullet
            if inside and not is_read and _has_check(masked.strip(), own_line=not bullet):
                checks.append(line)
        else:
            inside = inside and line.kind == "blank"
    known = HEADINGS_OF["ja" if heading and has_japanese(heading.title) else language]
    refuse_lost(heading, checks, items, HEADINGS, known)


def _has_check(masked: str, *, own_line: bool) -> bool:
    """Whether a list item's line has a check that could be executed."""
    match = _CHECK_LINE.match(masked) if own_line else None
    match = match or _CHECK_LAST.search(masked.rstrip(".。 "))
    return (match is not None and "`" in match[1]) or bool(match and _FILE.search(match[1]))


def _section_items(opened: MarkdownLine, section: Sequence[MarkdownLine]) -> list[_Item]:
    items = _list_items(section)
    if not items:
        raise opened.error(
            EmptyCriteria,
            f'"{opened.title}" has no list: nothing says when it is done.',
            "write below it, for instance: - [ ] The total counts every piece (check: `COMMAND`)",
        )
    return items


def _list_items(
    section: Iterable[MarkdownLine], *, is_item: re.Pattern[str] | None = None
) -> list[_Item]:
    """Return the items of lists, with the lines indented below them, except check boxes of their
    own.

    With `is_item`, return only items whose text starts with that pattern.
    """
    items: list[_Item] = []
    current: _Item | None = None
    base, blank = 0, False
    for line in section:
        if len(line.text) > MAX_LINE and line.kind == "text":
            raise line.error(
                FileTooLarge,
                f"a criterion's line has more than {MAX_LINE} characters.",
                "say in one line when it is met; what else is wanted goes into the text above",
            )
        match = _BULLET.match(mask(line.text)) if line.kind == "text" else None
        text = line.text[match.end() :] if match else ""
        if line.kind == "heading" or (line.kind == "text" and _RULE.match(line.text)):
            current = None
        elif match and (current is None or line.indent < base + 2 or _TO_DO.match(text)):
            base = line.indent if current is None else min(base, line.indent)
            current = None
            if is_item is None or is_item.match(text):
                current = _Item(text, line)
                items.append(current)
            if len(items) > MAX_CRITERIA:
                raise line.error(
                    FileTooLarge,
                    f"more than {MAX_CRITERIA} criteria.",
                    "make several PRDs of it, or have one test command decide many of them",
                )
        elif current and line.kind != "comment":
            if line.kind == "blank" or line.indent > base or not blank:
                current.more.append(line)
            else:
                current = None
        blank = line.kind == "blank"
    return items


def _parse_item(item: _Item) -> _Draft:
    """Parse an item's first line, and find checks in all of its lines."""
    text = item.head.strip()
    if ticked := _CHECKBOX.match(mask(text)):
        text = text[ticked.end() :]
    critical, id_ = True, ""
    while True:
        masked = mask(text)
        if match := _OPTIONAL_FIRST.match(masked):
            critical = False
        elif not id_ and (match := _ID.match(masked)):
            id_ = "AC" + match[1][2:].lower()
        else:
            break
        text = text[match.end() :]
    draft = _Draft(item, id_, "", critical, [], [], [])
    draft.description = _strip_marks(text, item.line, draft)
    for line in item.more:
        _read_continuation(line, draft)
    if not draft.description:
        raise item.line.error(EmptyCriteria, "a criterion has no text.", "- [ ] …")
    return draft


def _read_continuation(line: MarkdownLine, draft: _Draft) -> None:
    text = line.text.strip()
    if line.kind == "code":
        draft.detail.append(line.text)
    elif match := _CHECK_LINE.match(mask(text)):
        draft.checks.append((text[match.start(1) :], line))
    elif rest := _strip_marks(text, line, draft, alone=True):
        draft.detail.append(line.text if rest == text else rest)
    elif not text and draft.detail:
        draft.detail.append("")


def _strip_marks(text: str, line: MarkdownLine, draft: _Draft, *, alone: bool = False) -> str:
    """Return `text` without a check or `(optional)` at its end; record both in the draft."""
    text = text.rstrip()
    while True:
        masked = mask(text).rstrip(".。 ")
        if match := _OPTIONAL_LAST.search(masked):
            draft.critical = False
        elif masked.endswith(")") and (match := _CHECK_LAST.search(masked)):
            draft.checks.append((text[match.start(1) : match.end(1)], line))
        else:
            break
        text = text[: match.start()].rstrip()
    refuse_near_check(text, line, alone=alone)
    if not alone:
        refuse_near_optional(text, line)
    if _CHECK_STRAY.search(mask(text)):
        draft.strays.append(line)
    return text


def _assign_ids(ids: list[str], drafts: Sequence[_Draft], written: int) -> list[str]:
    """Fill in missing ids. The task file's come first; their duplicates are found elsewhere."""
    taken: set[str] = set()
    for index, id_ in enumerate(ids):
        if not id_:
            continue
        if id_.casefold() in taken and index >= written:
            draft = drafts[index - written]
            raise draft.item.line.error(
                DuplicateId, f"the id {id_} is used twice.", "give it another id, or none"
            )
        taken.add(id_.casefold())
    n = 1
    numbered = []
    for id_ in ids:
        if not id_:
            while f"ac-{n}" in taken:
                n += 1
            id_ = f"AC-{n}"
            n += 1
        numbered.append(id_)
    return numbered


def _to_criterion(draft: _Draft, id_: str) -> CriterionSpec:
    item, name = draft.item, id_ or "this criterion"
    if len(draft.checks) > 1:
        raise draft.checks[1][1].error(
            BadCheck,
            f"{name} has more than one check.",
            "join the commands with &&, or write two criteria",
        )
    if draft.strays:
        raise draft.strays[0].error(
            BadCheck,
            f"the check of {name} is neither in parentheses at the end nor on its own line.",
            "write it last: (check: `COMMAND`)",
        )
    check = _read_check(*draft.checks[0], name) if draft.checks else None
    if check is None and _TESTS_PASS.fullmatch(draft.description.strip(" .。!")):
        check = Check(kind="test")
    return CriterionSpec(
        id=id_,
        description=draft.description,
        critical=draft.critical,
        check=check,
        detail=_dedent(draft.detail),
        line=item.line.number,
    )


def _read_check(text: str, line: MarkdownLine, name: str) -> Check:
    text = text.strip().rstrip(".。")
    masked = mask(text)
    if match := _COMMAND.fullmatch(masked):
        if command := text[match.start(2) : match.end(2)].strip():
            return Check(kind="command", run=command)
    elif match := _TEST.fullmatch(masked):
        if test := text[match.start(2) : match.end(2)].strip():
            return Check(kind="test", name=test)
    elif match := _FILE.fullmatch(masked):
        path = text[slice(*match.span("span" if match["span"] else "bare"))].strip()
        group = next(g for g in ("quoted", "curly", "corner", "code") if match[g] is not None)
        if posixpath.isabs(path) or posixpath.normpath(path).startswith(".."):
            raise line.error(
                FileOutside,
                f"the check of {name} names {path}, which is no file of the repository.",
                "write the path from the root of the repository; or check: `COMMAND`, which may"
                " look at other places",
            )
        if path and (wanted := text[slice(*match.span(group))]):
            return Check(kind="file", path=path, contains=wanted)
    if "`" in masked or re.match(r"(?:test|file)\s", masked, re.IGNORECASE):
        problem, plain = f"the check of {name} cannot be read.", ""
    else:
        problem, plain = f"the check of {name} has no command in backticks.", text
    forms = 'check: `COMMAND`, check: test `NAME`, check: file PATH contains "TEXT"'
    raise line.error(BadCheck, problem, f"check: `{plain}`" if plain else f"one of {forms}")


def _dedent(lines: list[str]) -> str:
    full = [line.replace("\t", "    ") for line in lines]
    margins = [len(line) - len(line.lstrip(" ")) for line in full if line.strip()]
    margin = min(margins, default=0)
    return "\n".join(line[margin:].rstrip() for line in full).strip("\n")


def refuse_near_check(text: str, line: MarkdownLine, *, alone: bool) -> None:
    """Raise UsageError (`bad-check`) for something meant as a check that is none.

    `alone` means that the text is a line of its own, where prose with a colon is common.

    A check that is read as prose looks like proof but is none, so a near miss is an error.
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
