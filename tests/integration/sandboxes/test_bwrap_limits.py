"""What a box may use, by its effect; with cgroups, and without."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.sandboxes import bwrap
from agentrunner.sandboxes.base import Ending, ErrorKind, Request, ResourceLimit, SandboxError
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.cgroups import Limit, hierarchies, hold
from agentrunner.sandboxes.enter import GROUP_PREFIX, sweep
from agentrunner.sandboxes.local import LocalSandbox
from tests.kit.missing import missing
from tests.kit.sandbox_place import Place, start_helper

ALL = [Limit("memory", 64 << 20), Limit("cpu", 0.5), Limit("pids", 64)]
GROW = "bytearray({} << 20)"
SPIN = """
import time
start, used = time.monotonic(), time.process_time()
while time.monotonic() - start < 1: pass
print(time.process_time() - used)
"""


@pytest.fixture
def parents() -> list[Path]:
    """Where cgroups are made here."""
    holding = hold(ALL, hierarchies())
    if holding.refused:
        missing(f"no cgroups can be made here: {holding.refused}")
    return [group.parent for group in holding.groups]


def box(place: Place, **limits: object) -> BwrapSandbox:
    spec = place.spec(programs=("python3",), limits=ResourceLimit(**limits))  # type: ignore[arg-type]
    return BwrapSandbox(spec, environ=os.environ, host_home=place.user, grace_sec=0.5)


def python(place: Place, code: str, **fields: object) -> Request:
    return Request(("python3", "-c", code), place.repo, **fields)  # type: ignore[arg-type]


def groups_of(parents: list[Path], pid: int) -> list[Path]:
    return [path for parent in parents for path in parent.glob(f"{GROUP_PREFIX}{pid}-*")]


async def test_who_takes_too_much_memory_is_ended_for_it(place: Place, parents: list[Path]) -> None:
    small = box(place, memory="100m")
    assert (await small.run(python(place, GROW.format(40)))).ending is Ending.EXITED
    result = await small.run(python(place, GROW.format(300)))
    assert (result.ending, result.exit_code) == (Ending.OOM, 137)
    assert small.isolation()["memory"].startswith("100m, cgroup v")


async def test_memory_is_that_of_all_processes_together(place: Place, parents: list[Path]) -> None:
    hold_it = f"b = {GROW.format(60)}; import time; time.sleep(5)"
    script = f'python3 -c "{hold_it}" & python3 -c "{hold_it}" & wait -n; echo survived'
    result = await box(place, memory="100m").run(Request(("bash", "-c", script), place.repo))
    assert (result.ending, result.stdout) == (Ending.OOM, b"survived\n")


async def test_what_lies_in_temporary_folders_is_memory_too(
    place: Place, parents: list[Path]
) -> None:
    fill = "for f in /tmp /var/tmp /dev/shm $HOME; do head -c 60m /dev/zero > $f/x; done; echo all"
    result = await box(place, memory="100m").run(Request(("sh", "-c", fill), place.repo))
    assert result.ending is Ending.OOM
    result = await box(place).run(Request(("sh", "-c", "echo x > /dev/x"), place.repo))
    assert result.exit_code != 0, "/dev is one more"


async def test_a_share_of_the_processors(place: Place, parents: list[Path]) -> None:
    result = await box(place, cpus=0.25).run(python(place, SPIN))
    assert float(result.stdout) < 0.5


async def test_a_fork_bomb_meets_its_limit(place: Place, parents: list[Path]) -> None:
    for limits, count in (({"pids": 30}, 40), ({}, 600)):
        many = f"i=0; while [ $i -lt {count} ]; do sleep 100 & i=$((i+1)); done; echo all"
        result = await box(place, **limits).run(Request(("sh", "-c", many), place.repo))
        assert b"fork" in result.stderr.lower() and result.stdout == b""


async def test_no_cgroup_is_left_however_it_ends(place: Place, parents: list[Path]) -> None:
    before = {path for parent in parents for path in parent.glob(f"{GROUP_PREFIX}*")}
    small = box(place, memory="64m")
    await small.run(python(place, GROW.format(200)))
    with pytest.raises(SandboxError) as caught:
        await small.run(Request(("sleep", "100"), place.repo, timeout_sec=0.2))
    assert caught.value.kind is ErrorKind.TIMEOUT
    task = asyncio.create_task(small.run(Request(("sleep", "100"), place.repo)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await small.close()
    left = {path for parent in parents for path in parent.glob(f"{GROUP_PREFIX}*")} - before
    living = {path for path in left if Path("/proc", path.name.split("-")[1]).exists()}
    assert left == living, "other boxes may run here"


def test_that_of_a_helper_that_was_killed_is_swept(place: Place, parents: list[Path]) -> None:
    launch = box(place).launch(Request(("sh", "-c", "echo on; sleep 100"), place.repo))
    helper, read = start_helper(launch)
    with os.fdopen(read) as status:
        assert helper.stdout is not None and helper.stdout.readline() == b"on\n"
        assert groups_of(parents, helper.pid)
        helper.kill()
        # Closed when bwrap, which dies with the helper, is gone; so is the box.
        assert json.loads(status.readline())["child-pid"] and helper.stdout.read() == b""
        helper.stdout.close()
        helper.wait()
    while groups_of(parents, helper.pid):
        for parent in parents:
            sweep(str(parent))


def test_a_living_ones_is_not_swept(parents: list[Path]) -> None:
    started = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    groups = [parent / f"{GROUP_PREFIX}{os.getpid()}-{started}" for parent in parents]
    try:
        for group in groups:
            group.mkdir()
            sweep(str(group.parent))
            assert group.exists()
    finally:
        for group in groups:
            group.rmdir()


async def test_the_helper_ends_with_the_code_of_a_command_that_a_signal_ends(place: Place) -> None:
    result = await box(place).run(Request(("sh", "-c", "kill -SEGV $$"), place.repo))
    assert result.exit_code == 128 + signal.SIGSEGV


async def test_without_cgroups_memory_is_limited_per_process(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bwrap, "hierarchies", list)
    small = box(place, memory="200m")
    assert "rlimit" in small.describe() and "rlimit" in small.isolation()["memory"]
    assert small.isolation()["pids"] == "unlimited"
    assert (await small.run(python(place, GROW.format(50)))).exit_code == 0
    result = await small.run(python(place, GROW.format(400)))
    assert result.exit_code != 0 and b"MemoryError" in result.stderr
    script = ("sh", "-c", "head -c 400m /dev/zero > /tmp/x")
    tmpfs = await small.run(Request(script, place.repo))
    assert tmpfs.exit_code != 0 and b"No space" in tmpfs.stderr
    with pytest.raises(UsageError, match="cpus"):
        box(place, cpus=1)


def test_every_back_end_tells_the_same_facts(place: Place) -> None:
    none = LocalSandbox(place.spec(), environ=os.environ, host_home=place.user)
    assert list(none.isolation()) == list(box(place).isolation())
