"""Code next to the product that only tests use: examples, drivers, package helpers. Pure.

A driver that calls the code, and an example that a test finds by a pattern, look like library
modules. What was asked for tells them apart, if it names other code and not them. Nothing is put
back because of this: such code may change along with the work, but its change proves nothing.
"""

from __future__ import annotations

import re

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.verification.inputs.fixtures import RESOLVED, Fixtures
from agentrunner.verification.inputs.helper_code import Asked
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.tree import folder_of

KNOWN = (RESOLVED | {"go"}) - {"shell", "c"}
"""Languages for which it is known what product code uses."""
STARTED = lazy_regex(r"^#!|__name__\s*==|require\.main\b|import\.meta\.main\b|^func main\(", re.M)
"""What makes a file a program of its own."""
MOST = 200
"""The most files of a folder that tests find by a pattern."""


def used_by_tests_alone(fixtures: Fixtures, asked: Asked) -> frozenset[str]:
    """Return such files; none if nothing that was asked for names code of the product."""
    product = fixtures.product
    if not asked or not product.families & KNOWN:
        return frozenset()
    texts = {path: fixtures.context.tree.text(path) or "" for path in product.sources}
    by_pattern, excused = _found_by_pattern(fixtures, asked, texts)
    named = {path for path in texts if path not in by_pattern and asked.names(path, texts[path])}
    if not named:
        return frozenset()
    unnamed = texts.keys() - named - excused
    found = {
        path
        for path in unnamed
        if family_of(path) in KNOWN
        and path not in product.entries
        and (path in by_pattern or not STARTED.search(texts[path]))
        and not fixtures.context.product_programs & {path}
    }
    reached = fixtures.reached | by_pattern
    size = -1
    while size != len(found):
        size = len(found)
        users = {path: product.imported.get(path, set()) for path in found}
        found = {
            path for path in found if users[path] <= found and (users[path] or path in reached)
        }
    return frozenset(found)


def _found_by_pattern(
    fixtures: Fixtures, asked: Asked, texts: dict[str, str]
) -> tuple[set[str], set[str]]:
    """Return code in folders that only tests name, and code that product code or the PRD names.

    For a file, a passing word in the PRD is not enough: its whole name must occur.
    """
    tree = fixtures.context.tree
    found: set[str] = set()
    excused: set[str] = set()
    for test in sorted(fixtures.tests):
        for folder in fixtures.references.mentioned(test):
            name = folder.rpartition("/")[2]
            if folder not in tree.folders or f"{test}/".startswith(f"{folder}/"):
                continue
            code = {path for path in tree.under(folder) if path in texts}
            word = re.compile(alone(name))
            others = [text for path, text in texts.items() if folder_of(path) != folder]
            if asked.speaks_of(name) or len(code) > MOST or any(map(word.search, others)):
                excused |= code
            else:
                found |= code
    return {path for path in found if not asked.writes_out(path)} - excused, excused
