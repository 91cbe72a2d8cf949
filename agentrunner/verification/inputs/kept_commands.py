"""Keep the deciding commands in a file that the PRD wants changed. Pure.

"Add a script to package.json" permits adding one, but not changing its script `test`; "add a target
to the Makefile" does not permit changing recipes that the test command runs. If the PRD mentions
such a command together with the file, the command may change as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentences
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.prd_checks import outside_of_checks
from agentrunner.verification.inputs.recipes import MAKEFILE, targets_of

RULE = lazy_regex(
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
    """Return the new file with the deciding commands as they were; None if that changes nothing.

    `shells` are the commands that decide, and `scripts` the names of the package scripts they run.
    """
    if max(len(before), len(after)) > MOST_BYTES:
        return None
    name = path.rpartition("/")[2]
    try:
        old, new = before.decode(), after.decode()
        if name == "package.json":
            made = _package(old, new, _not_mentioned(name, scripts, wanted))
        elif MAKEFILE.fullmatch(path):
            goals = {goal for shell in shells for goal in targets_of(shell)}
            made = _makefile(old, new, _not_mentioned(name, _reached(old, goals), wanted))
        else:
            return None
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    return to_bytes(made) if made and made != new else None


def _not_mentioned(file: str, names: Collection[str], wanted: str) -> set[str]:
    """Return those names that occur in no sentence about the file."""
    parts = sentences(outside_of_checks(wanted), semicolons=True)
    text = "\n".join(one for one in parts if file in one)
    return {one for one in names if not re.search(rf"(?<![\w-]){re.escape(one)}(?:s|ing)?\b", text)}


def _package(before: str, after: str, names: Collection[str]) -> str:
    old, new = json.loads(before), json.loads(after)
    was, now = old.get("scripts", {}), new.get("scripts", {})
    kept = {name: text for name, text in was.items() if name in names}
    if all(now.get(name) == text for name, text in kept.items()):
        return ""
    made = {**new, "scripts": {**now, **kept}}
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _rules(text: str) -> dict[str, tuple[str, list[str], int, int]]:
    """Return by target: what it needs, its recipe, and the line range of the recipe."""
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
    """Return the targets with a recipe that these goals lead to, by default from the first."""
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
