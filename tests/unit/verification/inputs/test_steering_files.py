import pytest

from agentrunner.verification.inputs.globs import is_executable_config, matches


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("tests/golden/a.txt", "tests/golden/**", True),
        ("tests/golden/b/c.txt", "tests/golden/**", True),
        ("tests/a.txt", "tests/golden/**", False),
        ("a/b/secret.txt", "secret.txt", True),
        ("docs/a.md", "docs", True),
        ("docs2/a.md", "docs", False),
        ("src/a.py", "src/*.py", True),
        ("src/x/a.py", "src/*.py", False),
        ("src/x/a.py", "**/a.py", True),
        ("a.py", "**/a.py", True),
        ("ab.py", "a?.py", True),
        ("a[1].py", "a[1].py", True),
    ],
)
def test_globs_match_like_gitignore(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, [pattern]) is expected


def test_an_empty_glob_matches_nothing() -> None:
    assert not matches("a.py", ["", "/"])


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".envrc",
        "sub/.git/config",
        ".gitattributes",
        "a/.husky/pre-commit",
    ],
)
def test_what_tools_run_unasked_is_executable_config(path: str) -> None:
    assert is_executable_config(path)


def test_ordinary_files_are_no_executable_config() -> None:
    assert not is_executable_config("src/github/workflows.py")
