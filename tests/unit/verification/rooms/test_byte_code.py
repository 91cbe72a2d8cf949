"""A check that compiles may write, and nothing else may."""

from __future__ import annotations

import pytest

from agentrunner.verification.rooms.byte_code import PLACE, compiled_elsewhere

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
