"""Whether the work does what the code did before: it is comments, layout or docstrings. Blocks."""

from __future__ import annotations

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.syntax.code_equality import is_same_code
from agentrunner.verification.world import SnapshotTrees

READS_DOCSTRINGS = lazy_regex(
    rb"__doc__|\bgetdoc\b|\bdocopt\b|(?m:^[ \t]*@\w)|(?m:^[ \t]*class\s+\w+\s*\((?!\s*\)))"
)
"""What hands docstrings on: a decorator gets the function with its own, a base class the class."""
ASKS_FOR_TEXT = lazy_regex(r"(?i)\bdoc(?!k)|\bhelp\b|\busage\b|説明|文書|ドキュメント|ヘルプ")


def is_unchanged(world: SnapshotTrees) -> bool:
    """Whether the work changed no more than comments and layout.

    False where a part of it is in no language that is known.
    """
    return _all_same(world, docstrings=True)


def is_only_text(world: SnapshotTrees, asked: str) -> bool:
    """Whether the work is no more than that and docstrings that nothing reads.

    False where there is none, and where `asked` is about texts.
    """
    unread = not ASKS_FOR_TEXT.search(asked) and not any(
        READS_DOCSTRINGS.search(world.now(path) or b"") for path in world.product
    )
    return bool(world.product) and _all_same(world, docstrings=not unread)


def _all_same(world: SnapshotTrees, *, docstrings: bool) -> bool:
    sources = [*world.sources()]
    return len(sources) == len(world.product) and all(
        before is not None and is_same_code(before, after, language, docstrings=docstrings)
        for _, language, before, after in sources
    )
