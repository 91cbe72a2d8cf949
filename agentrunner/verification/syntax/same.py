"""Whether two sources are the same but for comments and layout."""

from __future__ import annotations

from collections.abc import Iterator

from agentrunner.verification.syntax.languages import Parsed, is_comment, parse, walk


def is_same_code(before: bytes, after: bytes, language: str) -> bool:
    """Whether a program that reads neither source does the same with both."""
    if before == after:
        return True
    one, other = parse(before, language), parse(after, language)
    if one is None or other is None or one.root.has_error or other.root.has_error:
        return False
    return list(_words(one)) == list(_words(other))


def _words(parsed: Parsed) -> Iterator[tuple[str, int, str]]:
    """Every leaf that is no comment, with its depth: in Python indentation is no word."""
    depths = {parsed.root.id: 0}
    for node in walk(parsed.root, lambda node: not is_comment(node)):
        depth = depths.get(node.id, 0)
        for child in node.children:
            depths[child.id] = depth + 1
        if not node.children and not is_comment(node):
            yield node.type, depth, parsed.text(node)
