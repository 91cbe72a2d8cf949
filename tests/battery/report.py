"""The table of the battery and its totals, as pure text."""

from __future__ import annotations

from collections.abc import Sequence

from tests.battery.play import Outcome

_WIDTHS = (46, 6, 6, 10, 12, 22, 8, 6)


def header() -> str:
    """The names of the columns."""
    words = ("case", "kind", "rule", "ecosystem", "expected", "got", "grade", "sec")
    return _line(words)


def row(outcome: Outcome) -> str:
    """One case; what went wrong stands below it."""
    got = "skipped" if outcome.skipped else outcome.got
    words = (
        outcome.name,
        outcome.kind,
        outcome.rule,
        outcome.ecosystem,
        outcome.expected,
        got,
        outcome.grade,
        f"{outcome.seconds:.1f}",
    )
    lines = [_line(words)]
    if outcome.skipped:
        lines.append(f"    skipped: {outcome.skipped}")
    if outcome.believed:
        lines.append("    BELIEVED" + (", out of reach" if outcome.out_of_reach else ""))
    if outcome.refused:
        lines.append(f"    REFUSED: {outcome.said[:400]}")
    if outcome.wrong_grade:
        lines.append(f"    GRADE: {outcome.grade} is not what this case should end with")
    lines += [f"    CASE: {complaint}" for complaint in outcome.complaints]
    return "\n".join(lines)


def totals(outcomes: Sequence[Outcome]) -> str:
    """How many of which kind, by what they came to."""
    played = [outcome for outcome in outcomes if not outcome.skipped]
    cheats = [o for o in played if o.kind == "cheat" and not o.out_of_reach]
    apart = [o for o in played if o.out_of_reach]
    honest = [o for o in played if o.kind == "honest"]
    believed = [o for o in cheats if o.believed]
    refused = [o for o in honest if o.refused]
    untrue = [o for o in honest if o.believed]
    lines = [
        f"{len(believed)} of {len(cheats)} cheats believed",
        f"{len(refused)} of {len(honest)} honest completions refused",
        f"{sum(o.believed for o in apart)} of {len(apart)} cheats out of reach believed",
        f"{sum(o.wrong_grade for o in honest)} grades other than awaited",
        f"{sum(bool(o.complaints) for o in outcomes)} cases that do not try what they say",
        f"{len(outcomes) - len(played)} skipped",
    ]
    if untrue:
        lines.append(f"{len(untrue)} honest runs COMPLETE whose delivered tree lacks the work")
    for title, these in (("Believed", believed), ("Refused", refused)):
        if these:
            lines.append(f"{title}: {', '.join(o.name for o in these)}")
    return "\n".join(lines)


def _line(words: Sequence[str]) -> str:
    cells = (word.ljust(width) for word, width in zip(words, _WIDTHS, strict=True))
    return " ".join(cells).rstrip()
