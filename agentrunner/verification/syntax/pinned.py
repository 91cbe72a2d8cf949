"""Find code that asks for the very literals of tests, which nothing else speaks of. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from functools import cached_property

from msgspec import Struct, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.comparisons import Comparison, comparisons, literals
from agentrunner.verification.syntax.edits import Edit, changed_lines
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.regions import regions_of_tests, without_regions
from agentrunner.verification.syntax.tokens import Value, lexical_family, number

COMMON = frozenset({"0", "1", "-1"})
"""Numbers that any code may compare with."""
COMPUTED = lazy_regex(
    r"[\w)\]] (?:[%&^*]|<<|>>) |(?i:(?<![a-z])(?:len|length|size|typeof|sizeof|strlen)(?![a-z]))"
)
"""A remainder, a length or a type is no value of a test's own."""
MORE_NUMBERS = 3
"""A table of so many numbers more than the tests ask for knows what they are."""
ALIKE = 3
"""So many letters and digits in a row are no chance."""
AS_NUMBER = lazy_regex(r"[-+]?\d+(?:[.,:/-]\d+)*")
AS_WORD = lazy_regex(r"[A-Za-z_][\w.-]*")
OTHERWISE = lazy_regex(
    r"(?i)\b(?:(?:any|all) others?|(?:any|every)thing else|otherwise)\b|それ以外|その他"
)
"""What is to be where none of the words holds that a text tells: these are all that there are."""
HOST = lazy_regex(r"\w://(?:[^/@\s]*@)?([\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,})")
"""The host of an address: one that the tests alone know is a literal of theirs."""


class Pinned(Struct, frozen=True):
    """A literal that a change compares with and that only tests know."""

    value: Value
    line: int
    """Where it stands first, counted from 1."""
    edits: tuple[Edit, ...]
    """What makes it another literal, wherever the change compares with it."""
    answer: Value | None = None
    """The literal that alone is chosen by it."""

    @property
    def shown(self) -> str:
        """The literal with its answer, for messages."""
        return shown(self.value) + (f" ({shown(self.answer)})" if self.answer else "")


class KnownToTests(Struct, frozen=True, dict=True):
    """The literals of tests."""

    values: frozenset[Value] = frozenset()
    parts: frozenset[str] = field(default_factory=frozenset)
    """Words of their strings that are numbers, as in `parse("2024-05-01 1.15")`, and hosts."""

    @classmethod
    def of(cls, sources: Iterable[tuple[str, bytes]]) -> KnownToTests:
        """Collect the literals of files, given with their paths."""
        values: set[Value] = set()
        for path, source in sources:
            # Of data, such as JSON or CSV, numbers and quoted texts look as in any code.
            values.update(literals(source, lexical_family(path, source) or "script"))
        texts = [text for kind, text in values if kind == "string"]
        numbers = {word for text in texts for word in text.split() if AS_NUMBER.fullmatch(word)}
        hosts = {host for text in texts for host in HOST.findall(text)}
        return cls(frozenset(values), frozenset(numbers | hosts))

    @cached_property
    def strings(self) -> str:
        """All their strings, one after another."""
        return "\0".join(text for kind, text in self.values if kind == "string")

    def __contains__(self, value: Value) -> bool:
        if value[1] in self.parts:
            return True
        return value in self.values or (value[0] == "string" and number(value[1]) in self.values)


def pinned(
    path: str,
    before: bytes | None,
    after: bytes,
    tested: KnownToTests,
    asked: str,
    known: str = "",
    *,
    rules: str | None = None,
    only_pairs: bool = False,
) -> list[Pinned]:
    """Return the literals of tests that the changed lines of a file compare with, each once.

    Left out are common ones, those that `asked` or `known`, the text of old code, mention, and
    words of which the change knows more than the tests do, as a table of units does, and numbers
    of which it knows several more. One that
    `asked` mentions counts where a literal of the tests is its answer that nothing mentions, and
    where it is that of an example with the answer: `rules` is what `asked` says besides its
    examples. With `only_pairs` only literals with such an answer count.
    """
    rules = asked if rules is None else rules
    added = compared_anew(path, before, after)
    known += without_regions(before or b"", language_of(path)).decode("utf-8", "replace")
    by_value: dict[Value, list[Comparison]] = {}
    for one in added:
        new = one.value in tested and not mentions(known, one.value)
        new = new and not _is_host_of(asked, one.value, tested)
        if new and (
            _is_pair_of_example(one, asked, rules)
            or (not only_pairs and _is_unasked(one, tested, asked, known))
        ):
            by_value.setdefault(one.value, []).append(one)
    used = (
        tested.values.union(literals(after, lexical_family(path, after) or ""))
        if by_value
        else set()
    )
    others = {
        (one.subject, one.value)
        for one in added
        if one.value not in tested and not mentions(asked + known, one.value)
    }
    more = Counter(subject for subject, _ in others)
    return [
        Pinned(value, where[0].line, _edits(after, where, used), where[0].answer)
        for value, where in by_value.items()
        if not any(
            more[one.subject] >= (1 if AS_WORD.fullmatch(value[1]) else MORE_NUMBERS)
            for one in where
        )
    ]


