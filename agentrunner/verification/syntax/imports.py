"""Run an old test file against new code: its text with the imports of the new file. Pure."""

from __future__ import annotations

import builtins
import re
from collections.abc import Collection, Mapping
from itertools import zip_longest

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes, to_text
from agentrunner.verification.syntax.context import imports_in
from agentrunner.verification.syntax.edits import Edit, applied
from agentrunner.verification.syntax.languages import SCRIPTS, Parsed, parse
from agentrunner.verification.syntax.words import identifiers

_IMPORTS = frozenset(
    "import_statement import_from_statement import_declaration package_clause use_declaration"
    " package_declaration".split()
)
_ENDING = lazy_regex(r"\.(?:[cm]?[jt]sx?|json|node)\b")
_DEFINES = frozenset(
    "function_definition class_definition function_declaration class_declaration function_item"
    " assignment variable_declarator generator_function_declaration".split()
)


def carried(before: bytes, after: bytes, language: str) -> bytes | None:
    """Return `before` with the imports of `after`.

    Newly imported names replace those no longer imported, if there are as many of them.

    None if one of the two cannot be parsed, or if only `after` imports anything.
    """
    old, new = parse(before, language), parse(after, language)
    if old is None or new is None or old.root.has_error or new.root.has_error:
        return None
    places, wanted = _imports(old), _imports(new)
    if not places:
        return before if not wanted else None
    text = "\n".join(new.text(node) for node in wanted)
    edits = [Edit(node.start_byte, node.end_byte, "") for node in places[1:]]
    edits.append(Edit(places[0].start_byte, places[0].end_byte, text))
    was, now = imports_in(old), imports_in(new)
    removed = [name for name in was if name not in now]
    added = [name for name in now if name not in was]
    made = applied(before, edits)
    if len(removed) == len(added) and text:
        head, rest = made[: places[0].start_byte + len(to_bytes(text))], made
        body = to_text(rest[len(head) :])
        for name, new_name in zip(removed, added, strict=True):
            body = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", new_name, body)
        made = head + to_bytes(body)
    return made


def places_of_imports(source: bytes, language: str) -> list[tuple[int, int, str]] | None:
    """Return where the imports of a file begin and end, with their text.

    None if the file cannot be parsed, also in the next two functions.
    """
    parsed = parse(source, language)
    if parsed is None or parsed.root.has_error:
        return None
    return [(node.start_byte, node.end_byte, parsed.text(node)) for node in _imports(parsed)]


def lines_of_imports(source: bytes, language: str) -> list[str] | None:
    """Return the lines of a file's imports, stripped."""
    places = places_of_imports(source, language)
    if places is None:
        return None
    lines = (line.strip() for _, _, text in places for line in text.splitlines())
    return [line for line in lines if line]


def without_imports(source: bytes, language: str) -> bytes | None:
    """Return a file without the lines of its imports."""
    places = places_of_imports(source, language)
    if places is None:
        return None
    ends = {end: end + (source[end : end + 1] == b"\n") for _, end, _ in places}
    return applied(source, (Edit(start, ends[end], "") for start, end, _ in places))


def nameless_imports(source: bytes, language: str) -> list[str]:
    """Return the imports that bind no name, or all names of a module, in order.

    They only let a module run: `import "./x.js"`, `from x import *`.
    """
    return [
        " ".join(text.split())
        for _, _, text in places_of_imports(source, language) or ()
        if "*" in text or not imported(to_bytes(text), language)
    ]


def defined_instead(before: bytes, after: bytes, language: str) -> list[str]:
    """Return names that the old file imports and the new file defines itself."""
    old, new = parse(before, language), parse(after, language)
    if old is None or new is None:
        return []
    dropped = imports_in(old).keys() - imports_in(new).keys()
    return sorted(dropped & set(_defined(new)))


def imported(source: bytes, language: str) -> dict[str, str]:
    """Return where each imported name comes from; none if a file imports all names of a module."""
    parsed = parse(source, language)
    if parsed is None or any("*" in parsed.text(node) for node in _imports(parsed)):
        return {}
    return imports_in(parsed)


def defined(source: bytes, language: str) -> set[str]:
    """Return the names that the top-level statements of a file define or import."""
    parsed = parse(source, language)
    return set() if parsed is None else {*_defined(parsed), *imports_in(parsed)}


def bound_otherwise(
    before: bytes,
    after: bytes,
    language: str,
    asked: str,
    went: Mapping[str, Collection[str]] | None = None,
) -> list[str]:
    """Return names used in the old file that the imports of the new file bind to something else.

    A name may come from where its module moved: from a module of the same name, from one that
    `asked` writes as code, as a module or in a path, or from a part of the path to which `went`
    says (by the old module's name) that the file was moved. Any other origin counts as something
    else. So does an import of a name that the old file uses without importing or defining it,
    unless `asked` writes that name; Python built-ins always count.
    """
    old, new = parse(before, language), parse(after, language)
    if old is None or new is None:
        return []
    paths = re.findall(r"[\w@-]*(?:[./][\w@-]+)+", asked, re.ASCII)
    written = identifiers(asked) | {part for one in paths for part in re.findall(r"\w+", one)}
    was, now = imports_in(old), imports_in(new)
    moved = {
        name: {part for one in _end_of(origin) for part in (went or {}).get(one, ())}
        for name, origin in was.items()
    }
    found = [
        name
        for name in was.keys() & now.keys()
        if was[name] != now[name]
        and any(
            there not in (here, *written, *moved.get(name, ()))
            for here, there in zip_longest(_end_of(was[name]), _end_of(now[name]), fillvalue="")
        )
    ]
    used = set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", old.text(old.root)))
    if language == "python":
        written -= set(dir(builtins))
    own = {*was, *_defined(old)}
    return sorted([*found, *(name for name in now if name in used - own - written)])


def _end_of(imported: str) -> list[str]:
    """Return what is imported, and the last part of the module it comes from."""
    parts = re.findall(r"[\w-]+", _ENDING.sub("", imported.removeprefix("require")))
    return list(reversed(parts))[:2]


def _imports(parsed: Parsed) -> list[Node]:
    """Return the imports at the top of a file, in order."""
    return [
        node
        for node in parsed.root.named_children
        if node.type in _IMPORTS or (parsed.language in SCRIPTS and _is_require(parsed, node))
    ]


def _is_require(parsed: Parsed, node: Node) -> bool:
    if node.type not in ("lexical_declaration", "variable_declaration"):
        return False
    return all(parsed.text(one, "value").startswith("require(") for one in node.named_children)


def _defined(parsed: Parsed) -> list[str]:
    """Return the names that the top-level statements of a file define."""
    found: list[str] = []
    nodes = list(parsed.root.named_children)
    while nodes:
        node = nodes.pop()
        if node.type in (
            "expression_statement",
            "lexical_declaration",
            "variable_declaration",
            "export_statement",
            "decorated_definition",
        ):
            nodes += node.named_children
        elif node.type in _DEFINES:
            found += filter(None, [parsed.text(node, "name") or parsed.text(node, "left")])
    return found
