"""Who lives in a container, read from a made-up /proc: the kernel's list, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.sandboxes.docker.container import member_list, users_in

BOX = "1f" * 32


@pytest.fixture(params=["v1", "v2"])
def proc(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A /proc in which process 70 is the first of the container, and 71 lives in it as well."""
    groups, proc = tmp_path / "groups", tmp_path / "proc"
    kind, name = ("cgroup2", "") if request.param == "v2" else ("cgroup", "pids")
    group = groups / "docker" / BOX
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text("70\n71\n")
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "mounts").write_text(f"x {groups} {kind} rw,nosuid,{name} 0 0\n")
    for pid, uid in ((70, 64999), (71, 1000)):
        (proc / str(pid)).mkdir()
        (proc / str(pid) / "cgroup").write_text(f"3:{name}:/docker/{BOX}\n")
        (proc / str(pid) / "status").write_text(f"Name:\tsh\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
    return proc


def test_everybody_in_it_is_counted(proc: Path) -> None:
    members = member_list(BOX, 70, proc)
    assert members is not None
    assert users_in(members, proc) == [64999, 1000]


def test_who_has_just_gone_is_not(proc: Path) -> None:
    members = member_list(BOX, 70, proc)
    assert members is not None
    (proc / "71" / "status").unlink()
    assert users_in(members, proc) == [64999]


def test_a_number_that_is_somebody_elses_here_leads_nowhere(proc: Path) -> None:
    assert member_list("2e" * 32, 70, proc) is None
    assert member_list(BOX, 72, proc) is None
    members = member_list(BOX, 70, proc)
    assert members is not None
    members.write_text("71\n")
    assert member_list(BOX, 70, proc) is None


def test_a_list_that_cannot_be_read_says_nothing(proc: Path, tmp_path: Path) -> None:
    assert users_in(tmp_path / "none", proc) is None
    members = member_list(BOX, 70, proc)
    assert members is not None
    (proc / "71" / "status").write_text("Name:\tsh\n")
    assert users_in(members, proc) is None
