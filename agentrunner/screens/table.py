"""Tables: the runs of a repository, and the results of `validate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentrunner.screens.layout import WIDTH, cell, count, flat, hung, labelled, wrap
from agentrunner.text.terminal import cell_width

Row = Mapping[str, Any]


def criteria_table(
    name: str,
    rows: Sequence[Row],
    *,
    strict: bool,
    has_test: bool,
    width: int = WIDTH,
    by_code: bool | None = False,
) -> str:
    """Show the result of `validate`: each criterion with its line and what is executed for it.

    A row has `id`, `critical`, `line` (or None) and `runs` ("" if nothing can be executed).
    `by_code` is for a planner without a model: it asks a person about what nothing decides. It is
    None where the planner is still to be chosen.
    """
    if not rows:
        return "\n".join(_no_criteria(name, has_test, width, by_code))
    runnable = sum(1 for row in rows if row["runs"])
    noun = count(len(rows), "criterion", "criteria")
    lines = wrap(f"{flat(name)} is valid. {noun}, {runnable} can be executed:", width)
    id_width = max((cell_width(flat(str(row["id"]))) for row in rows), default=0)
    digits = max((len(str(row["line"] or "")) for row in rows), default=0)
    for row in rows:
        line = f"  line {row['line']:>{digits}}" if row["line"] else ""
        rank = "critical" if row["critical"] else "optional"
        lead = f"  {cell(str(row['id']), id_width)}  {rank}{line}  "
        text = flat(str(row["runs"])) or _nothing(row, strict, has_test, by_code)
        lines += hung(lead, text, width)
    return "\n".join(lines)


_NONE = "has no criteria: nothing in it says when it is done."
NO_CRITERIA = f"It {_NONE}"
"""Also among the warnings of `validate --json`."""


def _no_criteria(name: str, has_test: bool, width: int, by_code: bool | None) -> list[str]:
    """Explain that a readable task without criteria is never simply valid."""
    alone = "A person" if by_code else "The planner's word"
    if by_code is None:
        alone += ", or without a model a person,"
    decides = f"{'The test command' if has_test else alone} alone decides."
    remedy = "List what must be true under a heading like this one (or 「受け入れ条件」):"
    return [
        *wrap(f"{flat(name)} {_NONE} {decides}", width),
        *wrap(remedy, width, "  "),
        "    ## Acceptance criteria",
        "    - [ ] A taken e-mail returns 409",
        "          check: `COMMAND`",
    ]


def _nothing(row: Row, strict: bool, has_test: bool, by_code: bool | None) -> str:
    if not row["critical"]:
        return "nothing to execute"
    if strict or by_code:
        return "nothing to execute: a person must accept it"
    alone = "the planner's word" + (", besides the tests" if has_test else " only")
    when = "--strict, or no model plans" if by_code is None else "--strict"
    return f"nothing to execute: {alone} ({when}: a person must accept)"


def dry_run_screen(
    header: Sequence[tuple[str, str]],
    criteria: str,
    worker_command: Sequence[str],
    mounts: Sequence[str],
    reach: Mapping[str, str],
    missing: Sequence[Row] = (),
    width: int = WIDTH,
) -> str:
    """Show the result of `run --dry-run`: everything that is known before a model is called.

    `reach` says what each kind of command can reach. `missing` has `message` and `remedy` of
    everything that would prevent the start.
    """
    lines = [row for label, text in header for row in labelled(label, text, width)]
    lines += ["", criteria, "", "The worker's command:"]
    lines += [f"  {flat(word)}" for word in worker_command]
    lines += ["", "Visible in the sandbox:", *(f"  {flat(mount)}" for mount in mounts)]
    lines += ["", "Reachable from the sandbox:"]
    lines += [row for who, hosts in reach.items() for row in labelled(who, hosts, width)]
    lines.append("")
    for error in missing:
        lines += labelled("missing", str(error["message"]), width)
        lines += labelled("", f"try: {error['remedy']}", width) if error["remedy"] else []
    return "\n".join([*lines, *[""] * bool(missing), "Nothing was started."])
