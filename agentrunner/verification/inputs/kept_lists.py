"""Source lists in Makefile, CMakeLists.txt and meson.build: accept a new source next to others."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.kept_part import KeptPart, Surrounding, old, whole
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.tree import folder_of, join

WORD = lazy_regex(r"[^\s\\'\",()]+")
OBJECT = lazy_regex(r"\.(o|obj|lo|class)$")
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".m", ".s", ".f90", ".java", ".pas", ".asm")
MOST_LINES = 5_000


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
