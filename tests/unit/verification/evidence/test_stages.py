"""Commands whose exit code more than one program decides."""

import pytest

from agentrunner.verification.evidence.check_runner import is_one_stage

FILES = {
    "Makefile": b"test: build\n\tpytest -q\nbuild:\n\tcc -o a a.c\nunit:\n\tpytest -q\n",
    "package.json": b'{"scripts": {"test": "jest", "pretest": "eslint .", "unit": "jest"}}',
}


@pytest.mark.parametrize(
    ("shell", "one"),
    [
        ("pytest -q", True),
        ("CI=1 pytest -q", True),
        ("ruff check && pytest -q", True),
        ("cmake -B b && cmake --build b && ctest --test-dir b", True),
        ("pytest -q && mypy .", False),
        ("pytest -q a && pytest -q b", False),
        ("pytest -q || pytest -q --lf", False),
        ("make unit && pytest -q", False),
        ("pytest -q; mypy .", False),
        ("make unit", True),
        ("make test", False),
        ("npm run unit", True),
        ("npm test", False),
    ],
)
def test_recipes_are_followed(shell: str, one: bool) -> None:
    assert is_one_stage(shell, ".", FILES.get) is one
