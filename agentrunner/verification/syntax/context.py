"""What a test depends on within its file: set-up around it, helpers, fixtures, imported names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tree_sitter import Node

from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    call_around,
    enclosing,
    field,
    inside,
    once_per_file,
    parts_of,
    walk,
    with_decorators,
)
from agentrunner.verification.syntax.scripts import HOOKS, SUITES, TESTS, callee_names
from agentrunner.verification.syntax.test_finder import around, marks_of, standing
from agentrunner.verification.syntax.test_spans import Found

NAMES = frozenset(
    "identifier property_identifier field_identifier type_identifier "
    "shorthand_property_identifier package_identifier private_property_identifier".split()
)
"""Node types that are a name."""
_DEFINED = frozenset(
    "function_definition class_definition function_declaration class_declaration "
    "generator_function_declaration function_item struct_item enum_item const_item static_item "
    "type_item trait_item macro_definition method_declaration type_spec const_spec var_spec "
    "variable_declarator assignment enum_declaration record_declaration interface_declaration "
    "type_alias_declaration abstract_class_declaration union_item".split()
)
_CLASSES = ("class_definition", "class_declaration")
_MODULE_HOOKS = frozenset(
    "setup_module teardown_module setup_function teardown_function setUpModule tearDownModule "
    "pytestmark TestMain".split()
)


class FileDefinitions:
    """The definitions of one file by name, without tests and test classes."""

    def __init__(self, parsed: Parsed) -> None:
        self._parsed = parsed
        self._tests = {found.whole.id for found in standing(parsed)}
        self.defined: dict[str, list[Node]] = {}
        for name, node in definitions_in(parsed):
            if node.id not in self._tests and not self._holds_tests(node):
                self.defined.setdefault(name, []).append(node)

    def _holds_tests(self, node: Node) -> bool:
        """Whether a definition is a class of tests; its set-up is treated apart from its tests."""
        if node.type not in _CLASSES:
            return False
        return any(one.id in self._tests for one in walk(node))

    def set_up(self, found: Found) -> list[Node]:
        """Return what runs or is set around a test without being named in it, in file order."""
        nodes = [
            node for name in _MODULE_HOOKS & self.defined.keys() for node in self.defined[name]
        ]
        if found.parsed.language in SCRIPTS:
            nodes += self._hooks(found)
        else:
            for outer in around(found.whole, *_CLASSES):
                nodes += self._members(outer, found)
            nodes += self._automatic()
        return sorted(nodes, key=lambda node: node.start_byte)

    def _hooks(self, found: Found) -> Iterator[Node]:
        """Yield the hook calls (`beforeEach`, …) of the file and of the suites around a test."""
        for outer in (self._parsed.root, *found.suites):
            for call in walk(outer, lambda one: one.type not in TESTS):
                if call.type != "call_expression":
                    continue
                names = callee_names(self._parsed, call)
                if not set(names) & set(HOOKS):
                    continue
                suite = next((one for one in enclosing(call) if _is_suite(self._parsed, one)), None)
                if suite is None or inside(suite, found.whole):
                    yield call
            if outer != self._parsed.root:
                return

    def _members(self, outer: Node, found: Found) -> Iterator[Node]:
        """Yield the members of a class around a test, except tests and plain methods."""
        body = field(outer, "body")
        for member in body.named_children if body is not None else []:
            if inside(member, found.whole) or member.id in self._tests:
                continue
            inner = field(member, "definition") or member
            name = field(inner, "name")
            plain = inner.type in ("function_definition", "method_declaration")
            if not plain:
                if inner.type not in _CLASSES:
                    yield member
            elif name is not None and self._is_hook(member, inner, self._parsed.text(name)):
                yield member

    def _is_hook(self, member: Node, inner: Node, name: str) -> bool:
        if self._parsed.language == "java":
            marks = marks_of(self._parsed, inner)
            return any(mark.startswith(("Before", "After")) for mark in marks) or name == "setUp"
        decorated = member.type == "decorated_definition"
        lower = name.lower()
        return lower.startswith(("setup", "teardown", "asyncsetup", "asyncteardown")) or (
            decorated and "autouse" in self._parsed.text(member)
        )

    def _automatic(self) -> Iterator[Node]:
        """Yield the fixtures of the file that every test gets."""
        for node in self._parsed.root.named_children:
            if node.type == "decorated_definition" and node.id not in self._tests:
                marks = [one for one in node.named_children if one.type == "decorator"]
                if any("autouse" in self._parsed.text(mark) for mark in marks):
                    yield node

    def followed(self, nodes: Iterable[Node], levels: int) -> list[Node]:
        """Return the file's definitions that nodes name, and those these name, down to `levels`."""
        start = list(nodes)
        found: dict[int, Node] = {}
        for _ in range(levels):
            fresh: list[Node] = []
            for node in start:
                for name in names_at(self._parsed, node):
                    for definition in self.defined.get(name, ()):
                        if definition.id not in found and not any(
                            inside(definition, other) for other in start
                        ):
                            found[definition.id] = definition
                            fresh.append(definition)
            start = fresh
            if not fresh:
                break
        return sorted(found.values(), key=lambda node: node.start_byte)


