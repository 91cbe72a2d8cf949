"""Small parts of the Docker back end: frames, orders, labels, places, description."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.sandboxes.base import Door, Mount, Request, ResourceLimit, SandboxOrder
from agentrunner.sandboxes.docker import description, owners
from agentrunner.sandboxes.docker.attach import AttachOrder
from agentrunner.sandboxes.docker.config import (
    User,
    configuration,
    host_programs,
    make_places,
    sandbox_mounts,
)
from agentrunner.sandboxes.docker.engine import Traits, engine_address
from agentrunner.sandboxes.docker.exec import ExecCommand, Frames
from agentrunner.sandboxes.gitdirs import GitData, Mask, remove_mask


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8),
    st.lists(st.integers(1, 30)),
)
def test_frames_come_together_however_they_are_cut(
    sent: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    data = b"".join(struct.pack(">BxxxL", n, len(piece)) + piece for n, piece in sent)
    frames = Frames()
    got: dict[str, bytes] = {"stdout": b"", "stderr": b""}
    for size in [*cuts, len(data) + 1]:
        for stream, piece in frames.feed(data[:size]):
            got[stream] += piece
        data = data[size:]
    for number, name in ((1, "stdout"), (2, "stderr")):
        assert got[name] == b"".join(piece for n, piece in sent if n == number)


def test_an_order_survives_the_way_through_the_environment() -> None:
    command = ExecCommand(("sh", "-c", "x" * 250_000), {"TOKEN": "ä\udc80" * 100}, "/repo")
    order = AttachOrder(
        host="unix:///e.sock",
        folder=Path("/run"),
        config={"Image": "i", "HostConfig": {"Mounts": []}},
        user=User(1, 2),
        command=command,
        door=Door(Path("/run/sock"), {8787: "gateway.sock"}),
        masked=Path("/repo"),
    )
    env = order.to_env()
    assert len(env) > 2 and all(len(value) < 128 << 10 for value in env.values())
    assert AttachOrder.from_env({"PATH": "/bin", **env}) == order
    bare = replace(order, door=None, masked=None)
    assert AttachOrder.from_env(bare.to_env()) == bare


def test_an_owner_is_alive_as_long_as_its_process() -> None:
    script = "from agentrunner.sandboxes.docker.owners import *; print(json.dumps(owner_labels()))"
    command = [sys.executable, "-c", f"import json; {script}"]
    theirs = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert owners.owner_is_dead(theirs)
    ours = owners.owner_labels()
    assert not owners.owner_is_dead(ours)
    assert owners.owner_is_dead({**ours, owners.OWNER_START: "1"}), "its number was given away"
    assert owners.owner_is_dead({**ours, owners.OWNER_BOOT: "another"}), "before a restart"
    elsewhere = {**theirs, owners.OWNER_SPACE: "pid:[1]"}
    assert not owners.owner_is_dead(elsewhere), "of another container nothing is known"
    assert not owners.owner_is_dead({"com.example": "1"}), "not ours"


def test_each_place_is_mounted_once_and_the_copy_is_not_covered(tmp_path: Path) -> None:
    repo, home, copy = tmp_path / "repo", tmp_path / "box", tmp_path / "copy"
    spec = SandboxOrder(repo, home, read_paths=(repo / "data", tmp_path), sockets=tmp_path / "sock")
    extra = Mount(tmp_path / "cache", repo / "node_modules", read_only=False)
    request = Request(("true",), repo, repo_copy=copy, mounts=(extra,))
    git = GitData(paths=(repo / ".git",))
    mounts = {mount.target: mount for mount in sandbox_mounts(spec, git, request)}
    assert mounts[repo] == Mount(copy, repo, read_only=False)
    assert mounts[repo / ".git"] == Mount(repo / ".git", repo / ".git")
    assert mounts[repo / "node_modules"] is extra
    assert repo / "data" not in mounts
    assert mounts[Path("/run/agentrunner")] == Mount(tmp_path / "sock", Path("/run/agentrunner"))


def test_of_a_program_its_folder_is_shown_unless_that_shows_too_much(tmp_path: Path) -> None:
    home = tmp_path / "me"
    tool, loose = tmp_path / "opt/tool/bin/tool", home / "tool"
    for file in (tool, loose):
        file.parent.mkdir(parents=True)
        file.touch(mode=0o755)
    sh = str(Path("/bin/sh"))
    programs = ("make", str(tool), str(loose), sh, str(tmp_path / "absent"))
    spec = SandboxOrder(tmp_path / "repo", tmp_path / "box", programs=programs)
    found = host_programs(spec, home)
    assert found[tool] == Mount(tool.parent, tool.parent)
    assert found[loose] == Mount(loose, loose), "the folder is a home"
    assert found[Path(sh)].target == Path(sh), "the folder is the system's"
    assert len(found) == 3


def test_of_a_program_that_the_host_provides_its_configuration_comes_along(tmp_path: Path) -> None:
    share, etc = tmp_path / "share", tmp_path / "etc"
    program = share / "maven/bin/mvn"
    for file in (program, etc / "maven/settings.xml", etc / "ssl/certs/ca.pem"):
        file.parent.mkdir(parents=True)
        file.touch(mode=0o755)
    (share / "maven/conf").symlink_to(etc / "maven")
    (share / "maven/certs").symlink_to(etc / "ssl/certs")
    environ = {"PATH": str(program.parent)}

    def shown(*read: Path) -> tuple[Mount, ...]:
        repo, box = tmp_path / "repo", tmp_path / "box"
        spec = SandboxOrder(repo, box, programs=("mvn",), read_paths=read)
        return configuration(spec, environ, tmp_path / "me", etc)

    own = Mount((etc / "maven").resolve(), etc / "maven")
    assert shown(share) == (own,), "certificates are a matter of the image"
    assert shown() == shown(tmp_path / "repo") == (), "the image has a program of its own"


def test_places_are_made_in_the_copy_and_not_through_its_links(tmp_path: Path) -> None:
    repo, copy, outside = tmp_path / "repo", tmp_path / "copy", tmp_path / "outside"
    for folder in (repo, copy, outside):
        folder.mkdir()
    (copy / "link").symlink_to(outside)
    (repo / ".git").write_text("gitdir: x")
    targets = [
        Mount(repo / ".git", repo / ".git"),
        Mount(tmp_path, repo / "a/b"),
        Mount(tmp_path, repo / "link/made"),
        Mount(tmp_path, tmp_path / "elsewhere"),
    ]
    make_places(copy, repo, targets)
    assert (copy / ".git").is_file() and (copy / "a/b").is_dir()
    assert not list(outside.iterdir()) and not (tmp_path / "elsewhere").exists()


def test_a_mask_stays_as_long_as_one_needs_it(tmp_path: Path) -> None:
    first, second = Mask(tmp_path), Mask(tmp_path)
    first.put()
    second.put()
    first.put()
    first.lift()
    remove_mask(tmp_path)
    assert (tmp_path / ".git").is_dir()
    second.lift()
    second.lift()
    assert not (tmp_path / ".git").exists()


def test_the_engine_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine_address({"DOCKER_HOST": "unix:///x.sock"}) == "unix:///x.sock"
    monkeypatch.setenv("DOCKER_CONFIG", "/nowhere")
    assert engine_address({}) == "unix:///var/run/docker.sock"


def test_what_is_not_held_is_not_claimed() -> None:
    spec = SandboxOrder(Path("/r"), Path("/h"), limits=ResourceLimit(memory="1g", cpus=2))
    held = description.isolation(spec, Traits())
    names = "processes files network privileges user memory cpus pids disk"
    assert set(held) == {*names.split(), "system calls"}
    assert held["memory"].startswith("1g") and held["cpus"].startswith("2,")
    less = description.isolation(spec, Traits(lacks=frozenset({"memory", "seccomp"})))
    assert "not held" in less["memory"] and "not held" in less["system calls"]
    assert "memory 1g" in description.describe(spec, Traits(version="20.10"), "some/image")


def test_nothing_of_this_process_is_in_a_label() -> None:
    assert not any(os.environ["PATH"] in value for value in owners.owner_labels().values())
