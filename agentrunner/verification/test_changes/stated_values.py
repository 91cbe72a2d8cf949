"""Values that a test lost or got, and whether people state them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from difflib import SequenceMatcher
from itertools import islice

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import has_word
from agentrunner.verification.syntax.comparisons import BOUND
from agentrunner.verification.test_changes.reworded_texts import (
    QUOTED,
    WantedValues,
    follows_a_text,
)

VALUE = lazy_regex(
    r"\"[^\"\n]*\"|'[^'\n]*'|(?<![\w.])\d[\w.]*"
    r"|\b(?:True|False|None|true|false|null|nil|undefined)\b"
)
VALUE_OF_KEY = lazy_regex(rf"(:\s*)?({VALUE.pattern})")
ROW = lazy_regex(rf"[\[({{](?:[\s,]*(?:\w+\s*:\s*)?-?\s*(?:{VALUE.pattern}))+[\s,]*[\])}}]")
"""A row of a table: values in brackets."""
PLACE = lazy_regex(r"\b[A-Z]{2,}\b|<\w+>|\{\w*\}|…|\.\.\.")
"""A gap in a text that people state: NAME, <name>, {name}."""
FORMATTED = lazy_regex(r"(?<![\s,:;])[\s,:;]*%[-+# 0]*+\d*(?:\.\d+)?[a-zA-Z]")
"""A place in a message of a test, with what stands before it."""
PARAMETER_NAMES = lazy_regex(rf"\bparametrize\s*\(\s*(?:[\[(][^\])]*[\])]|{VALUE.pattern})\s*,")
"""What a table of pytest calls its columns."""
ASKS = lazy_regex(r"\b(?:\w*[aA]ssert\w*|expect\w*|raises|throws|rejects|should\w*)\b")
_UP_TO = r"\((?:(?!\bassert\b|\bexpect\b).)*?"
RAISES = lazy_regex(
    r"(?:\b(?:raises|assertRaises(?:Regex)?)\s*\(\s*(?:\w+\s*\.\s*)*"
    rf"|\bexpect\s*{_UP_TO}\.\s*(?:rejects\s*\.\s*)?toThrow(?:Error)?\s*\(\s*"
    rf"|\b(?:assert\s*\.\s*)?(?:throws|rejects)\s*{_UP_TO},\s*(?:\{{\s*name\s*:\s*[\"']?)?)"
    r"(?P<error>[A-Z]\w*)"
)
"""What asks that an error is raised, and this."""
LIMITS = lazy_regex(
    r"(?i)\b(?:at (?:least|most)|less|more|fewer|under|below|above|over|within|between|up to"
    r"|limit\w*|max\w*|min\w*|exceed\w*)\b|以[上下]|未満|超え"
)
"""Words by which a text asks for no certain value."""
NOTHING = ("nil", "null", "None", "undefined")
TOKEN = lazy_regex(rf"{VALUE.pattern}|\w+|\S")
WORD = lazy_regex(r"[\"']?[^\W\d]\w*[\"']?")
"""A name in code, or one that is quoted as a key is."""


def _only_asks_for_errors(text: str, wanted: str) -> bool:
    """Whether a test asks for nothing but that errors are raised which people want.

    Whatever else it hands over, or wants their message to say, makes it ask for more.
    """
    errors = [hit["error"] for hit in RAISES.finditer(text)]
    rest = VALUE.sub("", RAISES.sub("", text))
    return bool(errors) and not ASKS.search(rest) and all(is_stated(n, wanted) for n in errors)


def hands_over_more(
    before: str,
    after: str,
    wanted: str,
    gone: Collection[str] = (),
    kit: Collection[str] = (),
) -> bool:
    """Whether a test has all its words yet, and between them only names and values that are stated.

    `check({"id": 1})` becomes `check({"id": 1, "currency": "EUR"})`. A value may also be one that
    the product gave up (`gone`), in a call of what the text names: what that took by itself is
    handed over. What an assertion takes, a name that is no code of the project (`kit`), or the
    test's own head, makes it ask for less.
    """
    old, new = TOKEN.findall(before), TOKEN.findall(after)
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    head = TOKEN.findall(after.rpartition("\n")[2])[0]

    def is_handed_over(at: int) -> bool:
        word, behind = new[at], [*new[at + 1 : at + 3], "", ""]
        is_key = WORD.fullmatch(word) and (behind[0] == ":" or behind[0] == "=" != behind[1])
        return word in (",", ":", "=") or bool(
            ((VALUE.fullmatch(word) or is_key) and is_stated(word, wanted))
            or (VALUE.fullmatch(word) and word in gone and is_to_what_is_named(at))
            or (VALUE.fullmatch(word) and is_of_a_further_key(at))
        )

    def is_of_a_further_key(at: int) -> bool:
        """Whether an expected mapping got a key that is stated, and this is its value."""
        around = next(_around(new, at), at)
        names = [one for place in islice(_around(new, around), 1) for one in _called(new, place)]
        compared = new[max(around - 2, 0) : around] == ["=", "="] and not names
        return (
            new[around] == "{"
            and new[at - 1] == ":"
            and is_stated(new[at - 2], wanted)
            and (compared or any(ASKS.fullmatch(one) for one in names))
        )

    def is_to_what_is_named(at: int) -> bool:
        names = [one for place in _around(new, at) for one in _called(new, place)]
        return any(is_stated(one, wanted) for one in names)

    def is_taken_by_the_kit(at: int) -> bool:
        around = list(islice(_around(new, at), 2))
        names = _called(new, around[0]) if around else []
        if not names and len(around) > 1:  # a table of options
            names = [one for one in _called(new, around[1]) if one == head]
        return bool(names) and (
            names[0] in (*kit, head) or any(ASKS.fullmatch(one) for one in names)
        )

    return all(tag in ("equal", "insert") for tag, *_ in steps) and all(
        is_handed_over(at) and not is_taken_by_the_kit(at)
        for tag, _, _, start, end in steps
        if tag == "insert"
        for at in range(start, end)
    )


def _around(tokens: Sequence[str], at: int) -> Iterator[int]:
    """Yield the places of the brackets that are open at a token, the inner ones first."""
    depth = 0
    for place in range(at - 1, -1, -1):
        if tokens[place] in (")", "]", "}"):
            depth += 1
        elif tokens[place] in ("(", "[", "{"):
            if not depth:
                yield place
            depth = max(depth - 1, 0)


def _called(tokens: Sequence[str], at: int) -> list[str]:
    """The names before a round bracket, with those of the calls that they are called on:
    `expect`, `toBe` of `expect(x).toBe(`. None where it calls nothing."""
    names: list[str] = []
    while tokens[at] == "(" and at and WORD.fullmatch(tokens[at - 1]):
        names.insert(0, tokens[at - 1])
        at -= 2
        while at > 0 and tokens[at] == "." and WORD.fullmatch(tokens[at - 1]):
            names.insert(0, tokens[at - 1])
            at -= 2
        if at < 1 or tokens[at] != "." or tokens[at - 1] != ")":
            break
        at = next(_around(tokens, at - 1), 0)
    return names


def unstated(before: str, after: str, asked: WantedValues) -> bool:
    """Whether a test lost or got a value that is not stated in what is wanted.

    "5 retries" explains what `"retries": 3` lost when it became `"retries": 5`.
    """
    before, after = (PARAMETER_NAMES.sub("", text) for text in (before, after))
    was, now = (VALUE_OF_KEY.findall(text) for text in (before, after))
    alike = SequenceMatcher(None, was, now, autojunk=False).get_matching_blocks()
    kept = Counter(value for one in alike for _, value in was[one.a : one.a + one.size])
    lost, got = (Counter(value for _, value in one) - kept for one in (was, now))
    # One that stands elsewhere now is in both.
    wanted = asked.text
    if hands_over_more(before, after, wanted, asked.gone):
        return False
    bounds = [Counter(BOUND.findall(text)) for text in (before, after)]
    if bounds[1] - bounds[0] and not LIMITS.search(wanted):
        return True  # it asks for less than a value
    explained, extra = _other_rows(before, after, wanted, asked.gone)
    for less, more in (
        _written_otherwise(lost, got),
        renamed_arguments(TOKEN.findall(before), TOKEN.findall(after), wanted),
        _following(before, after, asked),
    ):
        explained, extra = explained + less, extra + more
    if _only_asks_for_errors(after, wanted):
        extra += Counter(value for _, value in now)
    if not lost - explained:  # that there is no error may be asked beside what was asked
        extra += Counter({one: got[one] for one in NOTHING})
    if any(not is_stated(value, wanted) for value in got - extra):
        return True
    lost = Counter({value: n for value, n in lost.items() if not is_stated(value, wanted)})
    return bool(lost - _replaced(before, after, wanted) - explained)


def _written_otherwise(lost: Counter[str], got: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """Count values that are the same in another form: `119.0` and `"119.00"`, or a message of the
    test with one more place in it."""
    other = {_meaning(value): value for value in got if value not in lost}
    pairs = [(value, other[_meaning(value)]) for value in lost if _meaning(value) in other]
    return (
        Counter({was: lost[was] for was, _ in pairs}),
        Counter({now: got[now] for _, now in pairs}),
    )


def _meaning(value: str) -> str:
    bare = value.strip("\"'")
    try:
        return str(Decimal(bare).normalize())
    except InvalidOperation:
        return FORMATTED.sub("", bare) if FORMATTED.search(bare) else value


def _following(before: str, after: str, asked: WantedValues) -> tuple[Counter[str], Counter[str]]:
    """Count values in whose place one is that follows the product's own text, and these."""
    old, new = (TOKEN.findall(text) for text in (before, after))
    lost, got = Counter[str](), Counter[str]()
    for was, now in zip(old, new, strict=True) if len(old) == len(new) else ():
        if was == now or not (VALUE.fullmatch(was) and VALUE.fullmatch(now)):
            continue
        given_up = any(was.strip("\"'") in one for one in asked.gone)
        if (given_up and _fits_template(now, asked.text)) or follows_a_text(was, now, asked):
            lost[was] += 1
            got[now] += 1
    return lost, got


