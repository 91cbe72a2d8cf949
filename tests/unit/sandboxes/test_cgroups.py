"""Where cgroups are looked for, from what the kernel shows of three kinds of machines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agentrunner.sandboxes.cgroups import Hierarchy, Limit, hierarchies, hold
from agentrunner.sandboxes.enter import GROUP_PREFIX, start_time, sweep

LIMITS = [Limit("pids", 64), Limit("memory", 2 << 20), Limit("cpu", 1.5)]


def process(tmp_path: Path, cgroup: str, mounts: list[str]) -> Path:
    (tmp_path / "cgroup").write_text(cgroup)
    lines = [f"{30 + n} 20 0:{n} {mount}\n" for n, mount in enumerate(mounts)]
    (tmp_path / "mountinfo").write_text("".join(lines))
    return tmp_path


def test_version_1_has_a_tree_for_each_controller(tmp_path: Path) -> None:
    cgroup = "5:name=systemd:/\n4:memory:/a/b\n2:cpu,cpuacct:/\n1:pids:/\n0::/\n"
    mounts = [
        "/ /cg/memory rw - cgroup cgroup rw,memory",
        "/ /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct",
        "/ /cg/systemd rw - cgroup cgroup rw,name=systemd",
        "/ /home rw - ext4 /dev/vda rw",
    ]
    found = hierarchies(process(tmp_path, cgroup, mounts))
    assert found == [
        Hierarchy(1, frozenset({"memory"}), Path("/cg/memory"), Path("/cg/memory/a/b")),
        Hierarchy(1, frozenset({"cpu"}), Path("/cg/cpu"), Path("/cg/cpu")),
    ]


def test_version_2_is_one_tree(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    cgroup = "0::/user.slice/user-1000.slice/app.scope\n"
    found = hierarchies(process(tmp_path, cgroup, [f"/ {top} rw - cgroup2 cgroup2 rw,nsdelegate"]))
    own = top / "user.slice/user-1000.slice/app.scope"
    assert found == [Hierarchy(2, frozenset({"cpu", "memory", "pids"}), top, own)]


def test_in_a_container_only_a_part_of_the_tree_is_mounted(tmp_path: Path) -> None:
    mounts = [
        "/docker/abc /cg/memory rw - cgroup cgroup rw,memory",
        "/docker/abc /cg/pids rw - cgroup cgroup rw,pids",
    ]
    found = hierarchies(process(tmp_path, "4:memory:/docker/abc/x\n3:pids:/\n", mounts))
    assert [each.own for each in found] == [Path("/cg/memory/x"), Path("/cg/pids")]


def test_without_cgroups_nothing_is_held(tmp_path: Path) -> None:
    assert hierarchies(tmp_path / "absent") == []
    holding = hold(LIMITS, [])
    assert holding.groups == () and set(holding.refused) == {"pids", "memory", "cpu"}


@pytest.mark.parametrize(
    ("version", "settings"),
    [
        (1, {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"}),
        (2, {"cpu.max": "150000 100000"}),
    ],
)
def test_processors_are_a_share_of_a_tenth_of_a_second(
    version: int, settings: dict[str, str]
) -> None:
    assert dict(Limit("cpu", 1.5).settings(version)) == settings


def test_in_version_2_the_nearest_group_that_lets_us_is_taken(tmp_path: Path) -> None:
    """Folders in place of the kernel's tree: what may be made is a question of rights there too."""
    own = tmp_path / "slice/scope"
    own.mkdir(parents=True)
    (own / "agentrunner").write_text("")
    hierarchy = Hierarchy(2, frozenset({"memory", "pids"}), tmp_path, own)
    holding = hold(LIMITS, [hierarchy])
    assert [group.parent for group in holding.groups] == [own]
    assert dict(holding.groups[0].settings) == {"pids.max": "64", "memory.max": str(2 << 20)}
    assert holding.versions == {"pids": 2, "memory": 2}
    assert holding.refused == {"cpu": "no such cgroup is mounted"}
    missing = Hierarchy(2, frozenset({"cpu"}), tmp_path / "slice", tmp_path / "slice/gone")
    assert [group.parent for group in hold(LIMITS, [missing]).groups] == [tmp_path / "slice"]


def test_the_group_of_an_owner_that_ended_is_swept_though_nobody_has_collected_it(
    tmp_path: Path,
) -> None:
    owner = subprocess.Popen(["sleep", "1000"])
    group = tmp_path / f"{GROUP_PREFIX}{owner.pid}-{start_time(owner.pid)}"
    group.mkdir()
    sweep(str(tmp_path))
    assert group.exists()
    owner.kill()
    os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)
    sweep(str(tmp_path))
    assert not group.exists()
    owner.wait()