def compared_anew(path: str, before: bytes | None, after: bytes) -> list[Comparison]:
    """Return the comparisons with literals that are not common, on changed lines outside tests."""
    family = lexical_family(path, after)
    found = comparisons(after, family) if family is not None else []
    found = [one for one in found if not is_common(one.value) and not COMPUTED.search(one.subject)]
    if not found:
        return []
    lines, inside = changed_lines(before, after), regions_of_tests(after, language_of(path))
    return [
        one
        for one in found
        if one.line in lines and not any(region.holds(one.start) for region in inside)
    ]


def compared_values(path: str, source: bytes) -> set[Value]:
    """Return the values that a file compares with."""
    family = lexical_family(path, source)
    return {one.value for one in comparisons(source, family)} if family is not None else set()


def is_common(value: Value) -> bool:
    """Whether a value is so common that it says nothing: 0, 1, a character, a sign or two."""
    kind, text = value
    if kind == "number":
        return text in COMMON
    return len(text) < 2 or (len(text) == 2 and text.isascii() and not text.isalnum())


def mentions(text: str, value: Value) -> bool:
    """Whether a text mentions a value, a number as such and a string in any letters."""
    kind, content = value
    if kind == "number" or AS_NUMBER.fullmatch(content):
        bare = content.lstrip("+-")
        return re.search(rf"(?<![\d.]){re.escape(bare)}(?!\d|\.\d)", text) is not None
    return content.casefold() in text.casefold()


def have_letters_in_common(text: str, answer: str) -> bool:
    """Whether two texts have a run of letters and digits in common, whatever stands between."""
    first, second = (
        "".join(char for char in one.casefold() if char.isalnum()) for one in (text, answer)
    )
    same = SequenceMatcher(None, first, second, autojunk=False).find_longest_match()
    return same.size >= ALIKE


def is_choice(text: str, rules: str) -> bool:
    """Whether a text is a single word, and the requirements say what others are to give."""
    return AS_WORD.fullmatch(text) is not None and OTHERWISE.search(rules) is not None


def _is_host_of(asked: str, value: Value, tested: KnownToTests) -> bool:
    """Whether a value is a host, part of the tests' addresses, whose owner a text names."""
    is_host = value[1] in tested.parts and not AS_NUMBER.fullmatch(value[1])
    labels = value[1].split(".")[:-1] if is_host else []
    return any(len(label) > 3 and mentions(asked, ("string", label)) for label in labels)


def shown(value: Value) -> str:
    """Return a value as messages show it."""
    return value[1] if value[0] == "number" else f'"{value[1]}"'


def _is_unasked(one: Comparison, tested: KnownToTests, asked: str, known: str) -> bool:
    """Whether nobody asked for a literal, or for the answer that a number is the key to."""
    answer = one.answer
    return not mentions(asked, one.value) or (
        answer is not None
        and AS_NUMBER.fullmatch(one.value[1]) is not None
        and not is_common(answer)
        and answer in tested
        and not mentions(asked + known, answer)
    )


def _is_pair_of_example(one: Comparison, asked: str, rules: str) -> bool:
    """Whether a literal stands with the answer that code would work out from it.

    That is a number of an example, and what has letters or digits in common with its answer. A
    single word, or a number that stands in its answer as it is, may be a choice; and what no
    example has, such as `image/jpg`, unless it is a number or words that nobody mentions.
    """
    text, answer = one.value[1], one.answer
    is_number = AS_NUMBER.fullmatch(text) is not None
    is_given, is_rule = mentions(asked, one.value), mentions(rules, one.value)
    if answer is None:
        return False
    is_example = is_given and not is_rule
    if is_example and is_number:
        return True
    is_example = is_example and not is_choice(text, rules)
    may_choose = AS_WORD.fullmatch(text) is not None or text in answer[1]
    if not is_example and (may_choose or not (is_number or (" " in text and not is_rule))):
        return False
    return have_letters_in_common(text, answer[1])


def _edits(source: bytes, where: Sequence[Comparison], used: Collection[Value]) -> tuple[Edit, ...]:
    return tuple(
        Edit(
            one.start,
            one.end,
            other_literal(source[one.start : one.end].decode("latin-1"), one.value, used),
        )
        for one in where
    )


def other_literal(text: str, value: Value, used: Collection[Value] = ()) -> str:
    """Return the text of another literal of the same kind, which is not used."""
    if value[0] == "string":
        end = re.search(r"(\"\"\"|'''|[\"'`])#*$", text)
        assert end is not None
        if len(value[1]) == 1:  # it may be a character, of which there is only one
            return text.replace(value[1], "q" if value[1] != "q" else "z")
        return (f"{text[: end.start()]}q{text[end.start() :]}").encode("latin-1").decode("utf-8")
    amount = float(value[1])
    for step in (1, -1, 2, -2, 3, 5, 7, 11):
        other = number(repr(amount + step))
        if other is not None and other not in used and not is_common(other):
            return other[1]
    return f"{value[1]}7"
