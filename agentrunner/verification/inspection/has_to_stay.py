"""What the requirements want kept and is gone: an old name beside a new one, an option, a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from agentrunner.text.sentences import sentences
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.checks import ReadFile
from agentrunner.verification.inputs.wanted_moves import renames_in
from agentrunner.verification.inspection.both_trees import BothTrees, alone
from agentrunner.verification.syntax.tokens import (
    content,
    lexical_family,
    tokens,
    without_comments,
)

GONE = "{} is gone, and the requirements say: {}"
MUST = (
    r"(?:(?:also|still|must|should|shall|will|has\s+to|have\s+to|needs?\s+to|is\s+to|are\s+to)\s+)*"
)
STAYS = (
    rf"{MUST}(?:stays?|remains?|keeps?\s+(?:on\s+)?working|continues?\s+to\s+(?:work|exist)"
    r"|goes\s+on\s+working|go\s+on\s+working|works?(?=\s+(?:as\s+before|still|too|as\s+well))"
    r"|(?<=still\s)works?|(?:is|are|be)\s+(?:kept|retained|preserved)"
    r"|(?:(?:is|are)\s+still|(?<=still\s)be)\s+"
    r"(?:accepted|allowed|available|callable|importable|supported|understood|usable))\b"
)
KEEPS = r"(?:keep(?:s|ing)?|leav(?:e|es|ing)|retain(?:s|ing)?|preserv(?:e|es|ing))"
NAMED = r"`(?P<name>-{0,2}[A-Za-z_][\w./:-]*)(?:\(\))?`"
NAMED_STAYS = re.compile(rf"(?i){NAMED}\s+{STAYS}")
KEEPS_NAMED = re.compile(rf"(?i)\b{KEEPS}\s+(?:the\s+)?(?:\w+\s+)?{NAMED}")
OLD_NAME = re.compile(
    rf"(?i)\bold\s+(?:\w+\s+)?(?:names?|spellings?)\s+{STAYS}"
    rf"|\b{KEEPS}\s+(?:the\s+)?old\s+(?:\w+\s+)?(?:names?|spellings?)\b"
    r"|\b(?:the\s+)?old\s+(?:\w+\s+)?names?\s+as\s+an?\s+(?:\w+\s+)?alias"
    r"|(?:旧名|古い名前|元の名前|以前の名前)[^。\n]{0,20}(?:残[すし]|使え|別名|エイリアス)"
)
"""What a request to rename says of the name that is renamed."""
MAKES = "def|class|func|function|fn|const|let|var|type|struct|sub|enum"
DENIED = re.compile(r"(?i)\b(?:no|not|never|without|if|unless|nothing|nobody)\b|n['’]t\b")
JA_DENIED = re.compile(r"残さ|ない|不要|ません")


def gone_though_kept(trees: BothTrees, product: Collection[str], wanted: str) -> str:
    """What the text wants kept that the old product has and the new one has not; else "".

    `product` are the paths of the product that the work changed or made. Blocks. Raises GitFailed
    and OSError.
    """
    for name, shown in _kept_in(wanted):
        if name in trees.old or "/" in name:
            if name in trees.old and name not in trees.new:
                return GONE.format(name, shown)
            continue
        word = re.split(r"[.:]", name)[-1]
        was = any(_says(word, path, trees.read_old) for path in trees.changed)
        if was and not any(_says(word, path, trees.read) for path in product):
            others = set(trees.code).difference(trees.changed)
            if not any(_declares(word, path, trees.read) for path in others):
                return GONE.format(f"`{name}`", shown)
    return ""


def _kept_in(wanted: str) -> Iterator[tuple[str, str]]:
    """What has to stay by a text, and the sentence that says so."""
    renamed = renames_in(wanted)
    for sentence in sentences(wanted, semicolons=True):
        shown = " ".join(sentence.split())[:120]
        for hit in (*NAMED_STAYS.finditer(sentence), *KEEPS_NAMED.finditer(sentence)):
            if not DENIED.search(sentence[: hit.end()]):
                yield hit["name"], shown
        hit_old = OLD_NAME.search(sentence)
        if (
            hit_old
            and not DENIED.search(sentence[: hit_old.end()])
            and not JA_DENIED.search(sentence[hit_old.start() :])
        ):
            yield from ((name, shown) for name in renamed)


def _says(name: str, path: str, read: ReadFile) -> bool:
    """Whether the code of a file has a name, itself or as a whole text: `{"old": new}`.

    Of an option it is enough that a text has it: `"-q, --quiet"`. What a longer text or a comment
    says of a name makes none.
    """
    source = read(path) or b""
    family = lexical_family(path, source)
    found = tokens(source, family) if family is not None else ()
    if not found or name.startswith("-"):
        return bool(re.search(to_bytes(alone(name)), without_comments(path, source)))
    shown = to_bytes(name).decode("latin-1")  # as tokens have it
    return any(
        content(one.text) == shown if one.kind == "string" else one.text.lstrip("$@") == shown
        for one in found
    )


def _declares(name: str, path: str, read: ReadFile) -> bool:
    """Whether a file may be the one that makes a name."""
    word = alone(name)
    made = rf"\b(?:{MAKES})\b[^\n]*{word}|{word}\s*[:=]"
    return bool(re.search(to_bytes(made), without_comments(path, read(path) or b"")))
