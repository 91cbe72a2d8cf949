"""New files that an import of a test leads to in the place of one that stays as it was.

What the test asks is not what the program runs then: `page.js` beside the folder `page`.
"""

from __future__ import annotations

from collections.abc import Collection

from agentrunner.verification.inputs.references import References, family_of
from agentrunner.verification.inputs.tree import Tree
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.inspection.lost_files import BY_FILE

TAKEN = "{} imports {} now, and {}, which it imported, stays as it was"


def taken_place(trees: BothTrees, product: Collection[str]) -> str:
    """A file that an unchanged one outside of the product imports no more, with the new one; or "".

    `product` are the changed files of the product. Blocks. Raises GitFailed and OSError.
    """
    new = {one for one in product if one not in trees.old and family_of(one) in BY_FILE}
    if not new:
        return ""
    code = set(trees.code)
    same = {one for one in trees.old if trees.new.get(one) == trees.old[one]}
    before, added = (References(Tree(paths, trees.read)) for paths in (same, new))
    for path in sorted(same - code):
        if family_of(path) not in BY_FILE:
            continue
        for was, instead in zip(before.each_import(path), added.each_import(path), strict=False):
            if instead and (stays := was & code):
                return TAKEN.format(path, min(instead), min(stays))
    return ""
