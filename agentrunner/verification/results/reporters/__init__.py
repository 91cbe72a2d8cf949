"""Files of ours that run inside of test tools of projects: read as text, not imported here."""

from __future__ import annotations

from pathlib import Path


def text_of(name: str) -> str:
    """The text of one reporter."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def sitecustomize_of(start: str) -> str:
    """A `sitecustomize.py` that runs the `_start()` of a text that has imported os and sys."""
    return start + text_of("loaded_first.py")
