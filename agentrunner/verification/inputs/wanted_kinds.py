"""Does the PRD ask for a change of expected data by its kind: "update the snapshots"? Pure.

Nobody writes the path of a `.snap` file into a ticket. English and Japanese; if in doubt, no.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentence_before, sentence_behind
from agentrunner.verification.inputs.prd_checks import MOST, outside_of_checks
from agentrunner.verification.inputs.words_of_change import (
    ANOTHER,
    BECOMES,
    BREAK,
    CLAUSE,
    DENIED,
    HABIT,
    JA_NOT,
    JA_OBJECT,
    NEGATED,
    becomes_in_japanese,
    last_verb,
)

KIND = lazy_regex(
    r"(?i)\b(?P<word>snapshot|golden|expected|reference)(?P<of>\s+(?:file|master|output|text|data))?"
    r"(?P<many>s)?\b(?!\s+(?:tests?|cases?|values?)\b)|(?P<ja>スナップショット|ゴールデン|期待出力)"
)
AFTER_OBJECT = lazy_regex(
    r"\s*(?:[.,;:!)]|$|(?:of|for|in|too|also|and|as\s+well|accordingly|with|by|via|using|to\s+match"
    r"|(?:where|if|as)\s+(?:needed|necessary|required))\b)"
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


def asked_by_kind(prd_text: str, changed: Collection[str]) -> set[str]:
    """Return which of the `changed` expected-data files the PRD wants changed, by their kind.

    A kind in the singular only permits it if a single file of that kind changed.
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
