"""Compare two sources while ignoring comments and layout."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.functions import is_docstring
from agentrunner.verification.syntax.languages import Parsed, is_comment, parse, walk

TEXT = lazy_regex(r"string|content|template|heredoc|fragment|regex|char|text")
"""Nodes in which blanks count."""


def is_same_code(before: bytes, after: bytes, language: str, *, docstrings: bool = True) -> bool:
    """Whether a program behaves the same with both, unless it reads its own source.

    Without `docstrings` these may differ as well, as where nothing reads them.
    """
    if before == after:
        return True
    old, new = parse(before, language), parse(after, language)
    if old is None or new is None or old.root.has_error or new.root.has_error:
        return False
    return list(_leaves(old, docstrings)) == list(_leaves(new, docstrings))


def _leaves(parsed: Parsed, docstrings: bool) -> Iterator[tuple[str, int, str]]:
    """Yield every leaf except comments, with its depth: in Python, indentation is not a token."""
    depths = {parsed.root.id: 0}

    def counts(node: Node) -> bool:
        return not is_comment(node) and (docstrings or not is_docstring(parsed, node))

    for node in walk(parsed.root, counts):
        depth = depths.get(node.id, 0)
        for child in node.children:
            depths[child.id] = depth + 1
        if not node.children and not is_comment(node):
            yield node.type, depth, parsed.text(node)
        for gap in _gaps(parsed, node) if counts(node) else ():
            yield node.type, depth, gap


def _gaps(parsed: Parsed, node: Node) -> Iterator[str]:
    """What a node says beside its children: a text with escapes has only these as children."""
    at, in_text = node.start_byte, TEXT.search(node.type) is not None
    for start, end in [(one.start_byte, one.end_byte) for one in node.children]:
        gap = parsed.source[at:start].decode("utf-8", "replace")
        if gap and (in_text or gap.strip()):
            yield gap
        at = end
    rest = parsed.source[at : node.end_byte].decode("utf-8", "replace") if node.children else ""
    if rest and (in_text or rest.strip()):
        yield rest
