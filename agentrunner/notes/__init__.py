"""The note of a task or plan: for a reviewer to decide, and for another agent to continue.

`view` collects the facts, `render` words them in English or Japanese, `writer` puts the file into
the repository without following anything that a worker may have planted there.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentrunner.notes.render import render_note
    from agentrunner.notes.view import build_view
    from agentrunner.notes.writer import (
        WrittenNote,
        check_note_dir,
        note_name,
        note_parts,
        write_note,
    )

__all__ = [
    "WrittenNote",
    "build_view",
    "check_note_dir",
    "note_name",
    "note_parts",
    "render_note",
    "write_note",
]
_WHERE = {"build_view": "view", "render_note": "render"}


def __getattr__(name: str) -> Any:
    """Import names on demand: a bill alone must not load the templates of a note."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"agentrunner.notes.{_WHERE.get(name, 'writer')}"), name)
