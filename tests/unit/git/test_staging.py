"""The command for a commit takes all that the run left, new files too."""

import subprocess
from pathlib import Path

import pytest

from agentrunner.git.staging import commit_commands
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
    assert commit_commands(paths) == [command]


def test_git_takes_new_changed_and_removed_files(tmp_path: Path) -> None:
    committed(tmp_path, {"a": "1\n", "b": "1\n"})
    (tmp_path / "a").write_text("2\n")
    (tmp_path / "b").unlink()
    (tmp_path / "n w").write_text("3\n")
    (command,) = commit_commands(["a", "b", "n w"], f"git -C {tmp_path}")
    add = command.partition(" && ")[0]
    subprocess.run(["sh", "-c", add], check=True)
    assert git(tmp_path, "status", "--porcelain").splitlines() == ["M  a", "D  b", 'A  "n w"']


def test_what_lies_in_a_submodule_is_committed_there(tmp_path: Path) -> None:
    committed(tmp_path / "lib", {"x.c": "1\n"})
    committed(tmp_path, {"a": "1\n"})
    (tmp_path / "a").write_text("2\n")
    (tmp_path / "lib/x.c").write_text("2\n")
    where = f"git -C {tmp_path}"
    commands = commit_commands(["a", "lib/x.c"], where, str(tmp_path))
    assert commands == [
        f"{where} -C lib add x.c && {where} -C lib commit",
        f"{where} add a && {where} commit",
    ]
    for command in commands:
        subprocess.run(["sh", "-c", command.partition(" && ")[0]], check=True)
    assert git(tmp_path / "lib", "status", "--porcelain").splitlines() == ["M  x.c"]
    assert commit_commands(["lib/x.c"], where, str(tmp_path)) == commands[:1]


def test_the_repository_around_a_submodule_names_its_commit(tmp_path: Path) -> None:
    committed(tmp_path, {"a": "1\n", "lib/x.c": "1\n"})
    (tmp_path / "lib/.git").write_text("gitdir: ../elsewhere\n")
    assert commit_commands(["lib/x.c"], "git", str(tmp_path)) == [
        "git -C lib add x.c && git -C lib commit",
        "git add lib && git commit",
    ]
