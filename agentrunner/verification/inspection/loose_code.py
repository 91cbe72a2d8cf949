"""New code that nothing uses and nobody asked for by name, while what was asked about stays.

"A cart above 100 euros gets 10 percent off" is not met by a function beside the cart, however well
that is tested.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inspection.both_trees import MOST_READ, BothTrees
from agentrunner.verification.subject_words import has_any
from agentrunner.verification.syntax.functions import altered, functions_of
from agentrunner.verification.syntax.languages import Parsed, is_comment, language_of, parse
from agentrunner.verification.syntax.regions import is_in_test

LOOSE = (
    "no code of the project uses `{}` of {}, which is new, and what the requirements speak of"
    " ({}) is as it was"
)
TEXTS = (".md", ".rst", ".txt")


def loose_code(trees: BothTrees, asked: str) -> str:
    """What is wrong with work that consists of new code which stands beside everything; else "".

    Nothing is wrong where any old code was changed, where code of the work runs when its file is
    loaded, where something else names or uses it, or where the text speaks of nothing that was
    there. Blocks.
    """
    if not all(one.isascii() for one in asked if one.isalpha()):
        return ""  # code has English words: another language cannot be compared with it
    read_old, read = trees.read_old, trees.read
    code = [path for path in trees.work if not path.endswith(TEXTS)]
    added: list[tuple[str, str]] = []
    stood: set[str] = set()
    for path in code:
        before, after, language = read_old(path), read(path), language_of(path)
        new = parse(after, language) if after is not None and language else None
        old = parse(before, language) if before is not None and language else None
        if new is None or (before is not None and old is None):
            return ""
        if before is None:
            # What a new file does when it is loaded may hang it in somewhere.
            loads = any("expression" in one.type or "if_" in one.type for one in _beside(new))
            names = _names(new)
            names = [*names, re.split(r"[./]", path.removesuffix(".py"))[-1]] if names else []
        else:
            assert old is not None
            names, loads = _names_added(old, new), _differs_beside(old, new)
            stood |= {part for one in functions_of(old) for part in one.name.split(".")}
        if loads or not names:
            return ""
        added += [(name, path) for name in names]
    if not added:
        return ""
    texts = [read(path) or b"" for path in code]
    for path in [one for one in trees.product if one not in trees.work][:MOST_READ]:
        text, language = read(path), language_of(path)
        if text is None:
            continue
        texts.append(text)
        parsed = parse(text, language) if language else None
        stood |= set(_names(parsed)) if parsed is not None else set()
    spoken = [name for name in sorted(stood) if len(name) > 2 and _is_spoken_of(name, asked)]
    if not spoken:
        return ""
    known = {word for name in stood for word in _words(name)}
    for name, _ in added:
        own = [word for word in _words(name) if not has_any([word], known)]
        if has_any(own, _words(asked)) or _is_spoken_of(name, asked):
            return ""
    names = [name for name, _ in added]
    for name in names:
        word = re.compile(to_bytes(rf"(?<!\w){re.escape(name)}(?!\w)"))
        if sum(len(word.findall(text)) for text in texts) > 1:
            return ""  # something of the product names it beside its own head
    return LOOSE.format(*added[0], ", ".join(spoken[:3]))


def _names(parsed: Parsed) -> list[str]:
    """The names of a file's functions and classes, without what surrounds them."""
    found = {part for one in functions_of(parsed) for part in one.name.split(".")[:1]}
    return sorted(name for name in found if re.fullmatch(r"\w+", name))


def _names_added(old: Parsed, new: Parsed) -> list[str]:
    """The outermost names of functions that are new, none where an old function was changed."""
    before = {one.name for one in functions_of(old)}
    changed = altered(old, new)
    after = {one.name for one in functions_of(new)}
    if any(one.name in before for one in changed) or not before <= after:
        return []
    if any(one.name.split(".")[0] in {name.split(".")[0] for name in before} for one in changed):
        return []  # a method of a class that stood
    return sorted({one.name.split(".")[0] for one in changed})


def _differs_beside(old: Parsed, new: Parsed) -> bool:
    """Whether statements beside functions and imports differ."""
    before, after = ([" ".join(p.text(one).split()) for one in _beside(p)] for p in (old, new))
    return before != after


def _beside(parsed: Parsed) -> list[Node]:
    """The top-level statements that are no functions, classes, imports or comments."""
    kinds = ("function", "class", "import", "method", "package", "decorated", "func", "impl")
    return [
        one
        for one in parsed.root.named_children
        if not is_comment(one)
        and not any(kind in one.type for kind in kinds)
        and not is_in_test(parsed, one)
        and not (one.type == "expression_statement" and "string" in one.named_children[0].type)
    ]


def _is_spoken_of(name: str, asked: str) -> bool:
    return bool(re.search(rf"(?i)(?<![^\W_]){re.escape(name)}s?(?![^\W_])", asked))


def _words(text: str) -> list[str]:
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).replace("_", " ")
    return [one.casefold() for one in re.findall(r"[^\W\d_]{3,}", parts)]