def _fits_template(value: str, wanted: str) -> bool:
    """Whether a value is a text in quotes that is stated with a gap: "unknown setting NAME"."""
    bare = value.strip("\"'")
    for quoted in ("".join(one) for one in QUOTED.findall(wanted)):
        pieces = PLACE.split(quoted)
        says = len(pieces) > 1 and any(re.search(r"\w{3}", one) for one in pieces)
        if says and re.fullmatch(r"\S+".join(re.escape(one) for one in pieces), bare):
            return True
    return False


def is_stated(value: str, wanted: str) -> bool:
    """Whether a text has a value, a text without its quotes."""
    bare = value.strip("\"'").removeprefix("^").removesuffix("$")  # as in a pattern
    return bool(bare and re.search(rf"(?<![\w.]){re.escape(bare)}(?!\w)", wanted))


def _replaced(before: str, after: str, wanted: str) -> Counter[str]:
    """Count values in whose very place a stated one is, if what stands before them is named."""
    old, new = (TOKEN.findall(text) for text in (before, after))
    found: Counter[str] = Counter()
    if len(old) != len(new):
        return found
    subject = last = ""
    calls: list[bool] = []
    of_call = True
    for was, now in zip(old, new, strict=True):
        if last in (")", "]", "}") and now == "," and not of_call:
            subject = ""  # what stands before was part of another row
        if now in ("(", "[", "{"):
            calls.append(WORD.fullmatch(last) is not None)
        elif now in (")", "]", "}"):
            of_call = calls.pop() if calls else True
        last = now
        if was != now and VALUE.fullmatch(was) and VALUE.fullmatch(now):
            named = is_stated(subject.casefold(), wanted.casefold())  # `vat` is the VAT
            found[was] += is_stated(now, wanted) and named
        elif was == now and WORD.fullmatch(was):
            subject = was
    return found


