from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.sandboxes.deny import check_read_paths, check_repo


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home" / "user"
    for folder in (".ssh", ".config/gh", ".local/share/keyrings", ".local/state/agentrunner/runs"):
        (home / folder).mkdir(parents=True)
    for file in (".ssh/id_ed25519", ".netrc", ".config/gh/hosts.yml"):
        (home / file).write_text("secret")
    (home / "data").mkdir()
    return home


def state(home: Path) -> Path:
    return home / ".local/state/agentrunner"


ROOTS_HOME = pwd.getpwuid(0).pw_dir


@pytest.mark.parametrize(
    "path",
    [
        "/", "/etc", "/etc/passwd", "/etc/../etc", ROOTS_HOME, f"{ROOTS_HOME}/.ssh",
        "/proc", "/proc/self", "/sys", "/dev", "/dev/null", "/run", "/var/run", "/var",
        "relative", "/no/such/path",
        "~", "~/..", "~/.ssh", "~/.ssh/id_ed25519", "~/.netrc", "~/.config", "~/.config/gh",
        "~/.local", "~/.local/share", "~/.local/state", "~/.local/state/agentrunner/runs",
        "~/data/..", "~/data/../.ssh",
    ],
)  # fmt: skip
def test_what_no_task_may_mount(path: str, home: Path) -> None:
    place = Path(path.replace("~", str(home)))
    with pytest.raises(UsageError) as caught:
        check_read_paths([place], host_home=home, state_root=state(home))
    assert caught.value.code == "read-path"
    assert str(place) in caught.value.message


def test_a_link_does_not_lead_around_the_list(home: Path, tmp_path: Path) -> None:
    os.mknod(tmp_path / "docker.sock", stat.S_IFSOCK)
    for number, target in enumerate((home / ".ssh", tmp_path / "docker.sock", Path("/etc/shadow"))):
        link = tmp_path / f"innocent{number}"
        link.symlink_to(target)
        with pytest.raises(UsageError):
            check_read_paths([link], host_home=home, state_root=state(home))


def test_a_plain_folder_may_be_read(home: Path, tmp_path: Path) -> None:
    shared = tmp_path / "datasets"
    shared.mkdir()
    check_read_paths([shared, home / "data"], host_home=home, state_root=state(home))


def test_the_state_folder_is_denied_wherever_it_is(home: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "state"
    moved.mkdir(parents=True)
    for path in (moved, moved.parent):
        with pytest.raises(UsageError):
            check_read_paths([path], host_home=home, state_root=moved)


@pytest.mark.parametrize("path", ["/", "/usr", "/tmp", "/etc", "/home", "/proc/self", "~", "~/.."])
def test_what_is_no_repository(path: str, home: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_repo(Path(path.replace("~", str(home))), host_home=home, state_root=state(home))
    assert caught.value.code == "repo-path"


def test_a_repository_by_its_real_path_only(home: Path, tmp_path: Path) -> None:
    repo = home / "data"
    check_repo(repo, host_home=home, state_root=state(home))
    link = tmp_path / "link"
    link.symlink_to(repo)
    file = repo / "file"
    file.touch()
    for wrong in (link, file, repo / "absent", Path("data")):
        with pytest.raises(UsageError):
            check_repo(wrong, host_home=home, state_root=state(home))


def test_a_repository_must_not_hold_the_state(home: Path) -> None:
    with pytest.raises(UsageError, match="state folder"):
        check_repo(home / "data", host_home=home, state_root=home / "data/.state")
