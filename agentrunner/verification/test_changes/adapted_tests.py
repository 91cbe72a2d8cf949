"""Existing tests that were adapted to the work: what a change of them may be. Pure.

Where the PRD asks in ordinary words for tests to be adapted, a file of tests may change if all of
its tests are still there, nothing but imports changed beside them, and each value that a test lost
or got is one that the PRD states. A value that it does not state may give way to a stated one
where the PRD names what it belongs to. Whether the old wording fails on the new code, and the new
one on the old code, is seen by running both.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from difflib import SequenceMatcher
from itertools import islice

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.file_names import has_word
from agentrunner.verification.inputs.wanted_tests import differs_by_snapshots
from agentrunner.verification.syntax.comparisons import BOUND
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.imports import (
    bound_otherwise,
    defined_instead,
    places_of_imports,
)
from agentrunner.verification.syntax.languages import parse
from agentrunner.verification.syntax.test_finder import standing

GAP = lazy_regex(
    r"\$\{[^{}]*\}|#\{[^{}]*\}|\{[^{}]*\}|%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]|\\\([^()]*\)|\$\w+"
)
"""Where a text of the product gets a value: `{name}`, `%d`, `${total}`, `#{x}`."""
LETTERS = lazy_regex(r"[^\W\d_]+")
LONGEST_TEXT = 200
"""So many characters of a text are compared."""
MOST_GAPS = 3
ALIKE = 0.6
"""How much two texts have in common that say one thing."""
MOST_TEXTS = 200


class WantedValues(Struct, frozen=True):
    """What people ask for, and what the product has otherwise than before.

    "Greetings end with an exclamation mark" states no greeting. Where the product's own text lost
    its full stop, and nothing else of what the test expects has changed, the test follows the
    product. A value may be handed over under another name, as the requirements say.
    """

    text: str
    gone: Collection[str] = ()
    """Values that it has less often, which explain why rows of tests with them went."""
    come: Collection[str] = ()
    """Values that it has more often."""
    stems: Collection[str] = ()
    """The names of its new files, without their endings."""


WORD_OR_TEXT = lazy_regex(r"\"[^\"\n]*\"|'[^'\n]*'|\w+|\S")
PIECE = lazy_regex(r"\\.|\w+|\s+|[^\w\s]")
"""What a text is compared by: words, blanks and single signs."""
WRAPS = lazy_regex(r"(?:[A-Z]\w*|\w+(?:::|\.)[A-Z]\w*)")
"""A name that may be a type: `Path`, `decimal.Decimal`."""
LONGEST = 400

VALUE = lazy_regex(
    r"\"[^\"\n]*\"|'[^'\n]*'|(?<![\w.])\d[\w.]*"
    r"|\b(?:True|False|None|true|false|null|nil|undefined)\b"
)

ROW = lazy_regex(rf"[\[({{](?:[\s,]*(?:\w+\s*:\s*)?-?\s*(?:{VALUE.pattern}))+[\s,]*[\])}}]")
"""A row of a table: values in brackets."""
QUOTED = lazy_regex(r"`([^`\n]{3,80})`|[\"“']([^\"“”`'\n]{3,80})[\"”']")
PLACE = lazy_regex(r"\b[A-Z]{2,}\b|<\w+>|\{\w*\}|…|\.\.\.")
"""A gap in a text that people state: NAME, <name>, {name}."""
FORMATTED = lazy_regex(r"[\s,:;]*%[-+# 0]*\d*(?:\.\d+)?[a-zA-Z]")
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
IMPORT = "from "
"""What a line of a definition begins with that says where a name comes from."""
WORD = lazy_regex(r"[\"']?[^\W\d]\w*[\"']?")
"""A name in code, or one that is quoted as a key is."""


def adapted_in(before: bytes, after: bytes, language: str, wanted: WantedValues) -> set[str]:
    """Names of the tests of a file that were adapted to what is wanted.

    The empty set where none was, and where anything else changed that `wanted` does not explain.
    """
    pairs = _changed_tests(before, after, language, wanted.text)
    return set() if any(_unstated(*pair, wanted) for pair in pairs.values()) else set(pairs)


def reworded_in(before: bytes, after: bytes, language: str, wanted: WantedValues) -> set[str]:
    """Names of the tests of a file whose texts changed just as is stated, with no word of tests.

    The empty set where none was, and where anything else changed.
    """
    pairs = _changed_tests(before, after, language, wanted.text)
    for was, now in pairs.values():
        known = was.splitlines()
        lines = (one for one in now.splitlines() if one in known or not one.startswith(IMPORT))
        if not reworded(was, "\n".join(lines), wanted):
            return set()
    return set(pairs)


def _changed_tests(
    before: bytes, after: bytes, language: str, wanted: str
) -> dict[str, tuple[str, str]]:
    """The texts of the tests that say something else now, before and after, by name.

    Empty where a test is gone, or where anything beside the tests and their imports changed.
    """
    old, new = definitions(before, language), definitions(after, language)
    changed = {name for name, text in old.items() if new.get(name) != text}
    if not changed or not changed <= new.keys() or not old.keys() <= new.keys():
        return {}
    if _beside_tests(before, language) != _beside_tests(after, language):
        return {}
    if defined_instead(before, after, language) or bound_otherwise(before, after, language, wanted):
        return {}
    return {name: (old[name], new[name]) for name in changed}


def exchanged_values(
    before: bytes, after: bytes, language: str
) -> list[tuple[str, str, str]] | None:
    """What stands before each value that another took the place of in tests, with both values.

    None where the tests differ by anything else.
    """
    old, new = definitions(before, language), definitions(after, language)
    found: list[tuple[str, str, str]] = []
    for name, text in old.items():
        was, now = (TOKEN.findall(one) for one in (text, new.get(name, "")))
        if len(was) != len(now):
            return None
        subject = ""
        for one, other in zip(was, now, strict=True):
            if one == other:
                subject = one if WORD.fullmatch(one) else subject
            elif VALUE.fullmatch(one) and VALUE.fullmatch(other):
                found.append((subject, one, other))
            else:
                return None
    return found


TURNS = lazy_regex(
    r"\b(?:return|if|unless|else|try|except|catch|rescue|pass|skip\w*|and|or|break|continue)\b"
    r"|[|]{2}|&&|\?|!(?!=)|\bnot\b"
)
"""By which a test asks only sometimes, or asks for something else."""


def has_same_values(before: str, after: str) -> bool:
    """Whether a test has just the values that it had, and asks at all."""
    was, now = (VALUE.findall(PARAMETER_NAMES.sub("", text)) for text in (before, after))
    old, new = (Counter(TURNS.findall(VALUE.sub("", text))) for text in (before, after))
    return Counter(was) == Counter(now) and new <= old and bool(ASKS.search(VALUE.sub("", after)))


def _only_asks_for_errors(text: str, wanted: str) -> bool:
    """Whether a test asks for nothing but that errors are raised which people want.

    Whatever else it hands over, or wants their message to say, makes it ask for more.
    """
    errors = [hit["error"] for hit in RAISES.finditer(text)]
    rest = VALUE.sub("", RAISES.sub("", text))
    return bool(errors) and not ASKS.search(rest) and all(_is_stated(n, wanted) for n in errors)


def hands_over_more(
    before: str,
    after: str,
    wanted: str,
    gone: Collection[str] = (),
    kit: Collection[str] = (),
) -> bool:
    """Whether a test has all its words yet, and between them only names and values that are stated.

    `check({"id": 1})` becomes `check({"id": 1, "currency": "EUR"})`. A value may also be one that
    the product gave up (`gone`): what it took by itself is handed over. What an assertion takes, a
    name that is no code of the project (`kit`), or the test's own head, makes it ask for less.
    """
    old, new = TOKEN.findall(before), TOKEN.findall(after)
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    head = TOKEN.findall(after.rpartition("\n")[2])[0]

    def is_handed_over(at: int) -> bool:
        word, behind = new[at], [*new[at + 1 : at + 3], "", ""]
        is_key = WORD.fullmatch(word) and (behind[0] == ":" or behind[0] == "=" != behind[1])
        return word in (",", ":", "=") or bool(
            ((VALUE.fullmatch(word) or is_key) and _is_stated(word, wanted))
            or (VALUE.fullmatch(word) and word in gone)
        )

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


def adapts_snapshots(before: bytes, after: bytes, language: str) -> bool:
    """Whether the tests that a file had differ by nothing but the inline snapshots in them."""
    old, new = definitions(before, language), definitions(after, language)
    pairs = [(_dense(text), _dense(new.get(name, ""))) for name, text in old.items()]
    return all(was == now or differs_by_snapshots(was, now) for was, now in pairs)


def _dense(text: str) -> bytes:
    """A test without the blanks around brackets and dots that `definitions` sets."""
    return to_bytes(re.sub(r"\s*([().])\s*", r"\1", text))


def with_guarded_imports(source: bytes, language: str) -> bytes | None:
    """The text with imports that may fail, so that tests which need none of them still run.

    None where the language knows no such thing; only Python does.
    """
    if language != "python" or (places := places_of_imports(source, language)) is None:
        return None
    edits = [Edit(start, end, _guarded(text)) for start, end, text in places]
    return applied(source, edits)


def _guarded(text: str) -> str:
    """Import statements of Python in which each name by itself may be missing."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return text
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in node.names:
                one = ast.unparse(
                    ast.Import([name])
                    if isinstance(node, ast.Import)
                    else ast.ImportFrom(node.module, [name], node.level)
                )
                lines.append(f"try:\n    {one}\nexcept ImportError:\n    pass")
    return "\n".join(lines)


