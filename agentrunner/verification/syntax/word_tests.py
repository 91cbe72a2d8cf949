"""Find tests by name and make them fail, in languages without a grammar here, by patterns. Pure.

A test is the line with its name plus the lines indented deeper below it: PHPUnit methods, RSpec and
Minitest blocks, Test::More statements, GoogleTest macros, Gherkin scenarios.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.results.names import BRACKETED, own_name
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.languages import KILLS, language_of, parse, program_language
from agentrunner.verification.syntax.test_finder import fitting

QUOTED = lazy_regex(r"'(?:[^'\\\n]|\\.)+'|\"(?:[^\"\\\n]|\\.)+\"")
VALUE = lazy_regex(
    r"""'[^'\\$\n]*'|"[^"\\$#\n]*"|(?<![\w.$@#])-?\d+(?:\.\d+)?(?![\w.])|\\?\b[A-Z][\w\\]*::class\b"""
)
EQUAL = lazy_regex(
    r"(?i)\bassert_?\w*(?:same|equal|count)\w*\b|\b(?:eq|eql|is|is_deeply)\b(?=[ (])"
    r"|\b(?:expect|assert)_\w*eq\b(?=\()"
    r"|(?<![=!<>])={2,3}(?![=~>])"
)
"""Signs that a statement compares two things for equality."""
ASSIGNS = lazy_regex(r"\s*(?:(?:my|our|local|var|val|let)\s+)?[$@%]?[\w.>-]++\s*[-+|]*=(?![=~>])")
COMMAND = lazy_regex(r"\s*\w+[ ]+(?![-+*/=<>&|?.]\s|=|\{|do\b)")
"""A call without brackets, so that any call inside it is a nested call."""
CONTRARY = lazy_regex(r"(?i)\bnot|not\b|refute|isnt|unlike|unless|assert_?(?:not|false|null)|[!]")
BEFORE = lazy_regex(r"[\w)\]'\"]\s*(?:[-+*/%]|\.(?!\d))\s*$")
AFTER = lazy_regex(r"\s*(?:[-+*/%]|\.\s*(?=[\w$'\"]))")
"""Text before and after a value that combines it with another one into a third."""
GTEST = lazy_regex(r"(?m)^[^\S\n]*(?:TYPED_)?TEST(?:_[FP])?\s*\(\s*\w+\s*,\s*\w+\s*\)")
FOLLOWS = lazy_regex(r"<<[<~-]?\s*['\"]?([A-Za-z_]\w*)")
THEN = lazy_regex(r"\s*Then\b")
COMMENT = lazy_regex(r"\s*(?:#|//|\*|/\*)")
MOST_SPANS = 4
"""The most places considered for one test if its name occurs in a file more than once."""


class Statement(Struct, frozen=True):
    """A statement of a test that holds an expected value."""

    edits: tuple[Edit, ...]
    """The edits that make it expect another value."""
    at: int
    """The offset at which another statement can be inserted before it."""
    sure: bool
    """Whether it asserts equality with that value, so that expecting another value has to fail."""


class WordTest(Struct, frozen=True):
    """A test found by patterns."""

    line: int
    """The line with its name, counted from 1."""
    statements: tuple[Statement, ...]
    end: Edit | None
    """The edit that puts a failing statement at its end; None if that is not possible."""


def tests_by_words(source: bytes, path: str, name: str, line: int | None) -> list[WordTest]:
    """Return the places in a file that can be the test with this reported name; [] for none.

    `line` is where the tool says the test is, for a name that does not occur in the file.
    """
    text = source.decode("latin-1")  # one character per byte, so offsets are those of the source
    lines = text.split("\n")
    bare = BRACKETED.sub("", to_bytes(name).decode("latin-1"))
    starts = _by_definition(lines, own_name(bare)) or _by_macro(lines, bare)
    starts = starts or _by_title(lines, bare)
    if not starts and line is not None and 0 < line <= len(lines):
        starts = [line - 1]
    return [_test(lines, start, path, bare) for start in starts[:MOST_SPANS]]


