"""Layouts of version managers as they are on disk, below a home of our own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agentrunner.sandboxes.toolchain import Toolchain, find_toolchain
from tests.kit.files import write

ENVIRONMENT_ONLY = "agentrunner-tool"
"""A name that no machine has in /usr, so that only the layout under test can answer."""


class Machine:
    def __init__(self, root: Path) -> None:
        self.home = root / "home" / "user"
        self.repo = root / "repo"
        self.home.mkdir(parents=True)
        self.repo.mkdir()
        self.path: list[Path] = []
        self.variables: dict[str, str] = {}

    def program(self, place: str, text: str = "\x7fELF") -> Path:
        file = self.home / place
        write(file.parent, {file.name: text})
        file.chmod(0o755)
        return file

    def link(self, place: str, target: str | Path) -> Path:
        file = self.home / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)
        return file

    def find(self, *programs: str) -> Toolchain:
        environ = {"PATH": ":".join(map(str, self.path)), **self.variables}
        return find_toolchain(programs, self.repo, environ, self.home)

    def roots(self, *programs: str) -> set[str]:
        """Mounts below the home, relative to it."""
        found = self.find(*programs)
        assert not found.missing
        assert all(mount.read_only and mount.source == mount.target for mount in found.mounts)
        return {
            str(mount.target.relative_to(self.home))
            for mount in found.mounts
            if mount.target.is_relative_to(self.home)
        }


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nvm_shows_one_version_and_not_its_siblings(machine: Machine) -> None:
    machine.program(".nvm/versions/node/v18.1.0/bin/node")
    node = machine.program(".nvm/versions/node/v20.1.0/bin/node")
    cli = ".nvm/versions/node/v20.1.0/lib/node_modules/@scope/cli/bin/cli.js"
    machine.program(cli, "#!/usr/bin/env node\n")
    machine.link(".nvm/versions/node/v20.1.0/bin/agentrunner-tool", machine.home / cli)
    machine.path = [node.parent]
    assert machine.roots(ENVIRONMENT_ONLY) == {".nvm/versions/node/v20.1.0"}
    assert machine.find(ENVIRONMENT_ONLY).path[0] == node.parent


def test_fnm_behind_a_folder_that_is_a_link(machine: Machine, tmp_path: Path) -> None:
    root = ".local/share/fnm/node-versions/v22.0.0"
    machine.program(f"{root}/installation/bin/{ENVIRONMENT_ONLY}")
    shell = tmp_path / "run/fnm_multishells/77_1"
    shell.parent.mkdir(parents=True)
    shell.symlink_to(machine.home / root / "installation")
    machine.path = [shell / "bin"]
    assert machine.roots(ENVIRONMENT_ONLY) == {root}


def test_uv_python_behind_a_venv_in_the_repository(machine: Machine) -> None:
    uv = ".local/share/uv/python"
    machine.program(f"{uv}/cpython-3.12.4-linux/bin/python3.12")
    machine.link(f"{uv}/cpython-3.12-linux", "cpython-3.12.4-linux")
    venv = machine.repo / ".venv"
    base = machine.home / uv / "cpython-3.12-linux/bin"
    write(venv, {"pyvenv.cfg": f"home = {base}\nversion_info = 3.12.4\n"})
    (venv / "bin").mkdir()
    (venv / "bin/python").symlink_to(base / "python3.12")
    write(venv / "bin", {ENVIRONMENT_ONLY: f"#!{venv}/bin/python\n"})
    found = machine.find(ENVIRONMENT_ONLY)
    assert machine.roots(ENVIRONMENT_ONLY) == {f"{uv}/cpython-3.12.4-linux"}
    assert (machine.home / uv / "cpython-3.12-linux", "cpython-3.12.4-linux") in found.links
    assert found.path[0] == venv / "bin"


@pytest.mark.parametrize("chosen_by", ["variable", "repository", "global", "prefix"])
def test_pyenv_shim(machine: Machine, chosen_by: str) -> None:
    for version in ("3.9.1", "3.11.2", "3.11.10"):
        machine.program(f".pyenv/versions/{version}/bin/{ENVIRONMENT_ONLY}")
    shim = machine.program(f".pyenv/shims/{ENVIRONMENT_ONLY}", "#!/usr/bin/env bash\n")
    machine.path = [shim.parent]
    write(machine.home, {".pyenv/version": "3.9.1\n"})
    expected = "3.11.2"
    match chosen_by:
        case "variable":
            machine.variables["PYENV_VERSION"] = "3.11.2"
        case "repository":
            write(machine.repo, {".python-version": "# comment\n3.11.2\n"})
        case "prefix":
            write(machine.repo, {".python-version": "3.11\n"})
            expected = "3.11.10"
        case _:
            expected = "3.9.1"
    assert machine.roots(ENVIRONMENT_ONLY) == {f".pyenv/versions/{expected}"}
    path = machine.find(ENVIRONMENT_ONLY).path
    assert path[0] == machine.home / f".pyenv/versions/{expected}/bin"
    assert shim.parent not in path


def test_a_shim_that_leads_nowhere_is_passed_over(machine: Machine) -> None:
    shim = machine.program(f".pyenv/shims/{ENVIRONMENT_ONLY}")
    machine.program(".pyenv/versions/3.9.1/bin/python")
    machine.path = [shim.parent]
    assert machine.find(ENVIRONMENT_ONLY).missing == (ENVIRONMENT_ONLY,)


@pytest.mark.parametrize("manager", [".asdf", ".local/share/mise"])
def test_asdf_and_mise_shims(machine: Machine, manager: str) -> None:
    for version in ("18.0.0", "20.3.0"):
        machine.program(f"{manager}/installs/nodejs/{version}/bin/{ENVIRONMENT_ONLY}")
    shim = machine.program(f"{manager}/shims/{ENVIRONMENT_ONLY}")
    machine.path = [shim.parent]
    assert machine.roots(ENVIRONMENT_ONLY) == {f"{manager}/installs/nodejs/20.3.0"}
    write(machine.repo, {".tool-versions": "nodejs 18.0.0\n"})
    assert machine.roots(ENVIRONMENT_ONLY) == {f"{manager}/installs/nodejs/18.0.0"}


def test_mise_configuration(machine: Machine) -> None:
    for version in ("18.0.0", "20.3.0"):
        machine.program(f".local/share/mise/installs/node/{version}/bin/{ENVIRONMENT_ONLY}")
    machine.path = [machine.program(f".local/share/mise/shims/{ENVIRONMENT_ONLY}").parent]
    write(machine.repo, {"mise.toml": '[tools]\nnode = "18"\n'})
    assert machine.roots(ENVIRONMENT_ONLY) == {".local/share/mise/installs/node/18.0.0"}


def test_volta(machine: Machine) -> None:
    for version in ("18.1.0", "20.1.0"):
        machine.program(f".volta/tools/image/node/{version}/bin/node")
    tool = ".volta/tools/image/packages/@scope/tool"
    machine.program(f"{tool}/bin/{ENVIRONMENT_ONLY}", "#!/usr/bin/env node\n")
    machine.program(".volta/bin/volta-shim")
    machine.link(f".volta/bin/{ENVIRONMENT_ONLY}", "volta-shim")
    machine.link(".volta/bin/node", "volta-shim")
    machine.path = [machine.home / ".volta/bin"]
    write(machine.home, {".volta/tools/user/platform.json": '{"node": {"runtime": "20.1.0"}}'})
    assert machine.roots(ENVIRONMENT_ONLY) == {tool, ".volta/tools/image/node/20.1.0"}
    write(machine.repo, {"package.json": '{"volta": {"node": "18.1.0"}}'})
    assert machine.roots(ENVIRONMENT_ONLY) == {tool, ".volta/tools/image/node/18.1.0"}


def test_rustup_shows_the_toolchain_and_never_cargos_home(machine: Machine) -> None:
    for name in ("stable-x86_64-unknown-linux-gnu", "1.70.0-x86_64-unknown-linux-gnu"):
        machine.program(f".rustup/toolchains/{name}/bin/cargo")
    machine.program(".cargo/bin/rustup")
    machine.link(".cargo/bin/cargo", "rustup")
    write(machine.home, {".cargo/credentials.toml": "token"})
    write(
        machine.home,
        {".rustup/settings.toml": 'default_toolchain = "stable-x86_64-unknown-linux-gnu"\n'},
    )
    machine.path = [machine.home / ".cargo/bin"]
    assert machine.roots("cargo") == {".rustup/toolchains/stable-x86_64-unknown-linux-gnu"}
    write(machine.repo, {"rust-toolchain.toml": '[toolchain]\nchannel = "1.70.0"\n'})
    assert machine.roots("cargo") == {".rustup/toolchains/1.70.0-x86_64-unknown-linux-gnu"}


def test_a_tool_of_a_shared_folder_is_shown_alone(machine: Machine) -> None:
    """~/.cargo/bin lies beside tokens, ~/.local/bin below keyrings, ~/bin in the home."""
    for folder, neighbour in (
        (".cargo", "lib"),
        (".local", "lib"),
        (".", "lib"),
        (".docker", "lib"),
    ):
        write(machine.home / folder / neighbour, {"secret": "token"})
        tool = machine.program(f"{folder}/bin/{ENVIRONMENT_ONLY}")
        machine.path = [tool.parent]
        assert machine.roots(ENVIRONMENT_ONLY) == {str(Path(folder, "bin", ENVIRONMENT_ONLY))}


def test_a_link_is_made_again_and_only_its_target_shown(machine: Machine) -> None:
    venv = ".local/share/pipx/venvs/tool"
    target = machine.program(
        f"{venv}/bin/{ENVIRONMENT_ONLY}", f"#!{machine.home}/{venv}/bin/python\n"
    )
    write(machine.home / venv, {"pyvenv.cfg": "home = /usr/bin\n"})
    machine.link(f"{venv}/bin/python", "/usr/bin/python3")
    link = machine.link(f".local/bin/{ENVIRONMENT_ONLY}", target)
    machine.path = [link.parent]
    found = machine.find(ENVIRONMENT_ONLY)
    assert machine.roots(ENVIRONMENT_ONLY) == {venv}
    assert (link, str(target)) in found.links
    assert found.path[0] == link.parent


def test_a_native_binary_among_versions_is_shown_alone(machine: Machine) -> None:
    binary = machine.program(".local/share/tool/versions/2.1.0")
    machine.program(".local/share/tool/versions/2.0.0")
    machine.path = [machine.link(f".local/bin/{ENVIRONMENT_ONLY}", binary).parent]
    assert machine.roots(ENVIRONMENT_ONLY) == {".local/share/tool/versions/2.1.0"}


def test_npm_prefix_shows_the_packages(machine: Machine) -> None:
    script = machine.program(".npm-global/lib/node_modules/tool/cli.js", "#!/usr/bin/env sh\n")
    machine.path = [machine.link(f".npm-global/bin/{ENVIRONMENT_ONLY}", script).parent]
    roots = machine.roots(ENVIRONMENT_ONLY)
    assert ".npm-global/lib/node_modules" in roots or ".npm-global" in roots


def test_a_root_that_would_show_the_run_is_not_taken(machine: Machine) -> None:
    tool = machine.program(f"prefix/bin/{ENVIRONMENT_ONLY}")
    (machine.home / "prefix/lib").mkdir()
    machine.path = [tool.parent]
    assert machine.roots(ENVIRONMENT_ONLY) == {"prefix"}
    environ = {"PATH": str(tool.parent)}
    avoid = machine.home / "prefix/state/runs/1/box"
    found = find_toolchain([ENVIRONMENT_ONLY], machine.repo, environ, machine.home, avoid=(avoid,))
    assert [
        mount.target for mount in found.mounts if mount.target.is_relative_to(machine.home)
    ] == [tool]


def test_relative_and_empty_entries_of_the_path_are_dropped(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(machine.repo, {ENVIRONMENT_ONLY: "#!/bin/sh\n"})
    monkeypatch.chdir(machine.repo)
    machine.variables["PATH"] = ".::bin"
    found = machine.find(ENVIRONMENT_ONLY)
    assert found.missing == (ENVIRONMENT_ONLY,)
    assert all(entry.is_absolute() for entry in found.path)


def test_a_program_of_the_repository_brings_its_interpreter(machine: Machine) -> None:
    machine.program(".nvm/versions/node/v20.1.0/bin/agentrunner-node")
    machine.path = [machine.home / ".nvm/versions/node/v20.1.0/bin"]
    write(machine.repo, {"check": "#!/usr/bin/env -S agentrunner-node --flag\n"})
    assert machine.roots("./check") == {".nvm/versions/node/v20.1.0"}


def test_an_environment_made_of_a_python_that_may_not_be_seen_is_passed_over(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = machine.home / "closed"
    venv = machine.repo / ".venv"
    write(venv, {"pyvenv.cfg": f"home = {closed / 'bin'}\n"})
    (venv / "bin").mkdir()
    (venv / "bin" / "python").symlink_to(closed / "bin" / "python3")
    write(venv, {"bin/pytest": f"#!{venv / 'bin' / 'python'}\n"})
    stat, lstat = os.stat, os.lstat

    def refusing(path: Any, **more: Any) -> os.stat_result:
        if Path(path).is_relative_to(closed):
            raise PermissionError(13, "Permission denied", str(path))
        return (stat if more.get("follow_symlinks", True) else lstat)(path)

    monkeypatch.setattr("os.stat", refusing)
    assert not any(mount.target.is_relative_to(closed) for mount in machine.find("pytest").mounts)


def test_a_program_that_an_environment_has_too_is_shown_as_its_user_starts_it(
    machine: Machine,
) -> None:
    write(machine.repo / ".venv", {"pyvenv.cfg": "", f"bin/{ENVIRONMENT_ONLY}": "#!/bin/sh\n"})
    (machine.repo / ".venv/bin" / ENVIRONMENT_ONLY).chmod(0o755)
    machine.path = [machine.program(f".local/bin/{ENVIRONMENT_ONLY}").parent]
    found = machine.find(ENVIRONMENT_ONLY)
    assert machine.roots(ENVIRONMENT_ONLY) == {f".local/bin/{ENVIRONMENT_ONLY}"}
    assert found.path[:2] == (machine.repo / ".venv/bin", machine.path[0])


def test_links_in_a_circle_end(machine: Machine) -> None:
    machine.link("bin/a", "b")
    machine.link("bin/b", "a")
    machine.path = [machine.home / "bin"]
    assert machine.find("a").missing == ("a",)


def test_a_lone_program_in_a_folder_that_is_a_link_is_on_the_path(machine: Machine) -> None:
    tool = machine.program("tools/v1/agentrunner-tool")
    now = machine.link("tools/now", "v1")
    machine.path = [now]
    found = machine.find("agentrunner-tool")
    assert tool.parent in found.path and (now, "v1") in found.links
