"""The command for a commit takes all that the run left, new files too."""

import subprocess
from pathlib import Path

import pytest

from agentrunner.git.staging import commit_command
from tests.kit.repository import committed, git


@pytest.mark.parametrize(
    ("paths", "command"),
    [
        (["calc.py", "NEW.md"], "git add calc.py NEW.md && git commit"),
        (["it's.py"], """git add 'it'"'"'s.py' && git commit"""),
        ([f"src/{n}.py" for n in range(9)] + ["README.md"], "git add src README.md && git commit"),
        ([f"{n}/a.py" for n in range(9)], "git add -A && git commit"),
        ([], "git add -A && git commit"),
        (["-f"], "git add -A && git commit"),
        ([":(glob)x"], "git add -A && git commit"),
        (["a\x1b[31mb"], "git add -A && git commit"),
        (["caf\ufffd.txt"], "git add -A && git commit"),
        (["src/caf\ufffd.txt"], "git add src && git commit"),
        (["src/*.py"], "git add src && git commit"),
    ],
)
def test_command(paths: list[str], command: str) -> None:
    assert commit_command(paths) == command


def test_git_takes_new_changed_and_removed_files(tmp_path: Path) -> None:
    committed(tmp_path, {"a": "1\n", "b": "1\n"})
    (tmp_path / "a").write_text("2\n")
    (tmp_path / "b").unlink()
    (tmp_path / "n w").write_text("3\n")
    add = commit_command(["a", "b", "n w"], f"git -C {tmp_path}").partition(" && ")[0]
    subprocess.run(["sh", "-c", add], check=True)
    assert git(tmp_path, "status", "--porcelain").splitlines() == ["M  a", "D  b", 'A  "n w"']
