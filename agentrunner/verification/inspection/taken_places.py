"""New files that an import of a test leads to in the place of one that stays as it was.

What the test asks is not what the program runs then: `page.js` beside the folder `page`.
"""

from __future__ import annotations

from agentrunner.verification.inputs.references import References, family_of
from agentrunner.verification.inputs.tree import Tree
from agentrunner.verification.inspection.both_trees import MOST_READ, BothTrees
from agentrunner.verification.inspection.lost_files import BY_FILE
from agentrunner.verification.syntax.code_equality import is_same_code
from agentrunner.verification.syntax.languages import language_of

TAKEN = "{} imports {} now, and {}, which it imported, stays as it was"


def taken_place(trees: BothTrees) -> str:
    """A file that an unchanged one outside of the product imports no more, with the new one; or "".

    Blocks. Raises GitFailed and OSError.
    """
    new = {one for one in trees.work if one not in trees.old and family_of(one) in BY_FILE}
    if not new:
        return ""
    code = frozenset(trees.product)
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
