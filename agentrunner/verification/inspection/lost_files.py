"""Files that the work took away and the product still imports, and new ones in the place of others.

Whoever imports such a file fails, though no test may ask for it.
"""

from __future__ import annotations

import posixpath
import re

from agentrunner.verification.inputs.references import References, family_of
from agentrunner.verification.inputs.tree import Tree
from agentrunner.verification.inspection.both_trees import MOST_READ, BothTrees
from agentrunner.verification.syntax.code_equality import is_same_code
from agentrunner.verification.syntax.languages import language_of

TAKEN = "{} imports {} now, and {}, which it imported, stays as it was"

LOST = "{} still imports {}, which the work took away"
HIDDEN = "{} is loaded in the place of {}, which stays as it was, and nobody can read it"
NATIVE = (".so", ".pyd", ".node")
"""Endings of machine code that is imported as a source of its name is."""
BY_FILE = ("python", "javascript", "c", "ruby")
"""Languages in which an import names a file."""


def lost_file(trees: BothTrees) -> str:
    """What an import of the product leads to and only the old tree has; else "".

    Blocks. Raises GitFailed and OSError.
    """
    gone = {one for one in trees.old if one not in trees.new and family_of(one) in BY_FILE}
    if not gone:
        return ""
    now = References(Tree(trees.new, trees.read))
    before = References(Tree({*trees.new, *gone}, trees.read))
    for path in dict.fromkeys([*trees.code, *trees.work]):
        if path not in trees.new or family_of(path) not in BY_FILE:
            continue
        for lost in sorted(before.imports(path)[0] & gone):
            name, instead = _name_of(lost), now.imports(path)[0]
            word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
            if not any(
                _name_of(one) == name or word.search(now.tree.text(one) or "") for one in instead
            ):
                return LOST.format(path, lost)
    return ""


def _name_of(path: str) -> str:
    """The name by which imports know a file: its own, or its folder's."""
    stem = path.rpartition("/")[2].partition(".")[0]
    return posixpath.basename(posixpath.dirname(path)) if stem in ("__init__", "index") else stem


def _place_of(path: str) -> tuple[str, str]:
    return posixpath.dirname(path), _name_of(path)


def taken_place(trees: BothTrees) -> str:
    """A file that an unchanged one outside of the product imports no more, with the new one; or "".

    Blocks. Raises GitFailed and OSError.

    What the test asks is not what the program runs then: `page.js` beside the folder `page`.
    """
    code = frozenset(trees.product)
    for path in (one for one in trees.work if one not in trees.old and one.endswith(NATIVE)):
        hidden = (one for one in sorted(code) if _place_of(one) == _place_of(path))
        for source in (one for one in hidden if _stays(one, trees)):
            return HIDDEN.format(path, source)
    new = {one for one in trees.work if one not in trees.old and family_of(one) in BY_FILE}
    if not new:
        return ""
    others = [
        path
        for path in sorted(trees.old)
        if path not in code and family_of(path) in BY_FILE
        and trees.new.get(path) == trees.old[path]
    ]  # fmt: skip
    before, after = (References(Tree(paths, trees.read)) for paths in (trees.old, trees.new))
    for path in others[:MOST_READ]:
        for was, now in zip(before.each_import(path), after.each_import(path), strict=True):
            stays = [one for one in sorted((was & code) - now) if _stays(one, trees)]
            if stays and (instead := now & new):
                return TAKEN.format(path, min(instead), stays[0])
    return ""


def _stays(path: str, trees: BothTrees) -> bool:
    """Whether a file is there as it was, but for comments and layout."""
    if path not in trees.new or trees.new[path] == trees.old[path]:
        return path in trees.new
    language, before, after = language_of(path), trees.read_old(path), trees.read(path)
    if language is None or before is None or after is None:
        return False
    return is_same_code(before, after, language)
