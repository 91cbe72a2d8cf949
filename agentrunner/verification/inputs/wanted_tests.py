"""Does the PRD ask in ordinary words for existing tests to be adapted? Pure.

"Update the existing tests", "`test_overdraw` has to be adapted", 既存のテストも修正. English and
Japanese; if in doubt, no.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentence_before, sentence_behind, sentences
from agentrunner.verification.inputs.words_of_change import (
    ADDS,
    ANOTHER,
    BECOMES,
    BREAK,
    CLAUSE,
    DENIED,
    HABIT,
    JA_NOT,
    JA_OBJECT,
    MOST,
    NEGATED,
    VERB,
    becomes_in_japanese,
    last_verb,
    outside_of_checks,
)

KIND = lazy_regex(
    r"(?i)\b(?P<word>snapshot|golden|expected|reference)(?P<of>\s+(?:file|master|output|text|data))?"
    r"(?P<many>s)?\b(?!\s+(?:tests?|cases?|values?)\b)|(?P<ja>スナップショット|ゴールデン|期待出力)"
)
AFTER_OBJECT = lazy_regex(
    r"\s*(?:[.,;:!)]|$|(?:of|for|in|too|also|and|as\s+well|accordingly|with|by|via|using|to|so|that"
    r"|which|where|(?:if|as)\s+(?:needed|necessary|required))\b)"
)
"""After a kind that is the object of a verb and not part of another name."""
OF_IT = lazy_regex(r"\s+(?:of|for|in)\s+(?:\S+\s+){0,4}?(?=has\b|have\b|is\b|are\b|gets?\b|must\b)")
WORDS = {
    "snapshot": "snap", "スナップショット": "snap", "golden": "golden", "ゴールデン": "golden",
    "期待出力": "expect", "expected": "expect", "reference": "reference",
}  # fmt: skip
"""What the path of a file of such a kind contains."""
INLINE = lazy_regex(
    rb"(?s)(\.to(?:Match|ThrowErrorMatching)InlineSnapshot\(\s*)(?:`(?:[^`\\$]|\\.)*`|\"[^\"\n]*\")"
)
NOT_ITSELF = lazy_regex(rf"{ANOTHER.pattern}|\b(?:how|when|where|why|to|of|for|from)\b")
"""Between a verb and a kind: something else about it changes."""
MOST_HITS = 50

_OF_TESTS = r"(?:\s+(?:cases?|code|files?|functions?|methods?|tables?))?"
_TABLE = r"(?:(?:tables?|lists?|sets?|rows?|cases)\s+(?:of|in)\s+(?:(?:the|our|existing)\s+)*)?"
TESTS = lazy_regex(
    rf"(?i)\b{_TABLE}(?:unit\s+|inline\s+)?(?P<of>test|snapshot)(?P<many>s)?\b{_OF_TESTS}(?!\s*`)|(?P<ja>テスト)(?:コード|ケース)?"
)
FOLLOW = lazy_regex(
    r"(?i)(?:\s+(?:of|for)\s+(?:[\w`'-]+\s+){0,4}[\w`'-]+)?\s+"
    r"(?:follows?|(?:will\s+)?(?:have|has|needs?)\s+to\s+(?:follow|change))"
    r"(?:\s+(?:suit|accordingly|too|as\s+well|it|this|that))?\s*(?:[.;!\n]|$)"
)
"""After tests: they follow what changes."""
ALONG_BEFORE = lazy_regex(
    r"(?i)(?:(?P<fix>\b(?:(?P<also>also)\s+)?(?:fix|mend|repair|correct)(?:ing)?\s+(?:up\s+)?)|\bincluding\s+)"
    r"(?:(?:all|the|our|its|their|existing|old)\s+)*$"
)
ALONG_BEHIND = lazy_regex(
    r"(?i)(?P<included>\s+included\b)|\s+(?:too|as\s+well|accordingly|to\s+match|with\s+it)\b"
)
"""Around tests that go along with something else. "Fix the tests" alone may mean the code."""
HOLDS = lazy_regex(
    r"(?i)\b(?:pass\w*|green|stays?|ke(?:ep|pt)|leave|unchanged|untouched|as\s+(?:it|they)\s+(?:is|are)"
    r"|runs?)\b"
)
"""What is said of "everything, including the tests" that has to hold as it is."""
ONE = r"`?(?P<of>{name})(?P<many>)(?:\(\))?`?(?P<ja>)(?!\w)"
REMOVES = lazy_regex(r"(?i)delet|remov|drop|get|renam|mov|merg|split|port|convert|migrat")
"""Verbs of change that do not adapt a test."""
STAY = lazy_regex(
    r"(?i)\btests?\b[^.;\n]{0,40}\b(?:unchanged|untouched|as\s+they\s+are|not\s+be\s+(?:changed|modified"
    r"|edited|touched))|\bnot?\b[^.;\n]{0,20}\b(?:chang|modif|edit|touch)\w*[^.;\n]{0,20}\btests?\b"
    r"|テスト[^。\n]{0,20}(?:変更しない|変えない|触らない|そのまま)"
)
JA_ALSO = lazy_regex(
    r"テスト(?:コード|ケース)?も(?:(?:それ|これ|変更|仕様)に)?(?:あわせて|合わせて)?(?:修正|直)"
)
"""What Japanese says of tests that follow the code; of a path it would be "mend"."""
THEM = lazy_regex(
    r"(?i)(?P<clause>[^.;:!?\n]{0,80}?)[,;]\s+(?:(?:so|and|please|also)\s+){0,3}"
    r"(?:adapt|adjust|updat|amend|revis|rewrit|chang)e?\s+"
    r"(?:them\b|(?:those|any|the\s+ones)\s+(?:that|which)\s+(?:break|fail|need|chang))"
)
"""After tests: "rely on the old default, please adjust them", "…; update those that break"."""
ALONE = lazy_regex(r"(?i)\s+(?:included|updated|adapted|adjusted)\s*(?:[.;!\n]|$)")
"""After tests that begin a sentence or an item of a list: "Tests included."."""
WRITES = r"(?:add|writ|creat|provid|supply|includ)\w*"
NOUN = lazy_regex(
    r"(?i)(?:\b(?:existing|old|current|unit)\s+)*\btests?(?:\s+(?:cases?|functions?))?\s+$"
)
"""Before the name of a test."""


def asks_to_adapt(prd_text: str, changed: Collection[str], *, snapshots: bool = False) -> bool:
    """Whether the PRD wants each of these tests adapted, by their names or as "the tests".

    "The test" in the singular permits a single test. With `snapshots` nothing but snapshots in the
    tests was changed, so the PRD may speak of these.
    """
    text = JA_ALSO.sub("テストも更新", outside_of_checks(prd_text[:MOST]))
    if not changed or STAY.search(text):
        return False
    for hit in list(TESTS.finditer(text))[:MOST_HITS]:
        enough = hit["many"] or hit["ja"] or len(changed) == 1
        if not enough or ((hit["of"] or "").lower() == "snapshot" and not snapshots):
            continue
        behind = text[hit.end() :][:200]
        before = sentence_before(text, hit.start(), 300)
        if FOLLOW.match(behind) or (
            hit["many"] and ALONE.match(behind) and not re.search(r"[^\W_]", before)
        ):
            return True
        if (them := THEM.match(behind)) and hit["many"] and not DENIED.search(them["clause"]):
            return True
        if hit["many"] and _go_along(before, behind):
            return True
        if _adapts(text, hit.start()) and is_wanted(text, hit):
            return True
    return all(_is_named(text, name) for name in changed)


def _go_along(before: str, behind: str) -> bool:
    """Whether tests, with this before and behind them, are to follow what else is wanted."""
    first, last = ALONG_BEFORE.search(before), ALONG_BEHIND.match(behind)
    lead = before[: first.start()] if first else before
    if NEGATED.search(lead):
        return False
    if (last and last["included"]) or (first and not first["fix"]):
        sentence = lead + behind.partition(".")[0]
        return bool(VERB.search(lead)) and not (DENIED.search(lead) or HOLDS.search(sentence))
    return first is not None and bool(last or first["also"])


def asks_to_add(prd_text: str, path: str) -> bool:
    """Whether the PRD wants tests added to this file of tests, by its name or path."""
    text = outside_of_checks(prd_text[:MOST])
    name = path.rpartition("/")[2]
    place = rf"[`'\"]*(?:{re.escape(path)}|{re.escape(name)})(?![\w/-]|\.\w)"
    order = re.compile(
        rf"(?i)\b{WRITES}\b(?:[^.;:!?\n]|\.\w){{0,100}}?\b(?:tests?|cases?)\b"
        rf"(?:[^.;:!?\n]|\.\w){{0,100}}?\s(?:to|in|into)\s+(?:the\s+)?{place}"
    )
    return any(
        not NEGATED.search(sentence_before(text, hit.start(), 60)) for hit in order.finditer(text)
    )


FOR_CODE = lazy_regex(
    r"(?i)\b(?:add|writ|creat|provid|need|rais|increas)e?\w*\s+"
    r"(?:(?!(?:to|with|and|for|of)\b)[a-z-]+\s+){0,4}?(?:tests?(?:\s+cases?)?|(?:test\s+)?coverage)"
    r"(?:\s+(?:for|of|that\s+covers?|covering)\b|\b(?:[^.;:!?\n]|\.\w){1,120}?\s(?:is|are)\s+covered\b)"
    r"|の(?:単体|ユニット)?テスト(?:コード|ケース)?を[^。\n]{0,10}(?:追加|書[いくき]|作成|用意)"
)
"""Tests of some code are ordered."""
NO_ORDER = lazy_regex(r"(?i)`[^`\n]*`|\bincluding\b|(?<!be )\bincluded\b")
"""Code is no order, whatever verb it has, nor is what tests are to ask: "edge cases included"."""
ORDERS = lazy_regex(
    rf"{ADDS.pattern}|{VERB.pattern}|\b(?:fix|implement|support|mak|let|allow|must|should|ha[sv]e?\s+to)\w*\b"
    r"|追加|作成|実装|対応|修正|変更",
    re.IGNORECASE,
)
OF_TESTS = lazy_regex(r"(?i)\btests?\b|\bcover|\bspecs?\b|テスト")


def asks_for_tests_alone(prd_text: str) -> bool:
    """Whether the PRD wants tests of some code and nothing else: "add tests for `luhn.py`"."""
    found = False
    text = NO_ORDER.sub("``", outside_of_checks(prd_text[:MOST]))
    for sentence in sentences(text, semicolons=True):
        orders, hit = len(ORDERS.findall(sentence)), FOR_CODE.search(sentence)
        if orders == 1 and hit and not NEGATED.search(sentence[: hit.start()]):
            found = True
        elif not orders or DENIED.search(sentence):
            continue
        elif orders > 1 or not OF_TESTS.search(sentence):
            return False
    return found


def says_it_becomes(prd_text: str, subject: str, value: str) -> bool:
    """Whether a sentence says that what it names gets this value: "the default timeout becomes 30".

    "From 10 to 30", 既定値を30に変更 count as well.
    """
    name, bare = subject.strip("\"'"), re.escape(value.strip("\"'"))
    if not name or not bare:
        return False
    order = re.compile(
        rf"(?i)\b(?:becomes?|(?:is|are)\s+now|now\s+(?:is|are)|goes\s+(?:up|down)\s+to"
        rf"|(?:chang|rais|lower|increas|reduc|set)\w*\s(?:[^.;:!?\n]|\.\w){{0,60}}?\bto)\s+"
        rf"(?:[`'\"]|an?\s|the\s)*(?<![\w.]){bare}(?![\w]|\.\d)|{bare}[`」]?[^。\n]{{0,6}}?(?:に変更|に変え|にする|になる)"
    )
    return any(
        re.search(rf"(?i)(?<![a-z]){re.escape(name)}(?![a-z])", sentence)
        and not NEGATED.search(sentence)
        and order.search(sentence)
        for sentence in sentences(outside_of_checks(prd_text[:MOST]), semicolons=True)
    )


def _is_named(text: str, name: str) -> bool:
    pattern = re.compile(rf"(?<!\w){ONE.format(name=re.escape(name))}")
    return any(
        _adapts(text, hit.start()) and is_wanted(_without_noun(text, hit), hit)
        for hit in list(pattern.finditer(text))[:MOST_HITS]
    )


def _without_noun(text: str, hit: re.Match[str]) -> str:
    """The text with blanks for "existing test" before a name."""
    head = NOUN.sub(lambda found: " " * len(found[0]), text[: hit.start()])
    return head + text[hit.start() :]


def _adapts(text: str, place: int) -> bool:
    """Whether the last verb of change before a place, if there is one, does not remove."""
    verb = last_verb(sentence_before(text, place, 300))
    return verb is None or not REMOVES.match(verb[0])


def asked_by_kind(prd_text: str, changed: Collection[str]) -> set[str]:
    """Return which of the `changed` expected-data files the PRD wants changed, by their kind.

    A kind in the singular only permits it if a single file of that kind changed.

    Nobody writes the path of a `.snap` file into a ticket. English and Japanese; if in doubt, no.
    """
    found: set[str] = set()
    text = outside_of_checks(prd_text[:MOST])
    for hit in list(KIND.finditer(text))[:MOST_HITS]:
        if not (hit["ja"] or hit["of"] or hit["word"].lower() == "snapshot"):
            continue
        if not is_wanted(text, hit):
            continue
        part = WORDS[(hit["ja"] or hit["word"]).lower()]
        files = [path for path in changed if part in path.lower()] or [*changed]
        if len(files) == 1 or (hit["many"] and any(part in path.lower() for path in files)):
            found.update(files)
    return found


def wants_snapshots(prd_text: str) -> bool:
    """Whether the PRD wants snapshots changed, in the plural."""
    text = outside_of_checks(prd_text[:MOST])
    hits = [hit for hit in KIND.finditer(text) if hit["ja"] or hit["word"].lower() == "snapshot"]
    return any((hit["many"] or hit["ja"]) and is_wanted(text, hit) for hit in hits[:MOST_HITS])


def differs_by_snapshots(before: bytes, after: bytes) -> bool:
    """Whether two test files differ only in the inline snapshots in them."""
    return before != after and INLINE.sub(rb"\1", before) == INLINE.sub(rb"\1", after)


def is_wanted(text: str, hit: re.Match[str]) -> bool:
    """Whether a sentence wants what it names by this kind to change."""
    before = sentence_before(text, hit.start(), 300)
    behind = text[hit.end() : hit.end() + 300]
    if hit["ja"]:
        behind = re.sub(r"^(?:ファイル|データ)", "", behind)
        if found := JA_OBJECT.match(behind):
            return not JA_NOT.search(found[2])
        return becomes_in_japanese(before, behind)
    rest = sentence_behind(text, hit.end(), 300)
    return _is_object(before, behind) or _is_to_change(before, rest)


def _is_object(before: str, behind: str) -> bool:
    """Whether it is like "Fix it and update the snapshots"."""
    verb = last_verb(before)
    if verb is None or NEGATED.search(before[: verb.start()]) or not AFTER_OBJECT.match(behind):
        return False
    between = before[verb.end() :]
    unclear = BREAK.search(between) or NOT_ITSELF.search(between) or HABIT.search(before)
    return not unclear and len(between.split()) <= 3 and not re.search(r"[,(]", between)


def _is_to_change(before: str, behind: str) -> bool:
    """Whether it is like "The snapshot has the wrong format and is updated with it"."""
    rest = behind[found.end() - 1 :] if (found := OF_IT.match(behind)) else behind
    _, joint, later = rest.partition(" and ")
    places = [rest, *([f" {later}"] if joint and "," not in rest.partition(" and ")[0] else [])]
    clause = CLAUSE.split(before)[-1]
    return any(
        not (HABIT.search(before) or DENIED.search(clause + place[: found.end()]))
        and not HABIT.search(found[1])
        for place in places
        if (found := BECOMES.match(place))
    )
