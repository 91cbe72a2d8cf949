"""Whether a change of a file leaves some of its functions as they were, with all that they use."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from tree_sitter import Node

from agentrunner.verification.syntax.calls import names_changed, names_declared
from agentrunner.verification.syntax.context import definitions_in
from agentrunner.verification.syntax.functions import functions_of
from agentrunner.verification.syntax.languages import Parsed, inside, is_comment, parse

WORD = re.compile(r"[^\W\d]\w*")
IMPORTS = re.compile(r"import|use_declaration|require")


def is_beside(before: bytes, after: bytes, language: str, names: Collection[str]) -> bool:
    """Whether nothing that changed can be felt by the functions of these names.

    They and the functions, types and constants of the file that they use stay as they are, and new
    code does no more than call these and what else the file defines: what it imports could exchange
    them from elsewhere. Statements outside of functions stay. Not if one of the versions has no
    syntax tree.
    """
    was, now = parse(before, language), parse(after, language)
    if was is None or now is None:
        return False
    words = _words_used(was, names, names_declared(before, language))
    used = words & names_declared(before, language)
    changed = names_changed(before, after, language) | names_changed(after, before, language)
    if not used or not used.isdisjoint(changed):
        return False
    if _loose_statements(was, now):
        return False
    old = Counter(before.decode("utf-8", "replace").splitlines())
    lines = Counter(after.decode("utf-8", "replace").splitlines()) - old
    handled = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(used)))})(?!\w|\()")
    imported = _imported_words(now)
    return not any(
        handled.search(line) or not imported.isdisjoint(WORD.findall(line)) for line in lines
    )


def _words_used(parsed: Parsed, names: Collection[str], declared: Collection[str]) -> set[str]:
    """Return the words of these functions, and of all in the file that these words lead to."""
    texts: dict[str, list[str]] = {}
    for function in functions_of(parsed):
        name = function.name.rpartition(".")[2]
        texts.setdefault(name, []).append(parsed.text(function.node))
    for name, node in definitions_in(parsed):
        texts.setdefault(name, []).append(parsed.text(node))
    found, todo = set(names), list(names)
    while todo:
        for text in texts.get(todo.pop(), ()):
            new = set(WORD.findall(text)) - found
            found |= new
            todo += [one for one in new if one in declared]
    return found


def _loose_statements(was: Parsed, now: Parsed) -> list[str]:
    """Return the statements outside of functions and definitions that only one version has."""
    old, new = Counter(_outside(was)), Counter(_outside(now))
    return list(((old - new) + (new - old)).keys())


def _outside(parsed: Parsed) -> list[str]:
    known = [one.node for one in functions_of(parsed)] + [
        node for _, node in definitions_in(parsed)
    ]
    return [
        f"{node.type} {' '.join(parsed.text(node).split())}"
        for node in parsed.root.named_children
        if not is_comment(node) and not any(_is_all_of(node, one) for one in known)
    ]


def _is_all_of(statement: Node, definition: Node) -> bool:
    """Whether a statement is a definition, at most exported or decorated."""
    return inside(statement, definition) and (
        statement.id == definition.id
        or statement.type in ("export_statement", "decorated_definition", "lexical_declaration")
        or inside(definition, statement)
    )


def _imported_words(parsed: Parsed) -> set[str]:
    """Return the words of the file's imports, among them the names that they bind."""
    found: set[str] = set()
    for statement in _outside(parsed):
        kind, _, text = statement.partition(" ")
        if IMPORTS.search(kind) or IMPORTS.search(text):
            found |= set(WORD.findall(text))
    return found