def number_of_definitions(source: bytes, path: str, name: str) -> int:
    """How many tests in a file, in any language, can be the one with this reported name.

    Some tools run only the last definition.
    """
    language = language_of(path)
    if language is None:
        return len(tests_by_words(source, path, name, None))
    parsed = parse(source, language)
    return 0 if parsed is None else sum(one.is_test for one in fitting(parsed, name))


def _by_definition(lines: Sequence[str], own: str) -> list[int]:
    """Return the indexes of lines that define a function of this name: `function testTotal(`."""
    own = own.rpartition("#")[2]
    if not re.fullmatch(r"\w+", own):
        return []
    defined = re.compile(
        rf"^\s*(?:[\w\[\]<>]+\s+)*(?:function|def|sub|fun|func|void|Task)\s+{own}\b"
    )
    return [at for at, line in enumerate(lines) if defined.match(line)]


def _by_macro(lines: Sequence[str], name: str) -> list[int]:
    """Return the indexes of lines with the GoogleTest macro: `TEST_F(CartTest, Sums)`."""
    suite, _, own = name.partition(".")
    own = own.partition("/")[0]
    suites = "|".join(part for part in suite.split("/") if re.fullmatch(r"\w+", part))
    if not suites or not re.fullmatch(r"\w+", own):
        return []
    declared = re.compile(rf"\s*(?:TYPED_)?TEST(?:_[FP])?\s*\(\s*(?:{suites})\s*,\s*{own}\s*\)")
    return [at for at, line in enumerate(lines) if declared.match(line)]


def _by_title(lines: Sequence[str], name: str) -> list[int]:
    """Return the indexes of lines with the longest title the name ends with: `it("counts")`."""
    best, found = 0, list[int]()
    for at, line in enumerate(lines):
        titles = [hit[0][1:-1] for hit in QUOTED.finditer(line)]
        titles += re.findall(r"^\s*(?:Scenario(?: Outline)?|Example):\s*(.*?)\s*$", line)
        for title in titles:
            size = len(title)
            ends = name.endswith(title) and not name[: len(name) - size][-1:].isalpha()
            if ends and size >= best:
                found = [*found, at] if size == best else [at]
                best = size
    return [_statement_start(lines, at) for at in found]


def _statement_start(lines: Sequence[str], at: int) -> int:
    """Return the index of the line on which the statement that continues on line `at` begins."""
    depth = 0
    for index in range(at, max(at - 20, -1), -1):
        line = lines[index]
        text = QUOTED.sub("", line[: line.find(")")] if index == at and ")" in line else line)
        depth += text.count("(") - text.count(")")
        if depth > 0 and index < at:
            return index
        if index == at and depth > 0:
            return at
        if index < at and (
            line.rstrip().endswith((";", "{", "}", "do", "end")) or not line.strip()
        ):
            return at
    return at


def killing(path: str, source: bytes, at: int) -> tuple[Edit, Edit] | None:
    """Return an edit that kills the process at a place, and one that inserts a no-op there."""
    language = program_language(path, source)
    if not language:
        return None
    return Edit(at, at, f" {KILLS[language]}; "), Edit(at, at, f" {NOTHING.get(language, '1')}; ")


NOTHING = {"php": "true", "sh": ":", "lua": "local _ = 1"}
"""The no-op statement of languages in which it is not `1`."""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _next_line(lines: Sequence[str], at: int) -> int:
    """Return the index after this line, and after the here-document it announces (`<<"END"`)."""
    if hit := FOLLOWS.search(lines[at]):
        for index in range(at + 1, len(lines)):
            if lines[index].strip().rstrip(";") == hit[1]:
                return index + 1
    return at + 1


