"""For a file that partly affects the proof: the new file with that part as it was. Pure.

Each kind of file has a function from (before, after) to a `Kept`. The additions that it accepts
without a question are a closed list; everything else stays as it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from difflib import SequenceMatcher

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.sentences import sentences
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.model import Input, Inputs
from agentrunner.verification.inputs.recipes import MAKEFILE, targets_of
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.tree import folder_of, join
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.results.model import ReadFile

RULE = lazy_regex(
    r"(?P<targets>[\w./$()%-]+(?:[ \t]+[\w./$()%-]+)*)[ \t]*::?(?!=)(?P<needs>[^=;#]*)"
)
MOST_BYTES = 1 << 20

WORD = lazy_regex(r"[^\s\\'\",()]+")
OBJECT = lazy_regex(r"\.(o|obj|lo|class)$")
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".m", ".s", ".f90", ".java", ".pas", ".asm")
MOST_LINES = 5_000


class KeptPart(Struct, frozen=True):
    """The file to verify with."""

    content: bytes
    understood: str = ""
    """What was added, if nothing else changed: "a new source in a list of sources"."""
    restored: bytes | None = None
    """The new file without what was understood; None if that is the old file."""


class Surrounding(Struct, frozen=True):
    """What a function may know besides the two texts."""

    path: str
    inputs: Inputs
    entry: Input
    exists: Callable[[str], bool]
    """Whether a path is in the tree after the run."""
    takes_place: Callable[[str], bool]
    """Whether a source defines functions that another one, which stood before, defines as well."""
    stood: Callable[[str], bool]
    """Whether a folder of the tree is as it was before the run, and holds no helper of tests."""
    read: ReadFile
    """Reads a file of the tree before the run; `read_now` reads one of that after it."""
    read_now: ReadFile

    def is_new(self, folder: str) -> bool:
        """Whether nothing stood in a folder before the run."""
        return bool(folder) and not any(one.startswith(f"{folder}/") for one in self.inputs.before)

    def is_product(self, path: str) -> bool:
        """Whether a path exists after the run and is not an input of the proof."""
        return self.exists(path) and self.inputs.input_at(path) is None


Keep = Callable[[str, str, Surrounding], KeptPart]


def whole(after: str, why: str, restored: bytes | None = None) -> KeptPart:
    """Accept the new file: everything that changed is understood."""
    return KeptPart(to_bytes(after), why, restored)


def old(before: str) -> KeptPart:
    """Keep the old file: nothing is understood."""
    return KeptPart(to_bytes(before))


def keep_lists(before: str, after: str, around: Surrounding) -> KeptPart:
    """Return the old file plus new sources in its lists and rules for their objects."""
    old_lines, new_lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if len(old_lines) > MOST_LINES or len(new_lines) > MOST_LINES:
        return old(before)
    out: list[str] = []
    all_fine = True
    recipes = {line.strip() for line in old_lines if line.startswith("\t")}
    for tag, a, b, c, d in SequenceMatcher(
        None, old_lines, new_lines, autojunk=False
    ).get_opcodes():
        removed, inserted = old_lines[a:b], new_lines[c:d]
        fine = tag == "equal" or _only_sources(removed, inserted, around, recipes)
        out += inserted if fine else removed
        all_fine = all_fine and fine
    if all_fine:
        return whole(after, "a new source beside others in a list of sources")
    return KeptPart(to_bytes("".join(out)))


def _only_sources(was: list[str], now: list[str], around: Surrounding, recipes: set[str]) -> bool:
    if any(line.startswith("\t") for line in was):
        return False
    if not was and _is_object_rule(now, around, recipes):
        return True
    if not was and not all(WORD.findall(line) for line in now):
        return not any(line.strip() for line in now)
    if any(line.startswith("\t") and "\\" not in line and not was for line in now):
        return False
    old_words, new_words = _words(was), _words(now)
    added = _inserted(old_words, new_words)
    return bool(added) and all(_is_source(word, around) for word in added)


def _is_object_rule(now: list[str], around: Surrounding, recipes: set[str]) -> bool:
    """Whether lines are a rule for a new source's object, with a recipe that already exists."""
    lines = [line for line in now if line.strip()]
    if not lines or lines[0].startswith("\t") or ":" not in lines[0]:
        return False
    target, _, needs = lines[0].partition(":")
    if target.strip() in around.entry.parts or not OBJECT.search(target.strip()):
        return False
    words = WORD.findall(needs)
    if not _is_source(target.strip(), around) or not all(_is_source(w, around) for w in words):
        return False
    return all(line.startswith("\t") and line.strip() in recipes for line in lines[1:])


def _words(lines: list[str]) -> list[str]:
    return WORD.findall("".join(lines).replace("\\\n", " "))


def _inserted(old_words: list[str], new_words: list[str]) -> list[str]:
    """Return the words that were inserted; none if an old one is gone."""
    added, at = [], 0
    for word in new_words:
        if at < len(old_words) and word == old_words[at]:
            at += 1
        else:
            added.append(word)
    return added if at == len(old_words) else []


def _is_source(word: str, around: Surrounding) -> bool:
    folder = folder_of(around.path)
    path = join(folder, word)
    if OBJECT.search(word):
        stem = OBJECT.sub("", path)
        places = [stem, join(folder, f"src/{OBJECT.sub('', word).rpartition('/')[2]}")]
        places.append(join(folder, re.sub(r"^(build|obj|out)/", "src/", OBJECT.sub("", word))))
        found = [place + end for place in places for end in SOURCES]
        return any(around.is_product(one) and not around.takes_place(one) for one in found)
    return bool(family_of(word)) and around.is_product(path) and not around.takes_place(path)


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

    "Add a script to package.json" permits adding one, but not changing its script `test`; "add a
    target to the Makefile" does not permit changing recipes that the test command runs. If the PRD
    mentions such a command together with the file, the command may change as well.
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
