"""Promises about what a command cannot reach; kept by every sandbox but `none`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

from agentrunner.sandboxes.base import Sandbox, SandboxOrder
from agentrunner.sandboxes.deny import CREDENTIALS
from agentrunner.testing.sandboxes.workbench import Workbench, expect, promises_in, wait_for


async def environment_of_others(workbench: Workbench) -> None:
    """No process that can be seen has our environment, the sandbox's helper included."""
    result = await workbench.sh("cat /proc/[0-9]*/environ")
    expect(b"PATH=" in result.stdout, "nothing could be read")
    expect(workbench.bait.encode() not in result.stdout, "our environment can be read")


async def processes_of_others(workbench: Workbench) -> None:
    """The host's processes cannot be seen."""
    result = await workbench.sh("ls -d /proc/[0-9]* | wc -l")
    expect(int(result.stdout) < 10, f"{int(result.stdout)} processes can be seen")


async def outside_is_read_only(workbench: Workbench) -> None:
    """Nothing but the repository, the run's folder, HOME and /tmp can be written to."""
    (workbench.repo / "link").symlink_to(workbench.root / "outside.txt")
    places = ("/", "/usr", "/etc", "/home", "/root", "/run", "/var", str(workbench.root))
    for place in places:
        result = await workbench.sh(f"echo x > '{place}/agentrunner-probe'")
        expect(result.exit_code != 0 or place == str(workbench.root), f"{place} can be written to")
        with contextlib.suppress(PermissionError):
            expect(not Path(place, "agentrunner-probe").exists(), f"{place} was written to")
    await workbench.sh("echo x > link; echo x > ../outside.txt")
    expect(
        (workbench.root / "outside.txt").read_text() == "untouched\n", "a file outside was changed"
    )


async def git_is_read_only(workbench: Workbench) -> None:
    """`.git` can be neither written to nor replaced: the host's git would run what is in it."""
    config = (workbench.repo / ".git/config").read_text()
    attacks = (
        "echo '[core] fsmonitor = true' >> .git/config",
        "echo x > .git/hooks/pre-commit",
        "mkdir -p evil; echo ../evil > .git/commondir",
        "echo x > .git/config.worktree",
        "mv .git .git2",
        "rm -rf .git",
        "cd .. && mv repo repo2",
        "umount .git",
        "mount -o remount,rw .git",
        "git commit --allow-empty -m x",
    )
    for attack in attacks:
        result = await workbench.sh(attack)
        expect(result.exit_code != 0, f"it worked: {attack}")
    expect((workbench.repo / ".git/config").read_text() == config, ".git/config was changed")
    added = {p.name for p in workbench.repo.iterdir()} - {".git", "file.txt", "folder", "evil"}
    expect(not added, f"it made {added}")
    expect(not (workbench.repo / ".git/commondir").exists(), ".git/commondir was made")


async def absent_git_stays_absent(workbench: Workbench) -> None:
    """Where there is no `.git` none can be made, and none is left."""
    plain = workbench.root / "plain"
    plain.mkdir()
    sandbox = workbench.make(SandboxOrder(repo=plain, home=workbench.home))
    await sandbox.open()
    try:
        request = replace(
            workbench.request("mkdir -p .git/hooks; mv .git x; rmdir .git"), workdir=plain
        )
        result = await sandbox.run(request)
        expect(result.exit_code != 0, "a .git could be made")
        await _git_stays_masked(workbench, sandbox, plain)
    finally:
        await sandbox.close()
    expect(not list(plain.iterdir()), f"left behind: {list(plain.iterdir())}")


async def _git_stays_masked(workbench: Workbench, sandbox: Sandbox, plain: Path) -> None:
    """The end of one sandbox must not take the mask from another that still runs."""
    script = "touch on; while [ ! -e go ]; do sleep 0.02; done; mkdir -p .git/hooks"
    task = asyncio.create_task(sandbox.run(replace(workbench.request(script), workdir=plain)))
    await wait_for(plain / "on")
    other = workbench.make(SandboxOrder(repo=plain, home=workbench.home))
    await other.open()
    await other.close()
    (plain / "go").touch()
    expect((await task).exit_code != 0, "the mask was lost with the end of another sandbox")
    (plain / "on").unlink()
    (plain / "go").unlink()


