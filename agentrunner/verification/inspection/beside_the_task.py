"""Changes that no word of the requirements speaks of, in code and data that they do not mention.

A worker that does what was asked may do damage elsewhere on the way: an error that is swallowed
now, another default, a lock that is gone. What such a change did is put back, for tests to be
asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone, content_words
from agentrunner.verification.file_names import PAGES
from agentrunner.verification.inputs.changes import is_manifest
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.inspection.collateral import KEPT_ENDINGS, asks_for_less
from agentrunner.verification.inspection.lost_refusals import allows_more
from agentrunner.verification.inspection.restored_lines import CATCHES, LostCode, lost_imports
from agentrunner.verification.inspection.same_functions import Part, same_functions
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.subject_words import is_about_something, shares_a_word
from agentrunner.verification.syntax.edits import Edit
from agentrunner.verification.syntax.refusals import bodies_of, refusals_in
from agentrunner.verification.syntax.tokens import Token, lexical_family, number, tokens

WHAT = {
    "lost": "has lost `{}`",
    "value": "has another value in the place of `{}`",
    "caught": "catches errors that it handed on",
    "dropped": "leaves out an error or a value that it handed on",
}
SENTENCE = "{} {}, and neither the requirements nor the tests need that"
ACTS = lazy_regex(r"(?:(?<=with )|(?<=await ))\w++|\b\w++(?= \()")
"""In the tokens of a source, what is called, held or awaited."""
SETTING = lazy_regex(rb"[\"\w.-]+\s*[:=]\s*(?:true|false|\d+),?")
"""A line of a manifest that is about no other package."""
WORDS = lazy_regex(r"[\"'`][A-Z]?[a-z']*(?:[ ,.:;!?-]+(?:[a-z']+|%[a-z]|\{\w*\}))+[.!?:]*[\"'`]")
"""Plain words for people, of which a call says others now: no query, path or pattern."""
TIMES = lazy_regex(
    r"(?<![\d.])\d+\.\d+\.\d+(?![\d.])|(?i:copyright|\(c\)|©)\D{0,9}\d{4}(?:[-, ]+\d{4})?"
)
"""The version of a release, and the year of a copyright."""
COMMENT = lazy_regex(rb"(?:#+(?![\w!])|//|<!--).*")
"""A line of a file of data that says nothing to programs."""
DISCARDS = {"go": ("_", 1), "rust": ("?", -1)}
"""By which a language throws an error away: more of a sign, or less of it."""
NO_VALUES = frozenset({"true", "false"})
MOST_LINES = 10_000


def changed_beside(trees: BothTrees, asked: str, tests: Iterable[str] = ()) -> Iterator[LostCode]:
    """Yield functions and files of the product, and of `tests`, that lost something by no word of
    the text. Blocks."""
    if not is_about_something(asked) or asks_for_less(asked):
        return
    paths = [one for one in (*trees.work, *tests) if one in trees.old and one in trees.new]
    before, after = (
        {one: read(one) or b"" for one in paths} for read in (trees.read_old, trees.read)
    )
    code = [one for one in paths if lexical_family(one, before[one])]
    known = {one: bodies_of(one, before[one]) for one in code}
    was, still = ({one: texts[one] for one in code} for texts in (before, after))
    fewer = _words(trees.work, trees.read_old) - _words(trees.work, trees.read)
    for old, now in same_functions(was, still, known):
        if now.start < 0 or now.path != old.path:
            continue
        if old.name == old.path:
            if constants := _other_constants(old, now, asked):
                what = WHAT["value"].format(constants[0][1])
                edits = tuple(one for one, _ in constants)
                yield LostCode(SENTENCE.format(old.path, what), old.path, now.path, (edits,))
        elif what := _of_function(old, now, asked, fewer):
            text = old.text.decode("utf-8", "replace")
            edits = (
                *lost_imports(before[old.path], after[now.path], old.text),
                Edit(now.start, now.start + len(now.text), text),
            )
            shown = SENTENCE.format(f"`{old.name}` of {old.path}", what)
            yield LostCode(shown, old.name, now.path, (edits,))
    for path in paths:
        if path not in code and (what := _of_file(path, before[path], after[path], asked)):
            text = before[path].decode("utf-8", "replace")
            edits = (Edit(0, len(after[path]), text),)
            yield LostCode(SENTENCE.format(path, what), path, path, (edits,))


def _of_function(old: Part, now: Part, asked: str, fewer: Collection[str]) -> str:
    """What a function lost that nothing speaks of; else "". `fewer` are words that the changed
    files have less often than they had."""
    family = lexical_family(old.path, old.text) or ""
    was, still = ([text for text, _ in _read(each.text, family)] for each in (old, now))
    lost, gained = Counter(was) - Counter(still), Counter(still) - Counter(was)
    if not lost and not gained:
        return ""
    if _is_spoken_of(f"{old.name} {PurePosixPath(old.path).stem}", [*lost, *gained], asked):
        return ""
    sign, more = DISCARDS.get(family, ("", 0))
    if more * (gained[sign] - lost[sign]) > 0 and not allows_more(asked):
        return WHAT["dropped"]
    refuses = [sum(1 for _ in refusals_in(one.text, one.path)) for one in (old, now)]
    catches = [len(CATCHES.findall(one.text)) for one in (old, now)]
    if catches[0] < catches[1] and refuses[0] >= refuses[1] and not allows_more(asked):
        return WHAT["caught"]
    acts = Counter(ACTS.findall(" ".join(was))) - Counter(ACTS.findall(" ".join(still)))
    if (gone := [*(acts.keys() & fewer)]) and not gained:
        return WHAT["lost"].format(max(gone, key=len))
    values = [one for one in lost if _is_value(one)]
    if values and gained and all(map(_is_value, gained)):
        return WHAT["value"].format(values[0])
    return ""


def _other_constants(old: Part, now: Part, asked: str) -> list[tuple[Edit, str]]:
    """What puts back values beside the functions of a file, and each, where nothing else differs
    there and the text does not speak of their lines."""
    family = lexical_family(old.path, old.text) or ""
    was, still = (_read(one.own, family) for one in (old, now))
    pairs = [(a, b) for (x, a), (y, b) in zip(was, still, strict=False) if x != y]
    if len(was) != len(still) or not all(map(_is_value, [x.text for pair in pairs for x in pair])):
        return []
    lines = old.own.decode("latin-1").split("\n")
    texts = [text for a, b in pairs for text in (lines[a.line - 1], b.text)]
    if _is_spoken_of(PurePosixPath(old.path).stem, texts, asked):
        return []
    return [(Edit(b.start, b.end, a.text), lines[a.line - 1].strip()[:100]) for a, b in pairs]


def _of_file(path: str, before: bytes, after: bytes, asked: str) -> str:
    """What a file of data, or a page that only got shorter, lost that nothing speaks of."""
    was, still = ([one.strip() for one in each.splitlines()] for each in (before, after))
    if path.endswith(KEPT_ENDINGS) or max(len(was), len(still)) > MOST_LINES:
        return ""
    if is_manifest(path) and PurePosixPath(path).suffix:
        was, still = ([one for one in each if SETTING.fullmatch(one)] for each in (was, still))
    lines = [
        Counter(TIMES.sub("", line.decode("utf-8", "replace"))
                for line in each if line and not COMMENT.fullmatch(line))
        for each in (was, still)
    ]  # fmt: skip
    lost, gained = lines[0] - lines[1], lines[1] - lines[0]
    if not lost or (gained and path.endswith(PAGES)) or b"\0" in before[:8000]:
        return ""
    texts = [*lost, *gained]
    was, still = (
        re.findall(r"\w+", " ".join(one)) for one in (texts[: len(lost)], texts[len(lost) :])
    )
    rest = iter(still)
    if all(word in rest for word in was) or _is_spoken_of(PurePosixPath(path).stem, texts, asked):
        return ""
    return WHAT["value" if gained else "lost"].format(texts[0][:100])


def _words(paths: Iterable[str], read: ReadFile) -> Counter[str]:
    text = b"\n".join(read(one) or b"" for one in paths).decode("latin-1")
    return Counter(re.findall(r"\w+", text))


def _read(source: bytes, family: str) -> list[tuple[str, Token]]:
    """The tokens of a source with what they mean, without texts that stand as a first line."""
    found = tokens(source, family)
    return [
        (_meaning(before, one), one)
        for before, one in zip((None, *found), found, strict=False)
        if one.kind != "string" or (before and (before.text != ":" or before.line == one.line))
    ]


def _meaning(before: Token | None, one: Token) -> str:
    """A token as any formatter writes it; words that a call says to people are all one."""
    if value := number(one.text) if one.kind == "number" else None:
        return value[1]
    if one.kind != "string":
        return one.text
    is_message = before is not None and before.text == "(" and WORDS.fullmatch(one.text)
    return '""' if is_message else TIMES.sub("", one.text).replace("'", '"')


def _is_value(token: str) -> bool:
    return token[:1].isdigit() or token[:1] in "\"'`" or token.lower() in NO_VALUES


def _is_spoken_of(name: str, changed: list[str], asked: str) -> bool:
    words = content_words(" ".join((name, *changed)))
    numbers = {one for text in changed for one in re.findall(r"\d+", text)}
    return shares_a_word(words, asked) or any(re.search(alone(one), asked) for one in numbers)
