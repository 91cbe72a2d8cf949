"""The language of a file, and its syntax tree. Pure: bytes in, nodes out.

Sources are untrusted: one that is too large, too slow to parse or mostly not of its language gets
no tree. Nothing raises because of what a source contains, and nothing recurses along its nesting.
"""

from __future__ import annotations

import io
import posixpath
import re
import time
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cache, lru_cache, wraps
from importlib import import_module
from typing import Any, TypeVar

from tree_sitter import Language, Node, Parser, Point, Tree

from agentrunner.text.lazy_regex import lazy_regex

LARGEST = 2_000_000
"""The largest source that is parsed, in bytes."""
LONGEST = 2.0
"""The longest that one parse may take, in seconds."""
DEEPEST = 1_000
"""The most levels of nesting in a tree that is used."""
SCRIPTS = ("javascript", "typescript", "tsx")
"""The languages that share JavaScript's statements."""

_CACHED = 200_000
_LANGUAGES = {
    "python": (".py .pyi", "tree_sitter_python", "language"),
    "javascript": (".js .jsx .mjs .cjs", "tree_sitter_javascript", "language"),
    "typescript": (".ts .mts .cts", "tree_sitter_typescript", "language_typescript"),
    "tsx": (".tsx", "tree_sitter_typescript", "language_tsx"),
    "go": (".go", "tree_sitter_go", "language"),
    "rust": (".rs", "tree_sitter_rust", "language"),
    "java": (".java", "tree_sitter_java", "language"),
}
"""Endings of files; the module of the grammar, imported when it is needed, and its function."""
_BY_ENDING = {end: name for name, (ends, *_) in _LANGUAGES.items() for end in ends.split()}


@dataclass(frozen=True)
class Parsed:
    """A source and its syntax tree."""

    source: bytes
    language: str
    tree: Tree
    known: dict[Any, Any] = dataclass_field(default_factory=dict, repr=False, compare=False)
    """What `once_per_file` has worked out."""

    @property
    def root(self) -> Node:
        """The node of the whole file."""
        return self.tree.root_node

    def text(self, node: Node | None, *names: str) -> str:
        """Return the source text of a node, or of what fields lead to from there; "" for none."""
        node = field(node, *names)
        if node is None:
            return ""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")


T = TypeVar("T")

WITH_TREES = frozenset({"python", *SCRIPTS})
"""Languages whose programs are read with a grammar; all others are read by patterns."""
KILLS = {
    "python": '(__import__("os").kill(__import__("os").getpid(), 9))',
    **dict.fromkeys(SCRIPTS, '(process.kill(process.pid, "SIGKILL"), process.reallyExit(86))'),
    "php": r"(\exec('kill -9 $PPID') || exit(86))",
    "ruby": "(Process.kill(:KILL, $$); exit!(86))",
    "sh": "kill -9 $$",
    "perl": "kill 9, $$",
    "lua": 'os.execute("kill -9 $PPID")',
    "c": "__builtin_trap()",
    "java": "Runtime.getRuntime().halt(134)",
    "go": 'panic("made to end here")',
    "rust": "std::process::abort()",
}
"""Code that ends the process without giving handlers a chance; an expression up to Ruby's entry."""
_ENDINGS = {
    **dict.fromkeys((".sh", ".bash"), "sh"),
    **dict.fromkeys((".pl", ".t"), "perl"),
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx"), "c"),
    ".php": "php",
    ".rb": "ruby",
    ".lua": "lua",
}
_FIRST_LINE = lazy_regex(rb"#!.*\b(python|node|php|ruby|perl|lua|(?:ba|da|z|k)?sh)[\d.]*(?!\w)")


def once_per_file(work_out: Callable[[Parsed], T]) -> Callable[[Parsed], T]:
    """Keep what is worked out of a source as long as its tree: a file has a thousand tests."""

    @wraps(work_out)
    def kept(parsed: Parsed) -> T:
        if work_out not in parsed.known:
            parsed.known[work_out] = work_out(parsed)
        found: T = parsed.known[work_out]
        return found

    return kept


def language_of(path: str) -> str | None:
    """Return a file's language by its name ("python", "tsx", "go", …), None if unsupported."""
    return _BY_ENDING.get(posixpath.splitext(path)[1].lower())


def parse(source: bytes | None, language: str) -> Parsed | None:
    """Return the syntax tree of a source, or None.

    It is None if there is no source, if the language is unknown, if the source is larger than
    `LARGEST`, takes longer than `LONGEST` or nests deeper than `DEEPEST`, if too much of it is
    not of the language, or if the language may read code where its grammar sees a comment.
    """
    if source is None or len(source) > LARGEST:
        return None
    cached_parse = _parse_small if len(source) <= _CACHED else _parse_large
    return cached_parse(source, language)


def _hides_code(source: bytes, language: str) -> bool:
    """Whether the language may read code where its grammar sees a comment or a text.

    A lone carriage return ends a line for some; Java reads escapes everywhere; Python reads a file
    in the encoding that it names, in which other bytes may stand for what is ASCII.
    """
    if re.search(rb"\r(?!\n)", source):
        return True
    if language == "java":
        return re.search(rb"\\u+00(?:0[adAD]|2[27aAfF]|5[cC])", source) is not None
    if language != "python":
        return False
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        text = source.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        return True
    return re.sub(r"[^\0-\x7f]", "", text) != re.sub(rb"[^\0-\x7f]", b"", source).decode("ascii")


