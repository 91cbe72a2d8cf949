"""What tests of layers share: a picture of a tree."""

from __future__ import annotations

from pathlib import Path


def tree_of(folder: Path, *, text: bool = True) -> dict[str, str]:
    """Every path below it with what it holds, or with its size and time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_dir():
            found[name] = "folder"
        else:
            facts = path.stat()
            found[name] = path.read_text() if text else f"{facts.st_size} {facts.st_mtime_ns}"
    return found
