"""What an engine is told to make, field by field."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import UsageError
from agentrunner.sandboxes.base import Mount, ResourceLimit
from agentrunner.sandboxes.docker.config import (
    KEEPER,
    ContainerSpec,
    User,
    container_config,
    preamble,
)
from agentrunner.sandboxes.docker.engine import Traits, read_traits

PLAN = ContainerSpec(
    image="sha256:abc",
    user=User(1000, 100),
    mounts=(
        Mount(Path("/home/me/a:b, c"), Path("/home/me/a:b, c"), read_only=False),
        Mount(Path("/home/me/a:b, c/.git"), Path("/home/me/a:b, c/.git")),
    ),
    labels={"agentrunner.run": "r1"},
)
GIB = 1 << 30


def test_every_field_of_a_create_call() -> None:
    scratch = f"rw,exec,nosuid,nodev,mode=1777,size={2 * GIB}"
    assert container_config(PLAN, Traits()) == {
        "Image": "sha256:abc",
        "User": "64999:100",
        "Entrypoint": ["/bin/sh", "-c", KEEPER],
        "Cmd": [],
        "Env": [],
        "WorkingDir": "/",
        "Hostname": "box",
        "Labels": {"agentrunner.run": "r1"},
        "Healthcheck": {"Test": ["NONE"]},
        "Tty": False,
        "HostConfig": {
            "AutoRemove": True,
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "Privileged": False,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Init": True,
            "IpcMode": "private",
            "PidMode": "",
            "UTSMode": "",
            "UsernsMode": "",
            "Memory": 4 * GIB,
            "MemorySwap": 4 * GIB,
            "NanoCpus": 0,
            "PidsLimit": 512,
            "ShmSize": 256 << 20,
            "Tmpfs": {"/tmp": scratch, "/var/tmp": scratch, "/home/agent": scratch},
            "Mounts": [
                {
                    "Type": "bind",
                    "Source": "/home/me/a:b, c",
                    "Target": "/home/me/a:b, c",
                    "ReadOnly": False,
                    "BindOptions": {"Propagation": "rprivate", "NonRecursive": False},
                },
                {
                    "Type": "bind",
                    "Source": "/home/me/a:b, c/.git",
                    "Target": "/home/me/a:b, c/.git",
                    "ReadOnly": True,
                    "BindOptions": {"Propagation": "rprivate", "NonRecursive": True},
                },
            ],
            "LogConfig": {"Type": "none", "Config": {}},
            "RestartPolicy": {"Name": "no"},
        },
    }


def host(plan: ContainerSpec, traits: Traits | None = None) -> dict[str, Any]:
    config: dict[str, Any] = container_config(plan, traits or Traits())["HostConfig"]
    return config


def test_limits_of_the_task() -> None:
    limits = ResourceLimit(cpus=1.5, memory="512m", pids=77)
    made = host(replace(PLAN, limits=limits))
    assert (made["Memory"], made["MemorySwap"]) == (512 << 20, 512 << 20)
    assert (made["NanoCpus"], made["PidsLimit"]) == (1_500_000_000, 77)
    assert "size=268435456" in made["Tmpfs"]["/tmp"], "half of the memory"
    with pytest.raises(UsageError, match="not an amount of memory"):
        host(replace(PLAN, limits=ResourceLimit(memory="much")))


def test_a_mask_is_an_empty_read_only_folder() -> None:
    made = host(replace(PLAN, masks=(Path("/repo/.git"),)))
    assert made["Tmpfs"]["/repo/.git"].startswith("ro,")


def test_podmans_own_writable_place_is_closed() -> None:
    assert host(PLAN, Traits(product="Podman"))["Tmpfs"]["/run"].startswith("ro,")


def test_a_newer_engine_makes_mounts_in_mounts_read_only_by_itself() -> None:
    made = host(PLAN, Traits(api=(1, 44)))
    assert [mount["BindOptions"]["NonRecursive"] for mount in made["Mounts"]] == [False, False]


def test_the_first_process_is_ours_where_a_mount_hides_the_engines() -> None:
    usr = Mount(Path("/usr"), Path("/usr"))
    assert host(replace(PLAN, mounts=(usr,)))["Init"] is False


@pytest.mark.parametrize(("uid", "keeper"), [(0, "64999:0"), (64999, "64998:0")])
def test_the_keeper_is_never_the_workers_user(uid: int, keeper: str) -> None:
    assert User(uid, 0).keeper == keeper


def test_what_is_mounted_in_scratch_space_is_not_emptied(tmp_path: Path) -> None:
    place = tmp_path / "we[i]rd *\\ 'x'"
    config = container_config(
        replace(PLAN, mounts=(Mount(Path("/r"), place, read_only=False),)), Traits()
    )
    config["HostConfig"]["Mounts"][0]["Target"] = str(place).replace(str(tmp_path), "/tmp/t")
    script = preamble(config).replace("/tmp/t", str(tmp_path))
    for name in (place / "kept", tmp_path / "left", tmp_path / "weird *"):
        name.mkdir(parents=True)
    listing = subprocess.run(
        ["sh", "-c", f'{script}\nscratch "$1" -print', "sh", str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    # `kept` is only seen as nothing is really mounted here.
    assert sorted(listing.stdout.splitlines()) == sorted(
        map(str, (place / "kept", tmp_path / "left", tmp_path / "weird *"))
    )


def test_traits_are_the_engines_own_words() -> None:
    info = {"MemoryLimit": True, "PidsLimit": False, "SecurityOptions": ["name=rootless"]}
    version = {
        "ApiVersion": "1.41", "Version": "4.3.1", "Components": [{"Name": "Podman Engine"}],
    }  # fmt: skip
    traits = read_traits(info, version, bridge=True)
    assert (traits.product, traits.version, traits.rootless) == ("Podman", "4.3.1", True)
    assert traits.lacks == {"pids", "cpus", "seccomp"}
