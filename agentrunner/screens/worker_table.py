"""`workers` and `config show`: which workers are available, and which settings are in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentrunner.screens.layout import (
    WIDTH,
    cell,
    flat,
    labelled,
    sentence_lines,
    tilde,
    ways_lines,
    wrap,
)
from agentrunner.text.terminal import cell_width

Row = Mapping[str, Any]

_REPORTS = {
    "exit_codes": "exit codes of its commands",
    "actions": "every action",
    "tokens": "tokens",
    "cost": "cost",
    "resume": "sessions to resume",
    "schema": "answers by a schema",
}
"""In words for people; capabilities that are not listed here are not shown."""
_CURE = f"  {'cure':<9}"
_VALUE_WIDTH = 32


def workers_screen(rows: Sequence[Row], home: str, width: int = WIDTH) -> str:
    """Show a paragraph per worker; rows as `agentrunner workers --json` prints them."""
    lines: list[str] = []
    for row in rows:
        origin = labelled("from", str(row["from"]), width) if row.get("from") else []
        about = _paragraph if "verified" in row else _obstacle
        lines += [_title(row, home), *origin, *about(row, width), ""]
    others = "Further kinds: command (any command line), mock (does nothing)."
    return "\n".join([*lines, *wrap(others, width)])


def _title(row: Row, home: str) -> str:
    if "verified" not in row:
        return f"{flat(str(row['kind']))}  does not load"
    if row["path"] is None:
        return f"{flat(str(row['kind']))}  not installed"
    version = flat(str(row["version"])) or "version unknown"
    return f"{flat(str(row['kind']))}  {version}  {flat(tilde(str(row['path']), home))}"


def _obstacle(row: Row, width: int) -> list[str]:
    """Say why a kind that others add does not load."""
    cure = ways_lines(_CURE, str(row["cure"]), 0) if row["cure"] else []
    return [*labelled("problem", str(row["problem"]), width), *cure]


def _paragraph(row: Row, width: int) -> list[str]:
    needs, login = row["needs"], row["login"]
    tested = f"with {row['tested']}; " if row["tested"] else ""
    facts = [("tested", f"{tested}{row['verified']}")]
    if row["path"] is not None and row["problem"]:
        facts.append(("problem", str(row["problem"])))
    known = [words for name, words in _REPORTS.items() if row["reports"].get(name)]
    untold = [words for name, words in _REPORTS.items() if not row["reports"].get(name)]
    reports = ", ".join(known) or "nothing"
    facts.append(("reports", f"{reports}; not {', '.join(untold)}" if untold else reports))
    facts.append(("needs", _needs(needs)))
    keys = [f"{name} ({'set' if is_set else 'not set'})" for name, is_set in row["keys"].items()]
    facts.append(("key", " or ".join(keys) or "none"))
    if login is not None:
        facts.append(("login", str(login["text"])))
    lines = [line for label, text in facts for line in labelled(label, text, width)]
    # Not wrapped, so that they can be copied.
    cures = [row["cure"]] if row["path"] is None else []
    cures += [login["cure"]] if login is not None and not login["usable"] else []
    return lines + [line for cure in cures if cure for line in ways_lines(_CURE, str(cure), 0)]


def _needs(needs: Row) -> str:
    hosts = ", ".join(needs["hosts"])
    parts = [f"{needs['memory']} of memory"] if needs["memory"] else []
    parts.append(f"its model and {hosts}" if hosts else "its model alone")
    parts.append("a sandbox" if needs["sandbox"] else "also runs with sandbox none")
    return "; ".join(parts)


def settings_screen(
    settings: Sequence[tuple[str, str, str]],
    files: Sequence[tuple[str, bool]],
    home: str,
    width: int = WIDTH,
) -> str:
    """Show each setting with its value and origin, and which files were looked for."""
    name_width = max((cell_width(flat(name)) for name, _, _ in settings), default=0)
    value_width = min(
        max((cell_width(flat(value)) for _, value, _ in settings), default=0), _VALUE_WIDTH
    )
    lines = []
    for name, value, where in settings:
        lead = f"{cell(name, name_width)}  "
        place = flat(tilde(where, home))
        if cell_width(flat(value)) <= value_width:
            lines.append(f"{lead}{cell(value, value_width)}  {place}".rstrip())
        else:
            lines.append(f"{lead}{place}".rstrip())
            lines += wrap(value, width, "    ")
    if not settings:
        lines.append("Every setting has its default.")
    lines.append("")
    for path, is_there in files:
        place = flat(tilde(path, home))
        lines += sentence_lines(f"{place}  {'read' if is_there else 'not there'}", width)
    return "\n".join(lines)