def is_obeyed(parsed: Parsed, comment: Node) -> bool:
    """Whether a tool obeys a comment, so that it is as good as code: build tags of Go, C in it."""
    return parsed.language == "go" and (
        re.match(r"//(?:go:|line |export )|// ?\+build", parsed.text(comment)) is not None
        or b'import "C"' in parsed.source
    )


def _parse_uncached(source: bytes, language: str) -> Parsed | None:
    grammar = _grammar(language)
    if grammar is None or _hides_code(source, language):
        return None
    until = time.monotonic() + LONGEST

    def read(offset: int, _: Point) -> bytes:
        return source[offset : offset + 65_536]

    def too_long(_: int, __: bool) -> bool:
        return time.monotonic() > until

    try:
        tree = Parser(grammar).parse(read, encoding="utf8", progress_callback=too_long)
    except ValueError:  # the time limit is exceeded
        return None
    return Parsed(source, language, tree) if _usable(tree.root_node, len(source)) else None


_parse_small = lru_cache(maxsize=8)(_parse_uncached)
# A source is parsed for several questions in a row, and each parse can take up to LONGEST.
_parse_large = lru_cache(maxsize=2)(_parse_uncached)


def _usable(root: Node, size: int) -> bool:
    """Whether a tree is at most `DEEPEST` deep and at most a fifth of its source is errors."""
    error_bytes, depth, cursor = 0, 0, root.walk()
    while True:
        node = cursor.node
        if node is not None and node.is_error:
            error_bytes += node.end_byte - node.start_byte
        elif cursor.goto_first_child():
            depth += 1
            if depth > DEEPEST:
                return False
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return error_bytes * 5 <= size
            depth -= 1


@cache
def _grammar(language: str) -> Language | None:
    if language not in _LANGUAGES:
        return None
    _, module, function = _LANGUAGES[language]
    return Language(getattr(import_module(module), function)())


def walk(root: Node, into: Callable[[Node], bool] | None = None) -> Iterator[Node]:
    """Yield a node and everything below it, in source order.

    `into` decides whether the children of a node below the root are visited; the node itself is.
    """
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        if into is None or node is root or into(node):
            todo.extend(reversed(node.children))


def enclosing(node: Node) -> Iterator[Node]:
    """Yield the nodes around a node, innermost first."""
    around = node.parent
    while around is not None:
        yield around
        around = around.parent


def without_brackets(node: Node) -> Node:
    """Return what an expression is without the brackets around all of it."""
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def call_around(argument: Node) -> Node | None:
    """Return the call that a node is an argument of: what is around the node around it."""
    return argument.parent.parent if argument.parent is not None else None


def field(node: Node | None, *names: str) -> Node | None:
    """Follow a path of field names down from a node; None if a step is missing."""
    for name in names:
        if node is None:
            return None
        node = node.child_by_field_name(name)
    return node


def parts_of(node: Node | None, *names: str) -> list[Node]:
    """Return the nodes in a node, or in what fields lead to from there, without comments."""
    node = field(node, *names)
    return [one for one in node.named_children if not is_comment(one)] if node is not None else []


def condition_of(node: Node) -> Node | None:
    """Return what decides at a node; of Python's `a if b else c` that is the middle."""
    if node.type != "conditional_expression":
        return field(node, "condition")
    parts = parts_of(node)
    return parts[1] if len(parts) == 3 else None


def arguments_of(call: Node) -> list[Node]:
    """Return the arguments of a call, without comments; a template that is tagged has none."""
    given = field(call, "arguments")
    return [] if given is None or given.type == "template_string" else parts_of(given)


def parameters_at(function: Node) -> list[Node]:
    """Return the nodes of a function's parameters; of an arrow function that may be one name."""
    single = field(function, "parameter")
    return [single] if single is not None else parts_of(function, "parameters")


def with_decorators(definition: Node) -> Node:
    """Return a definition with what decorates it in Python; the definition where nothing does."""
    around = definition.parent
    return around if around is not None and around.type == "decorated_definition" else definition


def inside(outer: Node, node: Node) -> bool:
    """Whether `node` lies within `outer`, or is it."""
    return outer.start_byte <= node.start_byte and node.end_byte <= outer.end_byte


def is_comment(node: Node) -> bool:
    """Whether a node is a comment in any of the languages."""
    return node.type.endswith("comment")


def statements(block: Node | None) -> list[Node]:
    """Return the statements of a block, without comments and braces."""
    children = parts_of(block)
    if len(children) == 1 and children[0].type == "statement_list":  # in Go a block holds one list
        return statements(children[0])
    return children


def program_language(path: str, source: bytes = b"") -> str:
    """Return a program's language by its ending or first line; "" if it is not in `KILLS`."""
    ending = posixpath.splitext(path)[1]
    named = language_of(path) or _ENDINGS.get(ending, "")
    # Files for `prove` can be in any language.
    if (not named or ending == ".t") and (hit := _FIRST_LINE.match(source)):
        word = hit[1].decode()
        named = "sh" if word.endswith("sh") else {"node": "javascript"}.get(word, word)
    return named if named in KILLS else ""
