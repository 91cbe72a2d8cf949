"""Put functions of a Python file back as they were, or take functions and classes out of it."""

from __future__ import annotations

from collections.abc import Collection

from tree_sitter import Node

from agentrunner.verification.syntax.edits import Edit, applied, replaced, still_parses
from agentrunner.verification.syntax.functions import functions_of
from agentrunner.verification.syntax.languages import Parsed, parse, walk


def with_former_functions(
    before: bytes | None, after: bytes, names: Collection[str]
) -> bytes | None:
    """Return `after` with these functions (`Cart.total`) as `before` has them, or without them.

    Of several with one name (a property's) each is as it was where there are as many as before,
    else the last one decides. None where one is nowhere in the text, or stands elsewhere on its
    line than before.
    """
    parsed, old = parse(after, "python"), parse(before or b"", "python")
    if parsed is None or old is None:
        return None
    now, was = _by_name(parsed), _by_name(old)
    edits: list[Edit] = []
    for name in names:
        if name not in now:
            return None
        former: list[Node | None] = [*was.get(name, [])]
        if any(one.start_point[1] != now[name][-1].start_point[1] for one in was.get(name, [])):
            return None
        if len(former) != len(now[name]):
            former = [*[None] * (len(now[name]) - 1), *(former[-1:] or [None])]
        edits += [
            replaced(one, old.text(was_there) if was_there is not None else "pass")
            for one, was_there in zip(now[name], former, strict=True)
        ]
    made = applied(after, edits)
    return made if made != after and still_parses(parsed, made) else None


def without_classes(source: bytes, names: Collection[str]) -> bytes | None:
    """Return a Python file without the classes of these names; None where it lacks one of them."""
    parsed = parse(source, "python")
    if parsed is None:
        return None
    found: dict[str, list[Node]] = {}
    for node in walk(parsed.root):
        name = parsed.text(node, "name")
        if node.type == "class_definition" and name in names:
            found.setdefault(name, []).append(_whole(node))
    if not found.keys() >= set(names):
        return None
    return applied(source, [replaced(one, "pass") for nodes in found.values() for one in nodes])


def _whole(node: Node) -> Node:
    """A definition with its decorators."""
    around = node.parent
    return around if around is not None and around.type == "decorated_definition" else node


def _by_name(parsed: Parsed) -> dict[str, list[Node]]:
    """The definitions of each function, decorators included."""
    found: dict[str, list[Node]] = {}
    for function in functions_of(parsed):
        found.setdefault(function.name, []).append(_whole(function.node))
    return found
