"""What tests of layers share: a picture of a tree, and a bwrap that can lay no overlay."""

from __future__ import annotations

import os
from pathlib import Path

from tests.kit.bwrap import require_bwrap


def tree_of(folder: Path) -> dict[str, str]:
    """Every path below it with what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        text = "folder" if path.is_dir() else path.read_text()
        found[str(path.relative_to(folder))] = str(path.readlink()) if path.is_symlink() else text
    return found


def without_overlay(root: Path) -> dict[str, str]:
    """An environment whose bwrap refuses `--tmp-overlay`, as one older than 0.11 does."""
    folder = root / "old-bwrap"
    folder.mkdir(exist_ok=True)
    tool = folder / "bwrap"
    tool.write_text(
        "#!/bin/sh\n"
        'for word; do case $word in --tmp-overlay | --overlay) echo "unknown" >&2; exit 1 ;; '
        f'--) break ;; esac; done\nexec {require_bwrap()} "$@"\n'
    )
    tool.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}
