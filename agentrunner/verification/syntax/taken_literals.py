"""Find literals that the work has taken over from tests, and make tests ask with others. Pure.

They are numbers, and strings that hold some, wherever the work has them: in a pair that is
compared, in a joined key, in a table of pairs, in what is handed to a function.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from string import ascii_letters, ascii_lowercase, ascii_uppercase

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.comparisons import lists_of, signed
from agentrunner.verification.syntax.edits import Edit, changed_lines
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.pinned import (
    KnownToTests,
    have_letters_in_common,
    is_common,
    mentions,
    other_literal,
    shown,
)
from agentrunner.verification.syntax.regions import regions_of_tests
from agentrunner.verification.syntax.tokens import Value, lexical_family, number, tokens, value_of

MORE = 2
"""A list or table with so many literals that no test has is real knowledge."""
SMALL = 20
"""Numbers up to this one have others beside them everywhere."""
RUN = lazy_regex(r"(?<![\w.])\d[\d_]*(?:\.\d+)?|\d+")
"""A number in a literal."""
STEPPED = {
    1: str.maketrans(ascii_letters, ascii_lowercase[1:] + "a" + ascii_uppercase[1:] + "A"),
    -1: str.maketrans(ascii_letters, "z" + ascii_lowercase[:-1] + "Z" + ascii_uppercase[:-1]),
}
"""Each letter with the one after it, and the one before."""
PLAIN = lazy_regex(r"\d+(?:\.\d+)?")
"""A number in a name or message, as in `TestGcd/48_18`."""


class TakenLiteral(Struct, frozen=True):
    """A literal of the work that tests have, as a whole or in parts."""

    value: Value
    line: int
    """Counted from 1."""
    edit: Edit
    """What makes it another."""

    @property
    def text(self) -> str:
        """The literal, for messages."""
        return shown(self.value)


def taken_literals(
    path: str,
    before: bytes | None,
    after: bytes,
    tested: KnownToTests,
    known: str,
    answers: Collection[str] = (),
) -> list[TakenLiteral]:
    """Return the literals of tests on changed lines of a file that `known` does not mention.

    They hold numbers, or are `answers` of examples. Left out are common ones, those in a list or
    table with several others that tests do not have, and what stands in tests within the file. What
    is no code is read as a script is.
    """
    if b"\0" in after:
        return []
    family = lexical_family(path, after) or "script"
    read, lines = tokens(after, family), changed_lines(before, after)
    inside = regions_of_tests(after, language_of(path))
    all_of_them = [(at, *signed(read, at)) for at in range(len(read))]
    values = [(at, value, begin) for at, value, begin in all_of_them if value is not None]
    lists = lists_of(after, family)
    others = Counter(
        (opened, value[0])
        for at, value, _ in values
        if not (is_common(value) or _is_of_tests(value, tested, answers))
        for opened in lists[at]
    )
    found = []
    for at, value, begin in values:
        token = read[at]
        if token.line not in lines or is_common(value) or mentions(known, value):
            continue
        if not _is_of_tests(value, tested, answers):
            continue
        if any(opened >= 0 and others[opened, value[0]] >= MORE for opened in lists[at]):
            continue  # of a table that knows more than the tests
        if not any(region.holds(token.start) for region in inside):
            start = read[begin].start
            text = after[start : token.end].decode("latin-1")
            edit = Edit(start, token.end, other_literal(text, value, tested.values))
            found.append(TakenLiteral(value, token.line, edit))
    return found


def _is_of_tests(value: Value, tested: KnownToTests, answers: Collection[str]) -> bool:
    kind, text = value
    if kind == "number":
        return value in tested or not tested.values.isdisjoint(neighbours(text))
    if text in answers and value in tested:
        return True
    if not any(char.isdigit() for char in text) or "\n" in text:
        return False
    if value in tested or text in tested.strings:
        return True
    numbers = _numbers_in(text)
    return len(numbers) > 1 and all(("number", one) in tested for one in numbers)


def neighbours(text: str) -> set[Value]:
    """Return the whole numbers beside one, which bound it: `1233 < a < 1235`."""
    whole = int(text) if text.lstrip("-").isdigit() else 0
    return {("number", str(whole + step)) for step in (1, -1)} if abs(whole) > SMALL else set()


def _numbers_in(text: str) -> set[str]:
    """The numbers of a text that are not common, as `number` writes them."""
    found = (number(hit[0]) for hit in RUN.finditer(text))
    return {one[1] for one in found if one is not None and not is_common(one)}


class NearValues(Struct, frozen=True):
    """Makes tests ask with values near certain literals."""

    strings: frozenset[str]
    numbers: frozenset[str]
    words: Mapping[str, str]
    """Texts that examples hand over, with their answers of the same letters."""

    @classmethod
    def of(
        cls, values: Collection[Value], tested: KnownToTests, examples: Mapping[str, str]
    ) -> NearValues:
        """Of literals that the work has taken over from tests.

        `examples` are texts that examples hand over, with their answers.
        """
        strings = {text for kind, text in values if kind == "string"}
        whole = {one for one in values if one[0] == "number"}
        beside = {near for _, text in whole for near in neighbours(text) if near in tested}
        numbers = {text.lstrip("-") for _, text in whole | beside}
        numbers = numbers.union(*map(_numbers_in, strings))
        words = {
            one: answer
            for one, answer in examples.items()
            if answer in strings and have_letters_in_common(one, answer)
        }
        return cls(frozenset(strings), frozenset(filter(PLAIN.fullmatch, numbers)), words)

    def edits(self, path: str, source: bytes, step: int) -> Iterator[Edit]:
        """Yield what makes a file of tests, or of their data, ask with values `step` away."""
        family = lexical_family(path, source) or "script"
        words = {*self.words, *self.words.values()}
        for token in tokens(source, family):
            if token.kind == "number":
                value = number(token.text)
                if value is None or value[1] not in self.numbers:
                    continue
                if re.match(r"0[xXbBoO]", token.text):
                    yield Edit(token.start, token.end, stepped(value[1], step))
                    continue
                hits = [RUN.match(token.text)]
            elif (value := value_of(token)) and value[1] in words and value[1] in token.text:
                start, asked = token.start + token.text.index(value[1]), value[1]
                yield Edit(start, start + len(asked), stepped_word(asked, step))
                continue
            elif token.kind == "string":
                hits = list(self._in_string(token.text))
            else:
                continue
            for hit in filter(None, hits):
                start = token.start + hit.start()
                yield Edit(start, start + len(hit[0]), stepped(hit[0], step))

    def restored(self, text: str, step: int) -> str:
        """Return a text with the literals in the place of the values that were asked with."""
        for word in (*self.words, *self.words.values()):
            text = text.replace(stepped_word(word, step), word)
        near = {number(stepped(one, step)): one for one in self.numbers}
        return PLAIN.sub(lambda hit: near.get(number(hit[0]), hit[0]), text)

    def _in_string(self, text: str) -> Iterator[re.Match[str]]:
        places = [(at, at + len(one)) for one in self.strings if (at := text.find(one)) >= 0]
        for hit in RUN.finditer(text):
            value = number(hit[0])
            whole = value is not None and value[1] in self.numbers and _stands_alone(text, hit)
            if whole or any(hit.start() < end and start < hit.end() for start, end in places):
                yield hit


def _stands_alone(text: str, hit: re.Match[str]) -> bool:
    """Whether a number in a string is no part of a word."""
    around = text[max(hit.start() - 1, 0) : hit.start()] + text[hit.end() : hit.end() + 1]
    return not any(char.isalnum() or char == "_" for char in around)


def stepped(text: str, step: int) -> str:
    """Return a number that is `step` away, with as many digits behind the point."""
    text = text.replace("_", "")
    _, point, digits = text.partition(".")
    if point:
        return f"{float(text) + step:.{len(digits)}f}"
    return str(abs(int(text) + step)).zfill(len(text) if text[0] == "0" else 0)


def stepped_word(text: str, step: int) -> str:
    """Return a text with each letter `step` away, 1 or -1."""
    return text.translate(STEPPED[step])