def _extent(lines: Sequence[str], start: int) -> tuple[int, int]:
    """Return the start and end index of a body: the lines that are indented deeper."""
    depth, at = _indent(lines[start]), start + 1
    if lines[start].rstrip().endswith(("(", ",")):  # one statement over several lines
        return start, next(iter(_statements(lines, start, len(lines))))[1]
    while at < len(lines) and lines[at].strip() in ("{", ""):
        if lines[at].strip() == "{" and _indent(lines[at]) != depth:
            break
        at += 1
    first = at
    while at < len(lines) and (not lines[at].strip() or _indent(lines[at]) > depth):
        at = _next_line(lines, at)
    return (first, at) if at > first else (start, start + 1)


CALLED = lazy_regex(r"(?:[\w)\]]|\w[?!])$")
"""What stands before the brackets of a call; names in Ruby may end in a question: `over?(3)`."""
INNER = lazy_regex(r"(?:\s*def\s[^;]*;|.*?(?:\{|\bdo\b))(?:[ ]*\|[^|]*\|)?")
"""What precedes the body in a line that contains the body as well."""


def _test(lines: Sequence[str], start: int, path: str, name: str) -> WordTest:
    first, behind = _extent(lines, start)
    while behind > first + 1 and not lines[behind - 1].strip():
        behind -= 1
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    on_one_line = first == start  # the body is on the line of the name, or there is none
    statements = []
    if path.endswith(".feature"):  # what precedes `Then` is given, not expected
        first = next((at for at in range(first, behind) if THEN.match(lines[at])), first)
    for begin, end in _statements(lines, start if on_one_line else first, behind):
        text = "\n".join(lines[begin:end])
        edits = tuple(
            Edit(offsets[begin] + at, offsets[begin] + to, changed_value(text[at:to]))
            for at, to in _expected(text, name, path)
        )
        if not edits or ASSIGNS.match(text):
            continue
        at = offsets[begin] + _indent(lines[begin])
        if inner := (INNER.match(text) if on_one_line else None):
            at = offsets[begin] + inner.end()
        bare = QUOTED.sub('""', text)
        statements.append(
            Statement(edits, at, bool(EQUAL.search(bare)) and not CONTRARY.search(bare))
        )
    at, ending = _end_of(lines, offsets, first, behind, on_one_line=on_one_line)
    failing = _failing_statement(path, "\n".join(lines))
    made = Edit(at, at, f"{ending}{failing}\n") if failing and at >= 0 else None
    return WordTest(start + 1, tuple(statements), made)


def _end_of(
    lines: Sequence[str], offsets: Sequence[int], first: int, behind: int, *, on_one_line: bool
) -> tuple[int, str]:
    """Return where a statement goes at a body's end, and the text before it; -1 for nowhere."""
    if not on_one_line:
        return offsets[behind], lines[behind - 1][: _indent(lines[behind - 1])]
    closing = re.match(rf"{INNER.pattern}.*?(\}}|;?\s*\bend\b)\s*\)?;?\s*$", lines[first])
    return (offsets[first] + closing.start(1), "\n") if closing else (-1, "")


def _failing_statement(path: str, text: str) -> str:
    """Return a statement that must fail, in the framework's own equality; "" if none is known."""
    if path.endswith("_spec.rb") or ("RSpec" in text and path.endswith(".rb")):
        return 'expect("made").to eq("to fail")'
    if path.endswith(".rb"):
        return 'assert_equal "made", "to fail"'
    if path.endswith(".php") and "assert" in text:
        return '$this->assertSame("made", "to fail");'
    if program_language(path, text.encode("latin-1")) == "c" and GTEST.search(text):
        return "EXPECT_EQ(1, 2);"
    if posixpath.splitext(path)[1] == ".feature":
        return "Then this test has to fail at its end"
    return ""


def _statements(lines: Sequence[str], first: int, behind: int) -> Iterator[tuple[int, int]]:
    """Yield a body's statements as line ranges; a statement continues while brackets are open."""
    at = first
    while at < behind:
        end, depth = at, 0
        while end < behind:
            bare = QUOTED.sub('""', lines[end])
            depth += sum(bare.count(one) for one in "([") - sum(bare.count(one) for one in ")]")
            end += 1
            if depth <= 0 and not (end < behind and re.match(r"\s*(?:->|\.\w)", lines[end])):
                break
        if lines[at].strip() and not COMMENT.match(lines[at]):
            yield at, end
        at = end