def _other_rows(
    before: str, after: str, wanted: str, given_up: Collection[str]
) -> tuple[Counter[str], Counter[str]]:
    """Count values that went with rows which gave way to others, and values that the others have.

    `[90, "green"]` may become `[80, "green"]`, and more rows may stand beside it: these are tests
    of the worker's own. A row that is only gone explains nothing, and neither does a change beside
    the rows.
    """
    beside_before, beside_after = (ROW.sub("", text).replace(",", "") for text in (before, after))
    nothing: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    if beside_before.split() != beside_after.split():
        return nothing
    old, new = (
        [tuple(VALUE.findall(row)) for row in ROW.findall(text)] for text in (before, after)
    )
    gone: list[tuple[str, ...]] = []
    others: list[tuple[str, ...]] = []
    added: list[tuple[str, ...]] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        left = new[c:d]
        for row in old[a:b]:
            at = next(
                (i for i, one in enumerate(left) if _is_other_row(row, one, wanted, given_up)), None
            )
            if at is None:
                return nothing
            gone.append(row)
            others.append(left[at])
            added += left[:at]
            left = left[at + 1 :]
        added += left
    added = [one for one in added if not any(_contradicts(one, row, old) for row in gone)]
    lost = Counter(value for row in gone for value in row)
    return lost, Counter(value for row in [*others, *added] for value in row)


