"""The functions and methods of a source by name, and the text that is their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from tree_sitter import Node

from agentrunner.verification.syntax.edits import only_new
from agentrunner.verification.syntax.languages import (
    SCRIPTS,
    Parsed,
    call_around,
    field,
    inside,
    is_comment,
    is_obeyed,
    once_per_file,
    statements,
    walk,
)
from agentrunner.verification.syntax.scripts import FUNCTIONS
from agentrunner.verification.syntax.values import STRINGS

NESTED = frozenset(
    (
        "function_definition", "lambda", "class_definition", "class_declaration", "class_body",
        "func_literal", "function_item", "closure_expression", "async_block", "lambda_expression",
        *FUNCTIONS,
    )
)  # fmt: skip
"""Nodes inside of a function whose statements are not the function's own."""
RETURN_TYPE = {
    "python": "return_type",
    "go": "result",
    "rust": "return_type",
    "java": "type",
}
"""The field of a function that holds the type of what it gives back."""


@dataclass(frozen=True)
class Function:
    """A function that has a body."""

    name: str
    """The name with the surrounding classes and functions: `Cart.total`."""
    node: Node
    body: Node
    parsed: Parsed = dataclass_field(repr=False, compare=False)

    @property
    def last_name(self) -> str:
        """Its name without what surrounds it."""
        return self.name.rpartition(".")[2]

    @property
    def work(self) -> list[Node]:
        """The statements of its body, without its docstring."""
        return [one for one in statements(self.body) if not is_docstring(self.parsed, one)]


def own_nodes(body: Node) -> Iterator[Node]:
    """Yield the nodes of a body, except those inside functions and classes nested in it."""
    return walk(body, lambda node: node.type not in NESTED)


@once_per_file
def functions_of(parsed: Parsed) -> list[Function]:
    """Return the functions of a source in source order, outer ones before those they contain.

    A function without a name belongs to the named one around it. In JavaScript, an unnamed function
    outside any other is named after the call it is passed to: `app.get("/users")`.
    """
    naming = _NAMING.get(parsed.language, _named)
    found: list[Function] = []
    todo: list[tuple[Node, tuple[str, ...], bool]] = [(parsed.root, (), False)]
    while todo:
        node, outer, within = todo.pop()
        if node.type in _CONTAINERS:
            name = parsed.text(node, "type" if node.type == "impl_item" else "name")
            outer = (*outer, name) if name else outer
        named = naming(parsed, node, within)
        if named is not None:
            name, body = named
            outer, within = (*outer, name), True
            found.append(Function(".".join(outer), node, body, parsed))
        todo.extend((child, outer, within) for child in reversed(node.named_children))
    return found


def altered(before: Parsed | None, after: Parsed) -> list[Function]:
    """Return the functions of `after` that `before` does not have unchanged, outermost only."""
    old = _with_texts(before) if before is not None else []
    changed: list[Function] = []
    for function, _ in only_new(old, _with_texts(after), lambda one: (one[0].name, one[1])):
        if not any(inside(outer.node, function.node) for outer in changed):
            changed.append(function)
    return changed


def _with_texts(parsed: Parsed) -> list[tuple[Function, str]]:
    """Return each function with its own text; the bodies of functions inside it do not count."""
    functions = functions_of(parsed)
    bodies = {function.body.id for function in functions}
    return [
        (function, normal(parsed, function.node, frozenset(bodies - {function.body.id})))
        for function in functions
    ]


def normal(parsed: Parsed, node: Node, without: frozenset[int] = frozenset()) -> str:
    """Return the text of a node without comments and docstrings, white space normalised."""
    words: list[str] = []
    todo: list[Node | str] = [node]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            words.append(item)
        elif (
            (is_comment(item) and not is_obeyed(parsed, item))
            or item.id in without
            or is_docstring(parsed, item)
        ):
            continue
        elif item.type in STRINGS or not item.children:
            words.append(parsed.text(item))
        elif item.type == "block" and parsed.language == "python":
            todo += ["}", *reversed(item.children), "{"]
        else:
            todo += reversed(item.children)
    return " ".join(word for word in words if word)


def is_docstring(parsed: Parsed, node: Node) -> bool:
    """Whether a node is a Python statement that consists of a string alone."""
    if parsed.language != "python" or node.type != "expression_statement":
        return False
    parts = node.named_children
    return len(parts) == 1 and parts[0].type in ("string", "concatenated_string")


# Names --------------------------------------------------------------------------------------------

_CONTAINERS = frozenset(
    "class_definition class_declaration class interface_declaration enum_declaration "
    "record_declaration impl_item trait_item mod_item internal_module".split()
)
_Named = tuple[str, Node] | None


def _named(parsed: Parsed, node: Node, _: bool) -> _Named:
    kinds = ("function_definition", "function_item", "method_declaration", "function_declaration")
    name, body = field(node, "name"), field(node, "body")
    if node.type in kinds and name is not None and body is not None:
        receiver = field(node, "receiver")
        of = [one for one in walk(receiver) if one.type == "type_identifier"] if receiver else []
        return ".".join(map(parsed.text, [*of[:1], name])), body
    if node.type == "assignment":
        left, right = field(node, "left"), field(node, "right")
        inner = field(right, "body") if right is not None and right.type == "lambda" else None
        if left is not None and inner is not None:
            return parsed.text(left), inner
    if node.type == "var_spec":
        for literal in walk(node):
            inner = field(literal, "body")
            if literal.type == "func_literal" and name is not None and inner is not None:
                return parsed.text(name), inner
    return None


def _script_named(parsed: Parsed, node: Node, within: bool) -> _Named:
    if node.type not in FUNCTIONS:
        return None
    body, name, parent = field(node, "body"), field(node, "name"), node.parent
    if body is None:
        return None
    if name is not None:
        return parsed.text(name), body
    for label in ("name", "key", "left", "property"):
        named = field(parent, label)
        if named is not None and named != node:
            return parsed.text(named), body
    if parent is not None and parent.type == "export_statement":
        return "default", body
    return None if within else (_handed_to(parsed, node), body)


def _handed_to(parsed: Parsed, node: Node) -> str:
    """Name an unnamed function after the call it is passed to: `app.get("/users")`."""
    arguments, called = node.parent, parsed.text(call_around(node), "function")
    if arguments is None or not called or arguments.type != "arguments":
        return "function"
    first = arguments.named_children[0]
    text = parsed.text(first) if first.type in STRINGS else ""
    return f"{called[:100]}({text})"


_NAMING: dict[str, Callable[[Parsed, Node, bool], _Named]] = dict.fromkeys(SCRIPTS, _script_named)