def names_at(parsed: Parsed, node: Node) -> set[str]:
    """Return all names within a node."""
    return {parsed.text(one) for one in walk(node) if one.type in NAMES}


def definitions_in(parsed: Parsed) -> Iterator[tuple[str, Node]]:
    """Yield name and node (with decorators) of what a file defines outside function bodies."""
    todo = [parsed.root]
    while todo:
        node = todo.pop()
        if node.type in _DEFINED:
            name = field(node, "name") or field(node, "left")
            if name is not None:
                for one in _bound(parsed, name):
                    yield one, with_decorators(node)
            if node.type not in _CLASSES and field(node, "body") is not None:
                continue
        # The tests of a suite see what its body defines.
        inner = node.type in ("arrow_function", "function_expression", "func_literal", "lambda")
        if inner and not _is_suite(parsed, call_around(node)):
            continue
        todo.extend(reversed(node.named_children))


def _bound(parsed: Parsed, name: Node) -> Iterator[str]:
    """Yield the names that a name or pattern binds."""
    if name.type in NAMES:
        yield parsed.text(name)
        return
    if name.type in ("attribute", "subscript", "member_expression"):
        return
    for one in walk(name):
        if one.type in NAMES or one.type == "shorthand_property_identifier_pattern":
            yield parsed.text(one)


@once_per_file
def context_of(parsed: Parsed) -> FileDefinitions:
    """Return the definitions of a file, read once for all its tests."""
    return FileDefinitions(parsed)


def _is_suite(parsed: Parsed, node: Node | None) -> bool:
    if node is None or node.type != "call_expression":
        return False
    return not set(SUITES).isdisjoint(callee_names(parsed, node))


@once_per_file
def imports_in(parsed: Parsed) -> dict[str, str]:
    """Return the origin of each imported name: `total` comes from `shop total`."""
    found: dict[str, str] = {}
    for node in walk(parsed.root, lambda one: not one.type.startswith(("call", "string"))):
        if node.type in ("import_from_statement", "import_statement"):
            imported = _imported if parsed.language == "python" else _script_imported
            found.update(imported(parsed, node))
        elif node.type == "variable_declarator" and parsed.language in SCRIPTS:
            found.update(required(parsed, node))
        elif node.type == "import_declaration" and parsed.language == "java":
            name = parsed.text(node).removeprefix("import").strip(" ;")
            found[name.rpartition(".")[2]] = name
        elif node.type == "use_declaration":
            argument = field(node, "argument")
            found.update(_used(parsed, argument) if argument is not None else {})
        elif node.type == "import_spec" and (text := parsed.text(node, "path").strip('"`')):
            found[parsed.text(node, "name") or text.rpartition("/")[2]] = text
    return found


def _imported(parsed: Parsed, node: Node) -> dict[str, str]:
    found: dict[str, str] = {}
    module = parsed.text(node, "module_name")
    for one in node.children_by_field_name("name"):
        path = parsed.text(field(one, "name") or one)
        bound = parsed.text(one, "alias") or (path if module else path.split(".")[0])
        found[bound] = f"{module} {path}".strip()
    return found


def _script_imported(parsed: Parsed, node: Node) -> dict[str, str]:
    found: dict[str, str] = {}
    place = parsed.text(node, "source")
    for one in walk(node):
        name, around = field(one, "name"), one.parent
        if one.type == "import_specifier" and name is not None:
            found[parsed.text(field(one, "alias") or name)] = f"{place} {parsed.text(name)}"
        elif around is not None and around.type in ("import_clause", "namespace_import"):
            found[parsed.text(one)] = f"{place} {around.type}"
    return found


def required(parsed: Parsed, declarator: Node) -> dict[str, str]:
    """Return the names that `const { total } = require("./shop")` binds."""
    name, value = field(declarator, "name"), field(declarator, "value")
    if name is None or value is None or not parsed.text(value).startswith("require("):
        return {}
    place = parsed.text(value)
    if name.type == "identifier":
        return {parsed.text(name): place}
    found: dict[str, str] = {}
    for one in name.named_children:
        key, bound = field(one, "key"), field(one, "value")
        if key is not None and bound is not None:
            found[parsed.text(bound)] = f"{place} {parsed.text(key)}"
        else:
            found[parsed.text(one)] = f"{place} {parsed.text(one)}"
    return found


def _used(parsed: Parsed, argument: Node) -> dict[str, str]:
    """Return the names that a Rust `use` binds, with their paths."""
    found: dict[str, str] = {}
    todo: list[tuple[Node, str]] = [(argument, "")]
    while todo:
        node, prefix = todo.pop()
        path = field(node, "path")
        if node.type == "scoped_use_list":
            inner = f"{prefix}{parsed.text(path)}::" if path else prefix
            todo.extend((one, inner) for one in parts_of(node, "list"))
        elif node.type == "use_list":
            todo.extend((one, prefix) for one in node.named_children)
        elif node.type == "use_as_clause":
            alias = field(node, "alias")
            if alias is not None and path is not None:
                found[parsed.text(alias)] = prefix + parsed.text(path)
        else:
            text = parsed.text(node)
            found[text.rpartition("::")[2]] = prefix + text
    return found
