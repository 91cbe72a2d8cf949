"""The note of a task, and of a plan: what a reviewer reads to decide, and another agent to go on.

`view` gathers the facts, `render` words them in English or Japanese, `writer` puts the file in
the repository without following anything that a worker may have planted there.
"""

from agentrunner.notes.render import render_note
from agentrunner.notes.view import build_view
from agentrunner.notes.writer import WrittenNote, check_note_dir, note_name, note_parts, write_note

__all__ = [
    "WrittenNote",
    "build_view",
    "check_note_dir",
    "note_name",
    "note_parts",
    "render_note",
    "write_note",
]