def _expected(text: str, name: str, path: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the compared values in a statement; of one without equality, any value.

    Left out are arguments of nested calls, the assertion's message, and parts of a sum, where a
    change of one could cancel a change of another.
    """
    says_equal = bool(EQUAL.search(QUOTED.sub('""', text)))
    start, end = _compared(text)
    letters = program_language(path, b"") == "c"
    for hit in VALUE.finditer(text):
        if not (start <= hit.start() and hit.end() <= end):
            continue
        if letters and hit[0][0] == "'":
            continue  # a single character, which no word can replace
        joined = BEFORE.search(text[: hit.start()]) or AFTER.match(text[hit.end() :])
        if joined and says_equal:
            continue
        if hit[0][0] in "'\"" and (len(hit[0]) < 3 or name.endswith(hit[0][1:-1])):
            continue  # an empty text, or the title of the test
        if re.match(r"\s*=>", text[hit.end() :]) or not _is_direct(text[: hit.start()]):
            continue
        yield hit.span()


def _compared(text: str) -> tuple[int, int]:
    """Return the span that a statement compares for equality, all of it if it does not.

    For a call that is its first two arguments, for `==` the argument around it. What follows is the
    message of the assertion.
    """
    bare = QUOTED.sub(lambda one: "_" * len(one[0]), text)
    hit = EQUAL.search(bare)
    if hit is None:
        return 0, len(text)
    if hit[0][0] == "=":
        start = end_of_arguments(bare, hit.start() - 1, step=-1) + 1
        return start, end_of_arguments(bare, hit.end())
    opened = hit.end() + len(bare[hit.end() :]) - len(bare[hit.end() :].lstrip())
    return hit.end(), end_of_arguments(bare, opened + (bare[opened : opened + 1] == "("), 2)


def end_of_arguments(bare: str, at: int, commas: int = 1, *, step: int = 1) -> int:
    """Return where this many arguments end, or where the brackets around them do.

    All of them with 0 `commas`; the end of the text where no bracket closes.
    """
    opening, closing = ("([{", ")]}") if step > 0 else (")]}", "([{")
    depth = 0
    while 0 <= at < len(bare):
        if bare[at] in opening:
            depth += 1
        elif bare[at] in closing:
            depth -= 1
        if depth < 0 or (bare[at] == "," and not depth and commas == 1):
            return at
        commas -= bare[at] == "," and not depth
        at += step
    return at


def _is_direct(before: str) -> bool:
    """Whether what follows is an argument of the outermost call, or an item of a list."""
    calls, stack = int(bool(COMMAND.match(before))), list[tuple[str, bool]]()
    inner = INNER.match(before)
    if inner and before.lstrip().startswith(("def ", "it ", "it(", "test ", "specify ")):
        before, calls = before[inner.end() :], int(bool(COMMAND.match(before[inner.end() :])))
    for hit in re.finditer(r"[(\[{]|[)\]}]", QUOTED.sub(lambda one: "_" * len(one[0]), before)):
        if hit[0] in "([{":
            called = bool(CALLED.search(before[: hit.start()])) and hit[0] != "{"
            stack.append((hit[0], called))
        elif stack:
            stack.pop()
    for opening, called in stack:
        if opening == "[" and called:
            return False
        calls += opening == "(" and called
    return calls <= 1


def changed_value(literal: str) -> str:
    """Return a different literal of the same kind."""
    if literal[0] in "'\"":
        return f"{literal[0]}agentrunner{literal[-1]}"
    if literal.endswith("::class"):
        return "\\ParseError::class"
    whole, dot, rest = literal.partition(".")
    return f"{int(whole) + 1}{dot}{rest}"
