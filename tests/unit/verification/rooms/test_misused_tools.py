"""A test tool that was called wrongly decided nothing; what is still to be written is red."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.verification.rooms.complaints import MISUSED, misused

NO_FOLDER = "no tests ran in 0.01s\nERROR: file or directory not found: nope_dir\n"
NO_TEST = "ERROR: not found: /repo/t/test_a.py::test_b\n(no match in any of [<Module test_a.py>])\n"
OPTION = (
    "ERROR: usage: python -m pytest [options] [file_or_dir] [...]\n"
    "python -m pytest: error: unrecognized arguments: --foo\n  inifile: None\n"
)
CONFTEST = "ImportError while loading conftest '/repo/conftest.py'.\nconftest.py:1: in <module>\n"
NO_MANIFEST = """\
npm error code ENOENT
npm error syscall open
npm error path /repo/package.json
npm error errno -2
npm error enoent Could not read package.json: Error: ENOENT: no such file or directory
npm error A complete log of this run can be found in: /home/agent/.npm/_logs/debug-0.log
"""
OLD_NPM = NO_MANIFEST.replace("npm error", "npm ERR!")
BROKEN = """\
npm error code EJSONPARSE
npm error JSON.parse Invalid package.json: JSONParseError: Expected property name
npm error JSON.parse Failed to parse JSON data.
"""
RED = (
    "\n> shop@1.0.0 test\n> node --test\n\nnpm error code ENOENT\nnpm error enoent Could not read\n"
)
WORKSPACE = """\
npm error Lifecycle script `test` failed with error:
npm error code 1
npm error path /repo/web
npm error workspace web@1.0.0
npm error location /repo/web
npm error command failed
npm error command sh -c node --test
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "cart.py").write_text("")
    (tmp_path / "cart.js").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "code", "output", "said"),
    [
        ("pytest -q nope_dir", 4, NO_FOLDER, "file or directory not found: nope_dir"),
        ("uv run pytest -q nope_dir", 4, NO_FOLDER, "file or directory not found: nope_dir"),
        ("pytest t/test_a.py::test_b", 4, NO_TEST, "not found: /repo/t/test_a.py::test_b"),
        ("python -m pytest --foo", 4, OPTION, "error: unrecognized arguments: --foo"),
        ("npm test", 254, NO_MANIFEST, "Could not read package.json: Error: ENOENT:"),
        ("npm test", 254, OLD_NPM, "Could not read package.json: Error: ENOENT:"),
        ("npm test", 1, f"npm warn config x\n{BROKEN}", "Invalid package.json:"),
    ],
)
def test_the_tool_says_that_it_was_called_wrongly(
    repo: Path, shell: str, code: int, output: str, said: str
) -> None:
    assert misused(shell, code, output, repo, "Charge for every piece").startswith(MISUSED + said)


@pytest.mark.parametrize("shell", ["npm test", "npm run nope"])
def test_npm_in_a_repository_of_another_language_was_called_wrongly(
    tmp_path: Path, shell: str
) -> None:
    (tmp_path / "cart.py").write_text("")
    words = misused(shell, 254, NO_MANIFEST, tmp_path, "Charge for every piece")
    assert words.startswith(f"{MISUSED}Could not read package.json")
    assert not misused(shell, 254, NO_MANIFEST, tmp_path, "Write package.json")


def test_the_code_is_read_through_make(repo: Path) -> None:
    (repo / "Makefile").write_text("test:\n\tpytest -q nope_dir\n")
    output = f"{NO_FOLDER}make: *** [Makefile:2: test] Error 4\n"
    assert (
        misused("make test", 2, output, repo, "Charge") == MISUSED + NO_FOLDER.splitlines()[1][7:]
    )
    assert not misused("make test", 2, output.replace("Error 4", "Error 1"), repo, "Charge")


@pytest.mark.parametrize(
    ("shell", "code", "output"),
    [
        ("pytest -q", 1, "ERROR: file or directory not found: nope_dir\n"),
        ("pytest -q", 4, CONFTEST),
        ("python run_tests.py", 4, "ERROR: 4 tests are red\n"),
        ("sh tests.sh", 4, NO_FOLDER),
        ("npm test", 1, RED),
        ("npm test --workspaces", 1, WORKSPACE),
        ("npm test", 0, NO_MANIFEST),
        ("npm test", 1, ""),
    ],
)
def test_red_stays_red(repo: Path, shell: str, code: int, output: str) -> None:
    assert misused(shell, code, output, repo, "Charge for every piece") == ""


@pytest.mark.parametrize(
    ("shell", "code", "output", "wanted"),
    [
        ("pytest -q nope_dir", 4, NO_FOLDER, "Write tests in nope_dir."),
        ("pytest -q nope_dir", 4, NO_FOLDER, "nope_dirにテストを書く。"),
        ("pytest -q nope_dir/", 4, NO_FOLDER.replace("nope_dir", "nope_dir/"), "See nope_dir."),
        ("pytest t/test_a.py::test_b", 4, NO_TEST, "- [ ] it works (check: test `test_b`)"),
        ("npm test", 254, NO_MANIFEST, "Make a package.json with a test script."),
        ("npm test", 1, BROKEN, "Mend package.json."),
    ],
)
def test_what_the_task_names_may_still_be_written(
    repo: Path, shell: str, code: int, output: str, wanted: str
) -> None:
    assert misused(shell, code, output, repo, wanted) == ""


def test_a_repository_of_texts_is_to_be_filled(tmp_path: Path) -> None:
    (tmp_path / "prd.md").write_text("# A shop")
    (tmp_path / ".git").mkdir()
    assert misused("npm test", 254, NO_MANIFEST, tmp_path, "A shop") == ""
    assert misused("pytest -q tests", 4, NO_FOLDER, tmp_path, "A shop") == ""
