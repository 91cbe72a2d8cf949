"""Which names a test uses, and which names a change adds or alters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tree_sitter import Node

from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.context import (
    NAMES,
    context_of,
    definitions_in,
    imports_in,
    names_at,
)
from agentrunner.verification.syntax.edits import only_new
from agentrunner.verification.syntax.functions import altered, functions_of, normal
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    arguments_of,
    field,
    inside,
    parse,
    parts_of,
    walk,
)
from agentrunner.verification.syntax.test_spans import Found

BINDING_FIELDS = {
    "assignment": "left", "for_statement": "left", "for_in_statement": "left",
    "variable_declarator": "name", "short_var_declaration": "left", "range_clause": "left",
    "let_declaration": "pattern", "as_pattern": "alias", "for_in_clause": "left",
    "enhanced_for_statement": "name",
}  # fmt: skip


def names_called(found: Found) -> set[str]:
    """Return the names that a test uses: functions, references and members.

    Helpers, fixtures and set-up of the same file are followed one level. Names bound by the test
    itself (variables, parameters) are left out. An imported name is listed under both its local
    name and its name at the origin.
    """
    parsed = found.parsed
    context = context_of(parsed)
    nodes = [found.whole, *context.set_up(found)]
    if found.function not in nodes and not inside(found.whole, found.function):
        nodes.append(found.function)
    names: set[str] = set()
    for node in [*nodes, *context.followed(nodes, 1)]:
        names |= _free_names(parsed, node)
    for bound, origin in imports_in(parsed).items():
        if bound in names:
            names.update(re.findall(r"[A-Za-z_]\w*$", origin))
    return names


def asks_nothing(found: Found) -> bool:
    """Whether a test has no name but those by which it asserts constants, also not of a set-up, an
    import or a decorator: `assert True`. `assert False` asks for something to be done."""
    parsed, stated = found.parsed, asserts_of(found)
    operands = [side for one in stated for side in one.operands]
    if parsed.language in SCRIPTS:  # the whole of `expect(given).toBe(1)` is an operand
        operands = [part for one in operands for call in walk(one) for part in arguments_of(call)]
    given = [] if parsed.language != "python" else parts_of(found.function, "parameters")
    names = (one for part in (found.body, *given) for one in walk(part) if one.type in NAMES)
    return (
        not any(one.type in ("decorator", "false") for one in walk(found.whole))
        and not context_of(parsed).set_up(found)
        and all(
            parsed.text(one) == "self"
            or (
                any(inside(each.node, one) for each in stated)
                and not any(inside(side, one) for side in operands)
            )
            for one in names
        )
    )


def _free_names(parsed: Parsed, node: Node) -> set[str]:
    """Return the names at a node that it does not bind itself; members always count."""
    bound: set[str] = set()
    for one in walk(node):
        binder = BINDING_FIELDS.get(one.type)
        target = field(one, binder) if binder is not None else None
        if target is not None and target.type not in (
            "attribute",
            "subscript",
            "member_expression",
        ):
            bound |= names_at(parsed, target)
        given = field(one, "parameters") or field(one, "parameter")
        if given is not None:
            bound |= _parameter_names(parsed, given)
    name = field(node, "definition", "name") or field(node, "name")
    if name is not None:
        bound.add(parsed.text(name))
    free = {parsed.text(one) for one in walk(node) if one.type in NAMES}
    return (free - bound) | {parsed.text(one) for one in walk(node) if _is_member(one)}


def _parameter_names(parsed: Parsed, given: Node) -> set[str]:
    """Return the names of parameters, without those of their types and defaults."""
    names: set[str] = set()
    for one in [given] if given.type == "identifier" else given.named_children:
        target = field(one, "pattern") or field(one, "name") or one
        names |= {parsed.text(target)} if target.type == "identifier" else set()
        if target.type.endswith("pattern"):
            names |= names_at(parsed, target)
        if target.type.startswith("typed") and target.named_children:
            names.add(parsed.text(target.named_children[0]))
    return names


def _is_member(node: Node) -> bool:
    if node.type in ("property_identifier", "field_identifier"):
        return True
    parent = node.parent
    if node.type != "identifier" or parent is None:
        return False
    if parent.type == "attribute":
        return field(parent, "attribute") == node
    return parent.type == "method_invocation" and field(parent, "name") == node


def names_changed(before: bytes | None, after: bytes, language: str) -> set[str]:
    """Return the names of functions, types and constants that were added or altered.

    Only last names: a method is listed without its class, unless the class was altered outside its
    methods. A function without a name that is passed to a call is listed under that call. Empty if
    one of the versions has no syntax tree.
    """
    new = parse(after, language)
    old = parse(before, language)
    if new is None or (before is not None and old is None):
        return set()
    names: set[str] = set()
    for function in altered(old, new):
        inner = [one for one in functions_of(new) if inside(function.node, one.node)]
        for one in inner:
            plain = re.fullmatch(r"(?:[\w$]+\.)*([A-Za-z_$][\w$]*)", one.name)
            names.update([plain[1]] if plain else re.findall(r"^[A-Za-z_$][\w$]*", one.name))
    declared = _declared(old) if old is not None else ()
    return names | {name for name, _ in only_new(declared, _declared(new), lambda one: one)}


def users_of(
    source: bytes, language: str, names: Collection[str], *, through: bool = False
) -> set[str]:
    """Return the names of the functions of a source that use one of these names.

    With `through` also of those that use these functions, and of their classes.
    """
    parsed = parse(source, language)
    if parsed is None or not names:
        return set()
    used = {
        one.name: {parsed.text(leaf) for leaf in walk(one.node) if not leaf.named_child_count}
        for one in functions_of(parsed)
    }
    known, found = set(names), set[str]()
    while users := [name for name, words in used.items() if not words.isdisjoint(known)]:
        for name in users:
            del used[name]
            found |= set(name.split(".")) if through else {name.rpartition(".")[2]}
        if not through:
            break
        known |= found
    return found


def names_declared(source: bytes, language: str) -> set[str]:
    """Return the last names of functions, types and constants that a source defines."""
    parsed = parse(source, language)
    if parsed is None:
        return set()
    functions = {one.last_name for one in functions_of(parsed)}
    return functions | {name for name, _ in definitions_in(parsed)}


def _declared(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """Yield classes, types and constants with their text, without the functions in them."""
    functions = functions_of(parsed)
    nodes = {one.node.id for one in functions}
    values = frozenset(nodes)
    for name, node in definitions_in(parsed):
        inner = field(node, "definition") or node
        if inner.id in nodes or (field(inner, "value") or inner).id in nodes:
            continue
        yield name, normal(parsed, node, values)
