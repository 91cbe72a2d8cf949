"""What people decided in a run: kept, bounded, and shown to planners, judges and workers. Pure.

The last twenty decisions are kept in full, older ones as one line each. Texts are data: code that
shows them marks them as a person's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from agentrunner.state.people import Answer, People, PersonDecision, PersonLine, Question
from agentrunner.text.lazy_regex import lazy_regex

FULL = 20
LINES = 100
TEXT = 4000
"""Characters of one text that the state keeps."""
ONE_LINE = 200
"""Characters of a question, and of an older decision."""
IN_PROMPT = 20_000
"""Characters of people's texts that one prompt carries in full; further ones become a line each."""
LINES_IN_PROMPT = 6000
"""Characters of those lines together."""
REASONS_STEER = frozenset({"plan", "worker", "complete", "tests_changed", "protected_path"})
"""Kinds of question whose rejection with a reason says what is wanted."""

_HOW = lazy_regex(r"again|end|stop|complete|model:.*", re.IGNORECASE | re.DOTALL)

View = dict[str, Any]


def about_check(kind: str, subject: str) -> bool:
    """Whether a question of kind `planner` is about a check that cannot run."""
    return kind == "planner" and "criterion" in fields_of(subject)


def fields_of(subject: str) -> dict[str, Any]:
    """Return what a question is about by name; {} where its subject is no JSON object."""
    try:
        value = json.loads(subject)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def decided(
    people: People | None,
    asked: Question,
    answer: Answer,
    *,
    at: str,
    round: int,  # noqa: A002  (the record's word)
) -> PersonDecision:
    """Return an answer to a question as a decision for the records, with its whole text.

    Its id is made of the question's id and a number: the same may be asked and answered again.
    """
    reason = answer.decision == "reject" and bool(answer.text.strip())
    text = answer.text
    if answer.edit:
        text = text or "approved with changes"
    return PersonDecision(
        id=f"{asked.id}-{total(people) + 1}",
        kind=asked.kind,
        asked=in_one_line(asked.text),
        decision=answer.decision,
        text=text,
        at=at,
        by=answer.by,
        round=round,
        steers=asked.kind == "ask_human" or (reason and asked.kind in REASONS_STEER),
    )


def total(people: People | None) -> int:
    """Return how many decisions there were so far."""
    people = people or People()
    return len(people.recent) + len(people.older) + people.omitted


def with_decision(people: People | None, decision: PersonDecision) -> People:
    """Return the record with one more decision, cut to its bounds; the same id only once."""
    people = people or People()
    recent = [known for known in people.recent if known.id != decision.id] + [_cut(decision)]
    older = people.older + [
        PersonLine(line=line_of(old), steers=old.steers) for old in recent[:-FULL]
    ]
    return people.model_copy(
        update={
            "recent": recent[-FULL:],
            "older": older[-LINES:],
            "omitted": people.omitted + max(0, len(older) - LINES),
        }
    )


def _cut(decision: PersonDecision) -> PersonDecision:
    if len(decision.text) <= TEXT:
        return decision
    return decision.model_copy(
        update={"text": decision.text[:TEXT], "characters": len(decision.text)}
    )


def line_of(one: PersonDecision) -> str:
    """Return a decision in one line of at most `ONE_LINE` characters."""
    asked = f"{in_one_line(one.asked, ONE_LINE // 2)}: " if one.asked else ""
    words = f": {one.text}" if one.text.strip() else ""
    return in_one_line(f"round {one.round}, {one.kind}, {asked}{one.decision}{words}")


def in_one_line(text: str, most: int = ONE_LINE) -> str:
    """Return a text without line breaks, with `…` where it was cut."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else line[: most - 1] + "…"


def shown(people: People | None, *, steering: bool = False, most: int = IN_PROMPT) -> View:
    """Return what a prompt shows of the record, oldest first; {} where there is nothing.

    The newest texts are in full up to `most` characters together, others one line each. With
    `steering`, only decisions that change what is wanted.
    """
    people = people or People()
    kept_words = [one for one in people.recent if not _only_goes_on(one)]
    recent = [decision for decision in kept_words if decision.steers or not steering]
    older = [decision.line for decision in people.older if decision.steers or not steering]
    full: list[View] = []
    for decision in reversed(recent):
        most -= len(decision.text)
        if most < 0:
            break
        full.append(_entry(decision))
    older += [line_of(decision) for decision in recent[: len(recent) - len(full)]]
    kept = _last(older, LINES_IN_PROMPT)
    left_out = people.omitted + len(older) - len(kept)
    view: View = {}
    if left_out:
        view["left_out"] = left_out
    if kept:
        view["older"] = kept
    if full:
        view["decisions"] = full[::-1]
    return view if kept or full else {}


def _only_goes_on(one: PersonDecision) -> bool:
    """Whether an answer says how to go on without a planner, and nothing of what is wanted."""
    return one.kind == "planner" and _HOW.fullmatch(one.text.strip()) is not None


def _entry(decision: PersonDecision) -> View:
    """Return a decision without time and name: no prompt may depend on a clock or a person."""
    view: View = {"round": decision.round, "kind": decision.kind}
    if (
        decision.asked and decision.kind != "budget"
    ):  # limits are AgentRunner's, not the planner's concern
        view["asked"] = decision.asked
    view |= {"decision": decision.decision, "words": words_of(decision)}
    return view


def words_of(one: PersonDecision) -> str:
    """Return the person's words, with a remark where they are cut."""
    if not one.characters:
        return one.text
    return f"{one.text}… (cut here; the whole has {one.characters:,} characters)"


def _last(lines: Iterable[str], most: int) -> list[str]:
    kept: list[str] = []
    for line in reversed(list(lines)):
        most -= len(line)
        if most < 0:
            break
        kept.append(line)
    return kept[::-1]
