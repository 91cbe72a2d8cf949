"""Files that only import from elsewhere than before, and differ by nothing else. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.wanted_moves import module_of, wants_part_moved
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.syntax.imports import (
    carried,
    defined,
    imported,
    lines_of_imports,
    nameless_imports,
    places_of_imports,
    without_imports,
)
from agentrunner.verification.syntax.languages import SCRIPTS, language_of
from agentrunner.verification.test_changes.moves import SCRIPT_PLACE, Renames, placed, renamed_in

LOADS = lazy_regex(
    r"(?i)(?:\bfrom|\binclude(?:_once)?|(?:mock|require|import)\w*)"
    r"\s*(?:<[^<>]*>)?\s*\(?\s*$"
)
"""What stands before a path by which a module is loaded, or put in the place of another."""
PLACE_OR_NOT = lazy_regex(r"[\w./+@-]+|[^\w./+@-]")
"""A word that may be a path, or a character of none."""
QUOTED_PATH = lazy_regex(r"""["']([^"'\n]+)["']""")
"""A path that an import of JavaScript writes."""
WANTED = lazy_regex(r"(?i)\bES[ -]?modules?\b|\bESM\b|\"type\":\s*\"module\"")
STRICT = lazy_regex(rb"(?m)^[ \t]*(['\"])use strict\1;?[ \t]*$")
REQUIRES = lazy_regex(
    r"(?:const|let|var)\s+(?P<names>[\w$]+|\{[^{}]*\})\s*=\s*"
    r"require\(\s*(?P<quote>['\"])(?P<module>[^'\"]+)(?P=quote)\s*\)(?:\.(?P<part>[\w$]+))?\s*;?"
)
IMPORTS = lazy_regex(
    r"import\s+(?:(?:\*\s+as\s+)?(?P<whole>[\w$]+)\s*,?\s*)?(?P<names>\{[^{}]*\})?\s*from\s*"
    r"(?P<quote>['\"])(?P<module>[^'\"]+)(?P=quote)\s*;?"
)
RENAMED = lazy_regex(r"(?P<part>[\w$]+)(?:\s*(?::|\bas\b)\s*(?P<name>[\w$]+))?")


def imports_follow(path: str, before: bytes, after: bytes, renames: Renames) -> bool:
    """Whether a file differs only by imports, and these only by modules that moved (`renames`)."""
    language = language_of(path)
    if language is None or not renames:
        return False
    if language in SCRIPTS and _with_places(path, before) == _with_places(path, after, renames):
        return True
    if (text := carried(before, after, language)) is None:
        return False
    if text != carried(after, after, language):
        return False
    was, now = lines_of_imports(before, language), lines_of_imports(after, language)
    if was is None or now is None:
        return False
    old_lines, new_lines = ({placed(line, path) for line in lines} for lines in (was, now))
    only_before = old_lines - new_lines
    renamed = [{renamed_in(line, names) for names in renames} & new_lines for line in only_before]
    return all(renamed) and new_lines - old_lines <= set().union(*renamed)


def _with_places(path: str, source: bytes, renames: Renames = ()) -> str:
    """A text in which relative paths to modules, as in `mock("./cart")`, are those of before."""
    before = {new: old for old, new in renames}

    def place(hit: re.Match[str]) -> str:
        if not LOADS.search(hit.string, max(hit.start() - 60, 0), hit.start()):
            return hit[0]
        where = module_of(posixpath.normpath(posixpath.join(posixpath.dirname(path), hit[2])))
        return f"'/{before.get(where, where)}'"

    return SCRIPT_PLACE.sub(place, source.decode("utf-8", "replace"))


def parts_follow(
    path: str,
    before: bytes,
    after: bytes,
    asked: str,
    changed: Mapping[str, tuple[bytes, bytes]],
) -> bool:
    """Whether a file imports moved names from their new module, and is else the same.

    In Python and JavaScript. One counts that its old module no longer has and the new one defines,
    and that `asked` names with its new place. `changed` holds files before and after the run.
    """
    language = language_of(path)
    if language not in ("python", *SCRIPTS):
        return False
    was, now = (
        {name: one for name, one in imported(text, language).items() if name.isidentifier()}
        for text in (before, after)
    )
    bare = without_imports(before, language)
    if was.keys() != now.keys() or bare is None or bare != without_imports(after, language):
        return False
    if nameless_imports(before, language) != nameless_imports(after, language):
        return False
    moved = [name for name in was if was[name] != now[name]]
    for old, new in ((_origin(path, was[name]), _origin(path, now[name])) for name in moved):
        if old is None or new is None or old[1] != new[1]:
            return False
        name, (home, place) = old[1], (old[0], new[0])
        if not wants_part_moved(asked, name, place):
            return False
        source, target = _module(home, changed), _module(place, changed)
        if source is None or target is None or name not in defined(target[1], language):
            return False
        if name not in defined(source[0], language) or name in defined(source[1], language):
            return False
    return bool(moved)


def _origin(path: str, text: str) -> tuple[str, str] | None:
    """The module, as a path, and the name in it that an import of this file takes; None for a whole
    module. `text` is as `imported` has it."""
    place, _, name = text.rpartition(" ")
    if not place or not name.isidentifier():
        return None
    if (hit := QUOTED_PATH.search(place)) is None:
        return place.replace(".", "/"), name
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), module_of(hit[1]))), name


def _module(place: str, changed: Mapping[str, tuple[bytes, bytes]]) -> tuple[bytes, bytes] | None:
    """Return a changed module, by its name as a path, before and after."""
    for path, texts in changed.items():
        name = module_of(path)
        if language_of(path) and (name == place or name.endswith(f"/{place}")):
            return texts
    return None


def places_follow(before: bytes, after: bytes, renames: Renames) -> bool:
    """Whether a text differs only by paths, and these only by what moved (`renames`).

    For files without a grammar: `cd api` becomes `cd services/api`.
    """
    old_words, new_words = (
        PLACE_OR_NOT.findall(text.decode("utf-8", "replace")) for text in (before, after)
    )
    changed = {pair for pair in zip(old_words, new_words, strict=False) if pair[0] != pair[1]}
    if len(old_words) != len(new_words) or not changed:
        return False
    return all(
        any(
            (rest := old.removeprefix(was)) != old and rest[:1] in ("", "/") and new == now + rest
            for was, now in renames
        )
        for old, new in changed
    )


def asks_for_es_modules(prd_text: str) -> bool:
    """Whether a PRD speaks of ES modules.

    A package that becomes one of ES modules needs other imports in its tests, and nothing else.
    """
    return bool(WANTED.search(outside_of_checks(prd_text)))


def modules_follow(before: bytes, after: bytes) -> bool:
    """Whether a file of JavaScript imports as ES modules do what it required, and is else the same.

    Each name comes from the module that it came from, under the name that it had there.
    """
    if (bare := without_imports(before, "javascript")) is None:
        return False
    if (
        STRICT.sub(b"", bare).split()
        != STRICT.sub(b"", without_imports(after, "javascript") or b"").split()
    ):
        return False
    was, now = (
        [_bound(text) for _, _, text in places_of_imports(source, "javascript") or ()]
        for source in (before, after)
    )
    if not was or None in was or None in now:
        return False
    old, new = ({name for names in found for name in names or ()} for found in (was, now))
    return bool(old) and old == new and before != after


def _bound(text: str) -> set[tuple[str, str, str]] | None:
    """Names that an import binds, each with its module and its name there; None if unclear."""
    hit = REQUIRES.fullmatch(text.strip()) or IMPORTS.fullmatch(text.strip())
    if hit is None:
        return None
    module = re.sub(r"^node:|(?:\.[cm]?js|/index(?:\.[cm]?js)?)$", "", hit["module"])
    groups, names = hit.groupdict(), hit["names"] or ""
    whole = groups.get("whole") or ("" if names.startswith("{") else names)
    found = {(whole, module, groups.get("part") or "")} if whole else set()
    if names.startswith("{"):
        if groups.get("part"):
            return None
        for one in filter(None, map(str.strip, names[1:-1].split(","))):
            if (named := RENAMED.fullmatch(one)) is None:
                return None
            found.add((named["name"] or named["part"], module, named["part"]))
    return found
