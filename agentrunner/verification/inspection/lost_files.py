"""Files that the work took away and that its own product still imports.

Whoever imports such a file fails, though no test may ask for it.
"""

from __future__ import annotations

import posixpath
import re

from agentrunner.verification.inputs.references import References, family_of
from agentrunner.verification.inputs.tree import Tree
from agentrunner.verification.inspection.both_trees import BothTrees

LOST = "{} still imports {}, which the work took away"
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
