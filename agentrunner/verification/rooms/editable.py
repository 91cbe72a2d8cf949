"""Finds packages installed as links to a repository (`pip install -e`), where tools record that.

Sandboxes mount a clean room at the repository's own path, so such a link leads into the room. Where
nothing can be mounted it leads to the folder in which the worker worked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from agentrunner.verification.results.files import text_of

MOST_READ = 65_536
MOST_FILES = 2_000
PATTERNS = ("*.pth", "__editable__*.py", "*.egg-link")
"""Files of pip, setuptools, hatch and uv, and of old setuptools."""


def editable_installs(folders: Iterable[tuple[str, Path]], repo: Path) -> list[str]:
    """Files below these folders that lead into the repository, by their names and places. Blocks.

    Each of `folders` is a name to show people and the path at which its content is read.
    """
    return [
        f"{name}/{path.relative_to(folder)}"
        for name, folder in folders
        for path in islice(_files(folder), MOST_FILES)
        if str(repo) in text_of(path, MOST_READ)
    ]


def _files(folder: Path) -> Iterator[Path]:
    for packages in folder.glob("lib*/python*/site-packages"):
        for pattern in PATTERNS:
            yield from packages.glob(pattern)
