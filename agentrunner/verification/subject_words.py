"""What tests are about, as words: their names, their texts, and the changed code that they use.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import content_words
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.context import definitions_in
from agentrunner.verification.syntax.definitions import definition
from agentrunner.verification.syntax.languages import language_of, parse
from agentrunner.verification.syntax.words import identifiers

STEM = 6
"""How many first letters two words of one stem share."""
SHORT_STEM = 4
MOST_WORDS = 200
MOST_FILES = 40
NUMBER = lazy_regex(r"(?<![\w.])\d{2,}(?![\w])")
RED_TESTS = lazy_regex(
    r"(?i)\b(?:fail\w*|broken|red|green|pass\w*|flaky)\W+(?:\w+\W+){0,3}?(?:tests?|suite|build|ci)\b"
    r"|\b(?:tests?|suite|build|ci)\W+(?:\w+\W+){0,6}?(?:fail\w*|broken|red|green|pass\w*)\b"
)
"""Words about red tests: where people ask for that, any red test was asked for."""
FEW_WORDS = 2
"""With fewer words, as in "Make it work", no test is said to be about something else."""
ENGLISH = frozenset("the there this that these are and with from should when which its".split())
"""Words that English texts have, and texts in related languages do not."""
NAME = lazy_regex(r"[A-Za-z_]\w+")


def about(name: str, path: str, read: ReadFile, changed: Collection[str]) -> list[str]:
    """Words that say what a test is about, with the names of code that it uses; at most 200.

    They come from its name, its file's name and its text (the whole file where the test cannot be
    found in it), and from what it uses by name out of the files `changed`.
    """
    source, language = read(path) if path else None, language_of(path) if path else None
    text = definition(source, language, name) if source is not None and language else None
    if text is None:
        text = (source or b"").decode("utf-8", "replace")[:20_000]
    names = set(NAME.findall(text))
    used = [_defined(one, read, names) for one in sorted(changed)[:MOST_FILES]]
    first = _words(f"{name} {path.rsplit('/', 1)[-1]}") + _words(text)
    return list(dict.fromkeys([*first, *_words("\n".join(used))]))[:MOST_WORDS]


def shares_a_word(words: Iterable[str], wanted: str) -> bool:
    """Whether any form of these words stands in what was asked for; true where that is empty."""
    asked = set(_words(wanted))
    return not asked or any(_is_same(word, other) for word in words for other in asked)


def is_about_something(wanted: str) -> bool:
    """Whether the text of what people ask for says enough that a test can be about something else.

    Code has English words: a text in another language cannot be compared with it.
    """
    english = not ENGLISH.isdisjoint(re.findall(r"[a-z]+", wanted.casefold()))
    foreign = any(one.isalpha() and not one.isascii() for one in wanted)
    return (
        english
        and not foreign
        and RED_TESTS.search(wanted) is None
        and len(_words(wanted)) >= FEW_WORDS
    )


class Own:
    """For several texts: the words that one of them has and none of the others."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = [set(_words(text)) for text in texts]
        self._code = [
            identifiers(text) | {one for one in NAME.findall(text) if _is_name(one)}
            for text in texts
        ]

    def words(self, number: int) -> set[str]:
        """The words of one text that no other text has in any form."""
        others = self._words_of_others(self._words, number)
        return {
            word
            for word in self._words[number]
            if not any(_is_same(word, other) for other in others)
        }

    def code(self, number: int) -> set[str]:
        """The identifiers of one text that no other text has."""
        return self._code[number] - self._words_of_others(self._code, number)

    @staticmethod
    def _words_of_others(each: Sequence[set[str]], number: int) -> set[str]:
        return {word for at, one in enumerate(each) if at != number for word in one}


def has_any(words: Iterable[str], wanted: Collection[str]) -> bool:
    """Whether any of these words is one of `wanted`, in any form of it."""
    return any(_is_same(word, other) for word in words for other in wanted)


def _words(text: str) -> list[str]:
    """Content words in their base form, numbers, and names of code as they are written."""
    return sorted(content_words(text)) + sorted(
        {*NUMBER.findall(text), *(one for one in NAME.findall(text) if _is_name(one))}
    )


def _is_name(word: str) -> bool:
    """Whether a word is spelt like code: with an underscore, or with a capital inside."""
    return "_" in word.strip("_") or bool(re.search(r"[a-z][A-Z]", word))


def _is_same(one: str, other: str) -> bool:
    """Whether two words are equal or have the same stem."""
    if one == other:
        return True
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) < SHORT_STEM or not shorter.isalpha():
        return False
    return longer.startswith(shorter) or (one[:STEM] == other[:STEM] and len(shorter) >= STEM)


def _defined(path: str, read: ReadFile, names: Collection[str]) -> str:
    """The text of what a file defines under one of these names."""
    source, language = read(path), language_of(path)
    if source is None or language is None or (parsed := parse(source, language)) is None:
        return ""
    found = {node.id: node for name, node in definitions_in(parsed) if name in names}
    return "\n".join(parsed.text(node) for node in found.values())
