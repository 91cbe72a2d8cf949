"""What the requirements want removed and is still there: files, options, calls."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.text.sentences import sentences
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.wanted_removals import removed_options
from agentrunner.verification.inputs.words_of_change import ARTICLE, NAMED_FILE, UNSURE
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.tokens import without_comments

STILL_HERE = "{} is still there, and the requirements say: {}"
STILL_CALLED = "{} still calls `{}`, and the requirements say: {}"
GOES = lazy_regex(
    rf"(?i)\b(?:delet|remov|drop)(?:e|es|ed|ing|s|ped|ping)?\s+{ARTICLE}{NAMED_FILE}[`'\"]*"
    r"(?=\s*(?:$|[,.;:)]|\b(?:and|as|since|because|which|afterwards|then)\b))"
)
"""An order to remove a file."""
CALLS_GO = lazy_regex(
    r"(?i)\b(?:delete|remove|drop|get\s+rid\s+of)\s+(?:the|all|all\s+the|every|any|remaining)\s+"
    r"`(?P<call>[A-Za-z_][\w.]*)(?:\(\))?`\s+(?:calls?|statements?|usages?|uses)\b"
)
"""An order to call something no more."""


def still_there(trees: BothTrees, asked: str) -> str:
    """What the text wants removed that the new tree has; else "".

    Blocks. Raises GitFailed and OSError.
    """
    for sentence in sentences(asked, semicolons=True):
        shown = " ".join(sentence.split())[:120]
        for option in removed_options(sentence):
            was, now = (_mentions(option, trees.code, one) for one in (trees.read_old, trees.read))
            if was and now >= was:
                return STILL_HERE.format(f"`{option}`", shown)
        if UNSURE.search(sentence):
            continue
        for path in (hit["path"] for hit in GOES.finditer(sentence)):
            if path in trees.old and path in trees.new:
                return STILL_HERE.format(path, shown)
        for call in (hit["call"] for hit in CALLS_GO.finditer(sentence)):
            for path in trees.changed:
                if _calls(call, path, trees.read_old) and _calls(call, path, trees.read):
                    return STILL_CALLED.format(path, call, shown)
    return ""


def _calls(name: str, path: str, read: ReadFile) -> bool:
    """Whether the code of a file calls a function."""
    called = re.compile(to_bytes(rf"(?<![\w.]){re.escape(name)}\s*\("))
    return bool(called.search(without_comments(path, read(path) or b"")))


def _mentions(text: str, paths: Collection[str], read: ReadFile) -> int:
    """How often files have a text that stands alone."""
    found = re.compile(to_bytes(alone(text)))
    return sum(len(found.findall(read(path) or b"")) for path in paths)
