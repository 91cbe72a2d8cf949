"""Files of a test's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Make these files and their folders; whatever begins with `#!` can be run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content.encode() if isinstance(content, str) else content
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if data.startswith(b"#!"):
            path.chmod(0o755)
    return folder


def put(folder: Path, *names: str, text: str = "x\n") -> Path:
    """Make files that all hold the same."""
    return write(folder, dict.fromkeys(names, text))