def _beside_tests(source: bytes, language: str) -> list[str]:
    """The words of a file without its tests and imports."""
    parsed = parse(source, language)
    if parsed is None:
        return []
    ranges = [(one.span.start, one.span.end) for one in standing(parsed)]
    ranges += [(start, end) for start, end, _ in places_of_imports(source, language) or ()]
    text = bytearray(source)
    for start, end in ranges:
        text[start:end] = b" " * (end - start)
    return [word for word in text.decode("utf-8", "replace").split() if word not in (";", ",")]


def _unstated(before: str, after: str, asked: WantedValues) -> bool:
    """Whether a test lost or got a value that is not stated in what is wanted.

    "5 retries" explains what `"retries": 3` lost when it became `"retries": 5`.
    """
    before, after = (PARAMETER_NAMES.sub("", text) for text in (before, after))
    was, now = (Counter(VALUE.findall(text)) for text in (before, after))
    wanted = asked.text
    if hands_over_more(before, after, wanted, asked.gone):
        return False
    bounds = [Counter(BOUND.findall(text)) for text in (before, after)]
    if bounds[1] - bounds[0] and not LIMITS.search(wanted):
        return True  # it asks for less than a value
    explained, extra = _other_rows(before, after, wanted, asked.gone)
    for lost, got in (
        _written_otherwise(was - now, now - was),
        renamed_arguments(TOKEN.findall(before), TOKEN.findall(after), wanted),
        _following(before, after, asked),
    ):
        explained, extra = explained + lost, extra + got
    if _only_asks_for_errors(after, wanted):
        extra += now
    if not was - now - explained:  # that there is no error may be asked beside what was asked
        extra += Counter({one: now[one] for one in NOTHING})
    if any(not _is_stated(value, wanted) for value in now - was - extra):
        return True
    lost = Counter({value: n for value, n in (was - now).items() if not _is_stated(value, wanted)})
    return bool(lost - _replaced(before, after, wanted) - explained)


