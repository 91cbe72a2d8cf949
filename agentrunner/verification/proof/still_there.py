"""What the requirements want removed and is still there: files, options, calls."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentrunner.git.snapshots import Snapshots
from agentrunner.text.sentences import sentences
from agentrunner.verification.checks import ReadFile
from agentrunner.verification.inputs.wanted_removals import removed_options
from agentrunner.verification.proof.left_as_it_was import ARTICLE, MOST_READ, PATH, UNSURE
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.tokens import without_comments

STILL_HERE = "{} is still there, and the requirements say: {}"
STILL_CALLED = "{} still calls `{}`, and the requirements say: {}"
GOES = re.compile(
    rf"(?i)\b(?:delet|remov|drop)(?:e|es|ed|ing|s|ped|ping)?\s+{ARTICLE}{PATH}[`'\"]*"
    r"(?=\s*(?:$|[,.;:)]|\b(?:and|as|since|because|which|afterwards|then)\b))"
)
"""An order to remove a file."""
CALLS_GO = re.compile(
    r"(?i)\b(?:delete|remove|drop|get\s+rid\s+of)\s+(?:the|all|all\s+the|every|any|remaining)\s+"
    r"`(?P<call>[A-Za-z_][\w.]*)(?:\(\))?`\s+(?:calls?|statements?|usages?|uses)\b"
)
"""An order to call something no more."""


def still_there(
    snapshots: Snapshots, old_tree: str, new_tree: str, product: Collection[str], asked: str
) -> str:
    """What the text wants removed that the new tree has; else "".

    `product` are the old files that decide nothing. Blocks. Raises GitFailed and OSError.
    """
    old, new = snapshots.list(old_tree), snapshots.list(new_tree)
    read_old, read = snapshots.reader(old_tree), snapshots.reader(new_tree)
    code = [one for one in product if language_of(one)][:MOST_READ]
    changed = [path for path in code if old[path] != new.get(path)]
    for sentence in sentences(asked, semicolons=True):
        shown = " ".join(sentence.split())[:120]
        for option in removed_options(sentence):
            was, now = (_mentions(option, code, one) for one in (read_old, read))
            if was and now >= was:
                return STILL_HERE.format(f"`{option}`", shown)
        if UNSURE.search(sentence):
            continue
        for path in (hit["path"] for hit in GOES.finditer(sentence)):
            if path in old and path in new:
                return STILL_HERE.format(path, shown)
        for call in (hit["call"] for hit in CALLS_GO.finditer(sentence)):
            for path in changed:
                if _calls(call, path, read_old) and _calls(call, path, read):
                    return STILL_CALLED.format(path, call, shown)
    return ""


def _calls(name: str, path: str, read: ReadFile) -> bool:
    """Whether the code of a file calls a function."""
    called = re.compile(rf"(?<![\w.]){re.escape(name)}\s*\(".encode())
    return bool(called.search(without_comments(path, read(path) or b"")))


def _mentions(text: str, paths: Collection[str], read: ReadFile) -> int:
    """How often files have a text that stands alone."""
    alone = re.compile(rf"(?<![\w-]){re.escape(text)}(?![\w-])".encode())
    return sum(len(alone.findall(read(path) or b"")) for path in paths)
