"""Promises about how much a command may use, each tried by its effect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agentrunner.errors import SandboxUnavailable, UsageError
from agentrunner.sandboxes.base import Ending, Request, ResourceLimit, Sandbox, SandboxOrder
from agentrunner.testing.sandboxes.workbench import (
    NotApplicable,
    Workbench,
    expect,
    promises_in,
)

MEMORY = "96m"
HOG = "head -c 400000000 /dev/zero | tail -c 400000000 >/dev/null"
"""tail keeps what it is asked for in memory."""


@asynccontextmanager
async def _limited(workbench: Workbench, limits: ResourceLimit) -> AsyncIterator[Sandbox]:
    """Another sandbox with these limits."""
    spec = SandboxOrder(repo=workbench.repo, home=workbench.home, programs=("sh",), limits=limits)
    try:
        sandbox = workbench.make(spec)
        await sandbox.open()
    except (UsageError, SandboxUnavailable) as error:
        raise NotApplicable(error.message) from error
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def memory_is_limited(workbench: Workbench) -> None:
    """What takes more memory than it may is ended, by the kernel's own count as OOM."""
    async with _limited(workbench, ResourceLimit(memory=MEMORY)) as sandbox:
        result = await sandbox.run(workbench.request(HOG))
        expect(result.exit_code != 0, "it got four times as much")
        if "cgroup" in sandbox.isolation()["memory"]:
            expect(result.ending is Ending.OOM, f"it ended as {result.ending}")
        after = await sandbox.run(workbench.request("exit 3"))
        expect((after.exit_code, after.ending) == (3, Ending.EXITED), f"the next one: {after}")


async def printed_oom_is_no_oom(workbench: Workbench) -> None:
    """What looks like the kernel's end of it, or the sandbox's, is only the command's own word."""
    words = "Killed; OOMKilled; container is not running; Cannot connect to the Docker daemon"
    result = await workbench.sh(f"echo '{words}' >&2; exit 137")
    expect(result.exit_code == 137 and result.ending is Ending.EXITED, f"{result}")


async def scratch_is_limited(workbench: Workbench) -> None:
    """Scratch space is memory, and is limited with it."""
    async with _limited(workbench, ResourceLimit(memory=MEMORY)) as sandbox:
        # Without a cgroup only what was mounted with a size is limited.
        shared = ("/dev/shm",) if "cgroup" in sandbox.isolation()["memory"] else ()
        for place in ("/tmp", "/var/tmp", "$HOME", *shared):
            fill = workbench.request(f"head -c 400000000 /dev/zero > {place}/fill")
            expect((await sandbox.run(fill)).exit_code != 0, f"{place} took 400 MB")
        await sandbox.run(workbench.request("true"))


async def processors_are_limited(workbench: Workbench) -> None:
    """A command that spins gets no more than its share of the processors."""
    async with _limited(workbench, ResourceLimit(cpus=0.25)) as sandbox:
        spin = "timeout 2 sh -c 'while :; do :; done'; times"
        result = await sandbox.run(workbench.request(spin))
        words = result.stdout.decode().split()
        expect(len(words) == 4, f"`times` printed {words}: {result}")
        user = words[2]
        minutes, _, seconds = user.removesuffix("s").partition("m")
        used = 60 * float(minutes) + float(seconds)
        expect(0 < used < 1, f"of 2 s it had a processor for {used:g} s")


async def processes_are_limited(workbench: Workbench) -> None:
    """A fork bomb meets a limit, ends with the command, and leaves the sandbox usable."""
    async with _limited(workbench, ResourceLimit(pids=40)) as sandbox:
        many = "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done"
        result = await sandbox.run(workbench.request(many))
        expect(result.exit_code != 0, "it started 200 processes")
        bomb = f"b() {{ b {workbench.marker} & b; }}; b 2>/dev/null; sleep 1000"
        try:
            await sandbox.run(workbench.request(bomb, timeout_sec=1.0))
        except Exception as error:  # noqa: BLE001 - whatever became of it, it must be over
            expect(not workbench.leftovers(), f"after {error} it goes on")
        after = await sandbox.run(workbench.request("echo on"))
        expect(after.stdout == b"on\n", f"the next one: {after}")


async def nothing_reaches_the_next(workbench: Workbench) -> None:
    """No scratch place, no shared memory and no process of one command is there for the next."""
    places = "/tmp /var/tmp /dev/shm $HOME"
    leave = f"""
        for place in {places}; do
            mkdir -p $place/.a/b && echo x >$place/.a/b/c && chmod 000 $place/.a
            echo x >"$place/new
line"; ln -s / $place/link
        done
        (trap '' TERM HUP; setsid sleep 1000) & echo left
    """
    look = f"for place in {places}; do ls -A $place; done"
    before = (await workbench.sh(look)).stdout
    expect((await workbench.sh(leave)).stdout == b"left\n", "nothing could be left")
    after = (await workbench.sh(look)).stdout
    expect(after == before, f"the next one finds {after!r}")
    count = int((await workbench.sh("ls -d /proc/[0-9]* | wc -l")).stdout)
    expect(count < 10, f"it sees {count} processes")


async def few_system_calls(workbench: Workbench) -> None:
    """System calls are filtered: no namespace and no mount of its own, no tracing of the kernel."""
    result = await workbench.sh("grep Seccomp: /proc/self/status")
    if workbench.sandbox.isolation()["system calls"].startswith(("all", "not held")):
        raise NotApplicable(workbench.sandbox.isolation()["system calls"])
    expect(result.stdout.split()[-1:] == [b"2"], f"the filter is {result.stdout!r}")
    for attack in ("unshare --user true", "unshare --mount true", "mount -t tmpfs x /tmp", "dmesg"):
        request = Request(tuple(attack.split()), workbench.repo)
        expect((await workbench.sandbox.run(request)).exit_code != 0, f"it worked: {attack}")


async def no_devices_made(workbench: Workbench) -> None:
    """No device can be made, and no file that gives rights has an effect."""
    result = await workbench.sh("mknod /tmp/disk b 8 0")
    expect(result.exit_code != 0, "a device was made")
    raised = await workbench.sh("cp $(command -v id) /tmp/id; chmod 6755 /tmp/id; /tmp/id -u")
    expect(raised.stdout == (await workbench.sh("id -u")).stdout, "rights were gained")


CHECKS = promises_in(globals())