async def no_network(workbench: Workbench) -> None:
    """There is no interface but the sandbox's own loopback, and the host's is out of reach."""
    result = await workbench.sh("cat /proc/net/dev; echo; cat /proc/net/route")
    devices = [
        line.split(":")[0].strip() for line in result.stdout.decode().splitlines() if ":" in line
    ]
    expect(devices == ["lo"], f"interfaces: {devices}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        probe = await workbench.sh(f"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'")
        expect(probe.exit_code != 0, "a server of the host was reached")


async def no_abstract_socket(workbench: Workbench) -> None:
    """The host's sockets without a path, such as a desktop's bus, are out of reach."""
    name = f"agentrunner-{workbench.marker}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        result = await workbench.sh("cat /proc/net/unix")
        expect(name not in result.stdout.decode(), "they can be seen")


async def state_is_out_of_sight(workbench: Workbench) -> None:
    """Of the state folder only the run's own sandbox folder is there."""
    result = await workbench.sh(
        f"ls -A '{workbench.state}/runs/check'; cat '{workbench.state}'/runs/*/*.txt"
    )
    expect(result.stdout == b"box\n", f"it sees {result.stdout!r}")


async def credentials_are_out_of_sight(workbench: Workbench) -> None:
    """No key, token or history of the user is there."""
    places = [str(Path.home() / name) for name in CREDENTIALS]
    script = 'for p; do [ -e "$p" ] && echo "$p"; done; true'
    request = workbench.request(script)
    result = await workbench.sandbox.run(
        replace(request, command=(*request.command, "sh", *places))
    )
    expect(result.exit_code == 0 and result.stdout == b"", f"it sees {result.stdout.decode()}")


async def no_privileges(workbench: Workbench) -> None:
    """There are no capabilities, and none can be gained."""
    result = await workbench.sh("cat /proc/self/status")
    facts = dict(
        line.split(":\t", 1) for line in result.stdout.decode().splitlines() if ":\t" in line
    )
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        expect(int(facts[name], 16) == 0, f"{name} is {facts[name]}")
    expect(facts["NoNewPrivs"] == "1", "NoNewPrivs is not set")


async def tmp_is_private(workbench: Workbench) -> None:
    """/tmp is the command's own: what it leaves there is gone with it."""
    probe = Path("/tmp", f"agentrunner-{workbench.marker}")
    probe.touch()
    try:
        result = await workbench.sh(f"[ ! -e {probe} ] && echo x > {probe}-inside")
        expect(result.exit_code == 0, "the host's /tmp can be seen, or its own not written to")
        expect(not Path(f"{probe}-inside").exists(), "it wrote to the host's /tmp")
        again = await workbench.sh(f"[ ! -e {probe}-inside ]")
        expect(again.exit_code == 0, "the next command sees what the last one left")
    finally:
        probe.unlink()


async def no_foreign_sockets(workbench: Workbench) -> None:
    """No socket of the host is there: no engine, no agent, no bus."""
    result = await workbench.sh("find /run /var /tmp /home /root -type s 2>/dev/null | head")
    expect(result.stdout == b"", f"it sees {result.stdout.decode()}")


async def devices_are_few(workbench: Workbench) -> None:
    """No disk, no memory and no kernel log of the host is there."""
    result = await workbench.sh("ls /dev")
    seen = set(result.stdout.decode().split())
    harmless = {
        "console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm",
        "stderr", "stdin", "stdout", "tty", "urandom", "zero",
    }  # fmt: skip
    expect(seen <= harmless, f"it sees {seen - harmless}")


async def copy_takes_the_place(workbench: Workbench) -> None:
    """A copy of the repository stands at the repository's path, and the original is safe."""
    copy = workbench.root / "copy"
    shutil.copytree(workbench.repo, copy, ignore=shutil.ignore_patterns(".git"))
    (copy / "file.txt").write_text("copied\n")
    script = f"cat '{workbench.repo}/file.txt'; pwd -P; echo x > new.txt; git log --oneline"
    result = await workbench.sh(script, repo_copy=copy, workdir=workbench.repo / "folder")
    lines = result.stdout.decode().splitlines()
    expect(lines[:2] == ["copied", str(workbench.repo / "folder")], f"{lines} {result.stderr!r}")
    expect(lines[2].endswith("first"), "git does not work in it")
    expect((copy / "folder/new.txt").exists(), "what was written is not in the copy")
    expect(not (workbench.repo / "folder/new.txt").exists(), "the original was written to")


async def read_path_is_read_only(workbench: Workbench) -> None:
    """A read path is at its own path, and read-only."""
    data = workbench.root / "data"
    data.mkdir()
    (data / "rows.csv").write_text("1\n")
    sandbox = workbench.make(
        SandboxOrder(repo=workbench.repo, home=workbench.home, read_paths=(data,))
    )
    await sandbox.open()
    try:
        result = await sandbox.run(
            workbench.request(f"cat {data}/rows.csv; echo 2 > {data}/rows.csv")
        )
    finally:
        await sandbox.close()
    expect(result.stdout == b"1\n", "it cannot be read")
    expect((data / "rows.csv").read_text() == "1\n", "it was written to")


async def same_user(workbench: Workbench) -> None:
    """A command runs under our own uid and gid, so that the repository stays the user's."""
    result = await workbench.sh("id -u; id -g")
    expect(result.stdout.decode().split() == [str(os.geteuid()), str(os.getegid())], "it does not")


CHECKS = promises_in(globals())
