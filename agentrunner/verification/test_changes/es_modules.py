"""Whether a file that requires modules says the same as an ES module. Pure.

A package that becomes one of ES modules needs other imports in its tests, and nothing else.
"""

from __future__ import annotations

import re

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.prd_checks import outside_of_checks
from agentrunner.verification.syntax.imports import places_of_imports, without_imports

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


def asks_for_es_modules(prd_text: str) -> bool:
    """Whether a PRD speaks of ES modules."""
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
