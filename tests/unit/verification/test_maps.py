"""The map at the top of a folder of this room names all of its files, and no file that is gone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import agentrunner.verification

ROOM = Path(agentrunner.verification.__file__).parent
MAPPED = [ROOM, *sorted(one for one in ROOM.iterdir() if (one / "__init__.py").is_file())]


@pytest.mark.parametrize("folder", MAPPED, ids=lambda folder: folder.name)
def test_a_map_names_each_file_of_its_folder_and_no_other(folder: Path) -> None:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    rows = re.findall(r"(?m)^([a-z_]+(?:, [a-z_]+)*) ", text)
    named = {*re.findall(r"`(\w+)`", text), *", ".join(rows).split(", ")}
    files = {one.stem for one in folder.glob("*.py")} - {"__init__"}
    assert not files - named, "files that the map lacks"
    folders = {one.parent.name for one in ROOM.rglob("__init__.py")}
    assert not named - {one.stem for one in ROOM.rglob("*.py")} - folders, "no such file"
