"""A file that the PRD wants changed and that holds what decides: its commands stay as they were.

"Add a script to package.json" frees the file for that, and not its script `test`; "add a target to
the Makefile" not the recipes that the test command runs. Where the PRD speaks of such a command
beside the file, it is free as well. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from agentrunner.verification.inputs.asked import SENTENCE, outside_of_checks
from agentrunner.verification.inputs.idle_recipes import MAKEFILE, targets_of

RULE = re.compile(
    r"(?P<targets>[\w./$()%-]+(?:[ \t]+[\w./$()%-]+)*)[ \t]*::?(?!=)(?P<needs>[^=;#]*)"
)
MOST_BYTES = 1 << 20


def with_old_commands(
    path: str,
    before: bytes,
    after: bytes,
    shells: Collection[str],
    scripts: Collection[str],
    wanted: str,
) -> bytes | None:
    """The new file with the commands that decide as they were; None where that changes nothing.

    `shells` are the commands that decide, and `scripts` the names of package scripts they run.
    """
    if max(len(before), len(after)) > MOST_BYTES:
        return None
    name = path.rpartition("/")[2]
    try:
        one, two = before.decode(), after.decode()
        if name == "package.json":
            made = _package(one, two, _not_spoken_of(name, scripts, wanted))
        elif MAKEFILE.fullmatch(path):
            goals = {goal for shell in shells for goal in targets_of(shell)}
            made = _makefile(one, two, _not_spoken_of(name, _reached(one, goals), wanted))
        else:
            return None
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return made.encode() if made and made != two else None


def _not_spoken_of(file: str, names: Collection[str], wanted: str) -> set[str]:
    """Those of the names that no sentence about the file holds."""
    sentences = [one for one in SENTENCE.split(outside_of_checks(wanted)) if file in one]
    text = "\n".join(sentences)
    return {one for one in names if not re.search(rf"(?<![\w-]){re.escape(one)}(?:s|ing)?\b", text)}


def _package(before: str, after: str, names: Collection[str]) -> str:
    one, two = json.loads(before), json.loads(after)
    was, now = one.get("scripts", {}), two.get("scripts", {})
    kept = {name: text for name, text in was.items() if name in names}
    if all(now.get(name) == text for name, text in kept.items()):
        return ""
    made = {**two, "scripts": {**now, **kept}}
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _rules(text: str) -> dict[str, tuple[str, list[str], int, int]]:
    """By target: what it needs, its recipe, and between which lines that stands."""
    lines = text.split("\n")
    found = {}
    for number, line in enumerate(lines):
        hit = RULE.match(line) if not line.startswith(("\t", "#")) else None
        if hit is None:
            continue
        end = number + 1
        while end < len(lines) and lines[end].startswith("\t"):
            end += 1
        for target in hit["targets"].split():
            if end > number + 1:
                found[target] = (hit["needs"], lines[number + 1 : end], number + 1, end)
    return found


def _reached(text: str, goals: Collection[str]) -> set[str]:
    """Targets with a recipe that lead from these goals; without goals from the first one."""
    rules = _rules(text)
    todo = [*goals] or [*rules][:1]
    found: set[str] = set()
    while todo:
        target = todo.pop()
        if target in rules and target not in found:
            found.add(target)
            todo += rules[target][0].split()
    return found


def _makefile(before: str, after: str, names: Collection[str]) -> str:
    was, now = _rules(before), _rules(after)
    lines = after.split("\n")
    places = {
        now[name][2:]: was[name][1]
        for name in names
        if name in was and name in now and was[name][1] != now[name][1]
    }
    for (start, end), recipe in sorted(places.items(), reverse=True):
        lines[start:end] = recipe
    return "\n".join(lines)