def _contradicts(row: Sequence[str], gone: Sequence[str], table: Sequence[Sequence[str]]) -> bool:
    """Whether a row asks what a row asked that is gone, and expects something else.

    What a table asks is told by a column in which each value stands once, while others repeat.
    """
    if len(row) != len(gone):
        return False
    differ = [k for k, (one, other) in enumerate(zip(row, gone, strict=True)) if one != other]
    columns = [*zip(*(one for one in table if len(one) == len(row)), strict=True)]
    once = [len(set(column)) == len(column) for column in columns]
    return len(differ) == 1 and (all(once) or not once[differ[0]])


def _is_other_row(
    before: Sequence[str], after: Sequence[str], wanted: str, given_up: Collection[str]
) -> bool:
    """Whether a row says the same in part, and else what is wanted.

    What goes has to be stated, or a limit that the product lost. Where the last value stays, "up to
    10" explains an 11 before it.
    """
    if len(before) != len(after):
        return False
    same = [was == now for was, now in zip(before, after, strict=True)]
    stated = [is_stated(now, wanted) for now in after]
    return (any(same) or all(stated)) and all(
        kept
        or (
            (is_stated(now, wanted) or (same[-1] and _is_beside(now, wanted)))
            and _is_explained(was, wanted, given_up)
        )
        for kept, was, now in zip(same, before, after, strict=True)
    )


def _is_explained(value: str, wanted: str, given_up: Collection[str]) -> bool:
    """Whether a value, or each number in a text, is stated or a limit that the product lost."""
    if is_stated(value, wanted) or value in given_up:
        return True
    numbers = re.findall(r"\d+", value)
    limits = " ".join(given_up)
    return bool(numbers) and all(
        is_stated(one, wanted) or one in given_up or _is_beside(one, limits) for one in numbers
    )


def _is_beside(value: str, text: str) -> bool:
    """Whether a text has the number before or after this one."""
    return value.isdecimal() and any(is_stated(str(int(value) + step), text) for step in (-1, 1))


def renamed_arguments(
    before: list[str], after: list[str], wanted: str
) -> tuple[Counter[str], Counter[str]]:
    """Values handed over under another name, as `wanted` names both: those before, those now.

    `before` and `after` are the tokens of a test: `timeout_ms=500` may become `timeout=0.5`.
    """
    lost, got = Counter[str](), Counter[str]()
    if len(before) != len(after):
        return lost, got
    for at in range(2, len(before)):
        was, now = before[at - 2], after[at - 2]
        named = has_word(was, wanted) and has_word(now, wanted)
        if before[at - 1] in ("=", ":") and was != now and before[at] != after[at] and named:
            lost[before[at]] += 1
            got[after[at]] += 1
    return lost, got