def _written_otherwise(lost: Counter[str], got: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """Count values that are the same in another form: `119.0` and `"119.00"`, or a message of the
    test with one more place in it."""
    other = {_meaning(value): value for value in got}
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


def _is_stated(value: str, wanted: str) -> bool:
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
            named = _is_stated(subject.casefold(), wanted.casefold())  # `vat` is the VAT
            found[was] += _is_stated(now, wanted) and named
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
    stated = [_is_stated(now, wanted) for now in after]
    return (any(same) or all(stated)) and all(
        kept
        or (
            (_is_stated(now, wanted) or (same[-1] and _is_beside(now, wanted)))
            and _is_explained(was, wanted, given_up)
        )
        for kept, was, now in zip(same, before, after, strict=True)
    )


def _is_explained(value: str, wanted: str, given_up: Collection[str]) -> bool:
    """Whether a value, or each number in a text, is stated or a limit that the product lost."""
    if _is_stated(value, wanted) or value in given_up:
        return True
    numbers = re.findall(r"\d+", value)
    limits = " ".join(given_up)
    return bool(numbers) and all(
        _is_stated(one, wanted) or one in given_up or _is_beside(one, limits) for one in numbers
    )


def _is_beside(value: str, text: str) -> bool:
    """Whether a text has the number before or after this one."""
    return value.isdecimal() and any(_is_stated(str(int(value) + step), text) for step in (-1, 1))


def reworded(before: str, after: str, wanted: WantedValues) -> bool:
    """Whether a test differs by nothing but texts that changed as `wanted` states.

    "It says "Unkown option", should be "Unknown option"" explains a test that expects the other
    word, and "shows `[ ]` before each" one that expects `1. [ ] buy milk`. A list may grow by what
    the product's own list grew by, and a value may be wrapped in a type that the requirements name.
    """
    old, new = WORD_OR_TEXT.findall(before), WORD_OR_TEXT.findall(after)
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    open_wraps = 0
    for tag, a, b, c, d in changes:
        was, now = old[a:b], new[c:d]
        if tag == "equal":
            continue
        if tag == "replace" and len(was) == len(now):
            if not all(_exchanged(*pair, wanted) for pair in zip(was, now, strict=True)):
                return False
        elif tag == "insert" and now == [")"] * len(now) and open_wraps >= len(now):
            open_wraps -= len(now)
        elif tag == "insert" and (wrapped := _wrap(now, wanted.text)):
            open_wraps += wrapped
        elif tag != "insert" or not _grows(now, wanted):
            return False
    return open_wraps == 0 and any(tag != "equal" for tag, *_ in changes)


def _exchanged(was: str, now: str, wanted: WantedValues) -> bool:
    """Whether a text may stand in the place of another one."""
    if was == now:
        return True
    if not (_is_text(was) and _is_text(now)) or max(len(was), len(now)) > LONGEST:
        return False
    if _is_stated_otherwise(now.strip("\"'`"), re.findall(r"\d+", now), wanted.text):
        return False
    old, new = PIECE.findall(was), PIECE.findall(now)
    known = {word for value in wanted.gone for word in re.findall(r"\w+", value)}
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        lost, got = "".join(old[a:b]), "".join(new[c:d]).strip()
        words = re.findall(r"\w+", lost)
        explained = all(word in known or _says(wanted.text, word) for word in words)
        if not got or not _says(wanted.text, got) or not explained:
            return False
    return True


def _wrap(tokens: Sequence[str], wanted: str) -> int:
    """How many brackets a type that the requirements name opens here; 0 where it is none."""
    *name, bracket = tokens if tokens else ("", "")
    text = "".join(name)
    named = WRAPS.fullmatch(text) and _says(wanted, re.split(r"::|\.", text)[-1])
    return 1 if bracket == "(" and named else 0


def _grows(tokens: Sequence[str], wanted: WantedValues) -> bool:
    """Whether a list got elements that the product's got, and that somebody asked for."""
    values = [one.strip("\"'") for one in tokens if _is_text(one)]
    come = {value.strip("\"'") for value in wanted.come}
    return tokens.count(",") == len(values) == len(tokens) / 2 and all(
        one in come and (one in wanted.stems or _says(wanted.text, one)) for one in values
    )


def _is_text(token: str) -> bool:
    return len(token) > 1 and token[0] in "\"'"


def _says(wanted: str, text: str) -> bool:
    return bool(text) and has_word(text, wanted)


def follows_a_text(was: str, now: str, wanted: WantedValues) -> bool:
    """Whether a value follows a text that the product gave up for another one.

    What the product puts into the text has to be the same in both, and the new text may have no
    word that the old one and what is wanted lack.
    """
    before, after = was.strip("\"'`"), now.strip("\"'`")
    if max(len(before), len(after)) > LONGEST_TEXT:
        return False
    filled_before = [
        (text, parts)
        for text in [*wanted.gone][:MOST_TEXTS]
        if (parts := _filling(text, before)) is not None
    ]
    if not filled_before:
        return False
    known = {word.casefold() for word in LETTERS.findall(wanted.text)}
    for text in [*wanted.come][:MOST_TEXTS]:
        parts = _filling(text, after)
        if parts is None or _is_stated_otherwise(after, parts, wanted.text):
            continue
        words = {word.casefold() for word in LETTERS.findall(GAP.sub(" ", text))}
        for other, same in filled_before:
            own = {word.casefold() for word in LETTERS.findall(GAP.sub(" ", other))}
            if Counter(parts) == Counter(same) and words <= known | own:
                return True
    return False


def _is_stated_otherwise(value: str, parts: Sequence[str], wanted: str) -> bool:
    """Whether people state another text with the same in its gaps: "1 file found" and no "1 files
    found"."""
    stated = {"".join(one) for one in QUOTED.findall(wanted)} if parts else set()
    return not any(one in value for one in stated) and any(
        all(has_word(part, one) for part in parts)
        and SequenceMatcher(None, one, value).ratio() > ALIKE
        for one in stated
    )


def _filling(text: str, value: str) -> list[str] | None:
    """What a value has in the gaps of a text; None where it is not made of that text."""
    bare = text.strip("\"'`")
    pieces = GAP.split(bare)
    touching = any(not one for one in pieces[1:-1])
    if len(bare) > LONGEST_TEXT or len(pieces) - 1 > MOST_GAPS or touching:
        return None
    if len(pieces) < 2 or not any(LETTERS.search(one) or one.strip() for one in pieces):
        return None
    pattern = "(.+?)".join(re.escape(one) for one in pieces)
    hit = re.fullmatch(pattern, value, re.DOTALL)
    return list(hit.groups()) if hit else None


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
