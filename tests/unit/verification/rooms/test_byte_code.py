"""A check that compiles may write, and nothing else may."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrunner.verification.rooms import byte_code
from agentrunner.verification.rooms.byte_code import (
    COMPILING,
    PLACE,
    compiled_elsewhere,
    speaks_of,
    write_programs,
)
from tests.kit.files import write

ELSEWHERE = f"env PYTHONPYCACHEPREFIX={PLACE} "


@pytest.mark.parametrize(
    ("shell", "expected"),
    [
        ("python3 -m compileall -q src", f"{ELSEWHERE}python3 -m compileall -q src"),
        ("cd a && .venv/bin/python -I -m py_compile b.py",
         f"cd a && {ELSEWHERE}.venv/bin/python -I -m py_compile b.py"),
        ("timeout 9 python -mcompileall . && python -m pytest",
         f"timeout 9 {ELSEWHERE}python -mcompileall . && python -m pytest"),
        ("uv run python -m py_compile a.py", f"uv run {ELSEWHERE}python -m py_compile a.py"),
        ("grep 'python -m compileall' README.md", "grep 'python -m compileall' README.md"),
        ("python -m pytest -k compileall", "python -m pytest -k compileall"),
        ("python app.py -m compileall", "python app.py -m compileall"),
        ("python -m compileall_of_ours", "python -m compileall_of_ours"),
    ],
)  # fmt: skip
def test_only_programs_that_compile_write_elsewhere(shell: str, expected: str) -> None:
    assert compiled_elsewhere(shell) == expected


@pytest.mark.parametrize(
    ("words", "redirected"),
    [
        ("-m compileall -q .", True),
        ("-mpy_compile a.py", True),
        ("-X utf8 -Im compileall .", True),
        ("-m pytest -m compileall", False),
        ("app.py -m compileall", False),
        ("-c pass -m compileall", False),
        ("-m compileall_of_ours", False),
        ("", False),
    ],
)
def test_the_python_of_a_recipe_writes_elsewhere_where_it_only_compiles(
    tmp_path: Path, words: str, redirected: bool
) -> None:
    real = tmp_path / "real" / "python3"
    write(real.parent, {real.name: '#!/bin/sh\necho "${PYTHONPYCACHEPREFIX-} $*"\n'})
    write_programs(tmp_path / "ours", f"{real}\nbuiltin\n/usr/bin/perl\n")
    assert sorted(one.name for one in (tmp_path / "ours").iterdir()) == ["python3", "site"]
    ran = subprocess.run(
        [tmp_path / "ours" / "python3", *words.split()],
        capture_output=True, text=True, check=True, env={},
    )  # fmt: skip
    assert ran.stdout == f"{PLACE if redirected else ''} {words}\n"


@pytest.mark.parametrize(
    ("words", "redirected"),
    [
        ("-m compileall -q a.py", True),
        ("-X utf8 -Bmpy_compile a.py", True),
        ("a.py -m compileall", False),
        ("-m a", False),
    ],
)
def test_a_python_by_its_path_writes_elsewhere_where_it_only_compiles(
    tmp_path: Path, words: str, redirected: bool
) -> None:
    """It loads the `sitecustomize` that it would have loaded as well."""
    write_programs(tmp_path / "ours", "")
    write(tmp_path / "theirs", {"sitecustomize.py": "print('theirs')\n"})
    write(tmp_path, {"a.py": "import sys\nprint(sys.pycache_prefix, *map(str, sys.path))\n"})
    first, place = tmp_path / "ours" / "site", tmp_path / "compiled"
    text = (first / "sitecustomize.py").read_text()
    (first / "sitecustomize.py").write_text(text.replace(PLACE, str(place)))
    ran = subprocess.run(
        [sys.executable, *words.split()], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": f"{first}:{tmp_path / 'theirs'}", "PYTHONPYCACHEPREFIX": "/nowhere"},
    )  # fmt: skip
    assert ran.stdout.startswith("theirs\n")
    assert str(first) not in ran.stdout
    assert bool([*place.rglob("a.*.pyc")]) is redirected
    assert ("/nowhere" in ran.stdout) is not redirected


def test_a_tree_speaks_of_compiling_in_any_file(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "lint.sh").write_text("python3 -m unittest\n")
    assert not speaks_of(COMPILING, tmp_path)
    (tmp_path / "tools" / "lint.sh").write_text("python3 -m compileall -q .\n")
    assert speaks_of(COMPILING, tmp_path)


@pytest.mark.parametrize(("most", "bytes_"), [("MOST_FILES", 1), ("MOST_BYTES", 3)])
def test_what_is_not_searched_may_speak_of_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str, bytes_: int
) -> None:
    (tmp_path / "a.py").write_text("a()\n")
    (tmp_path / "b.py").write_text("b()\n")
    assert not speaks_of(COMPILING, tmp_path)
    monkeypatch.setattr(byte_code, most, bytes_)
    assert speaks_of(COMPILING, tmp_path)


def test_what_cannot_be_read_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed/a").write_text("compileall")
    scandir = os.scandir

    def denied(folder: Path) -> Iterator[os.DirEntry[str]]:
        if folder.name == "closed":
            raise PermissionError(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", denied)
    assert not speaks_of(COMPILING, tmp_path)
