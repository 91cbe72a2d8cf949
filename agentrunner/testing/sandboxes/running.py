"""Promises about running a command; every sandbox keeps them, `none` too."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from agentrunner.sandboxes.base import CommandResult, Ending, ErrorKind, Request, SandboxError
from agentrunner.sandboxes.process_tree import children, family
from agentrunner.testing.sandboxes.workbench import Workbench, expect, promises_in, wait_for


async def _refused(workbench: Workbench, request: Request) -> None:
    try:
        await workbench.sandbox.run(request)
    except SandboxError as error:
        expect(error.kind is ErrorKind.INVALID_REQUEST, f"refused as {error.kind}")
    else:
        expect(False, "it ran")


async def _long(workbench: Workbench) -> CommandResult:
    """Runs until it is ended; makes the file `on` once it does."""
    return await workbench.sh(f"sh -c 'sleep 1000; :' {workbench.marker} & touch on; wait")


async def exit_code(workbench: Workbench) -> None:
    """A command's exit code is its result, whatever it is."""
    for code in (0, 1, 7, 127, 255):
        result = await workbench.sh(f"exit {code}")
        expect(result.exit_code == code, f"{code} came back as {result.exit_code}")


async def signal_exit_code(workbench: Workbench) -> None:
    """A command that dies of a signal has 128 + its number."""
    result = await workbench.sh("kill -9 $$")
    expect(result.exit_code == 137, f"{result.exit_code}")


async def split_streams(workbench: Workbench) -> None:
    """stdout and stderr stay apart."""
    result = await workbench.sh("echo out; echo err >&2")
    expect((result.stdout, result.stderr) == (b"out\n", b"err\n"), f"{result}")


async def stdin_to_its_end(workbench: Workbench) -> None:
    """stdin is what was given and then ends; without one it ends at once."""
    data = os.urandom(300_000)
    result = await workbench.sh("cat", stdin=data, keep_bytes=len(data))
    expect(result.stdout == data, f"{len(result.stdout)} of {len(data)} bytes came back")
    expect((await workbench.sh("cat")).stdout == b"", "something was there to read")


async def unicode_arguments(workbench: Workbench) -> None:
    """Words reach the command as they are, whatever is in them."""
    words = ("日本語", "a b", "$HOME", "'\"", "", "--", "-x", "line\nbreak")
    request = Request(command=("printf", "%s|", *words), workdir=workbench.repo)
    result = await workbench.sandbox.run(request)
    expect(result.stdout.decode() == "".join(f"{word}|" for word in words), f"{result.stdout!r}")


async def working_folder(workbench: Workbench) -> None:
    """A command starts where it was told to."""
    result = await workbench.sh("pwd -P", workdir=workbench.repo / "folder")
    expect(result.stdout.decode().strip() == str(workbench.repo / "folder"), f"{result.stdout!r}")


async def working_folder_outside(workbench: Workbench) -> None:
    """A working folder outside the repository is refused, by `..` and by a link too."""
    (workbench.repo / "link").symlink_to(workbench.root)
    for folder in (
        Path("/"),
        workbench.repo / "..",
        workbench.repo / "link",
        workbench.repo / "absent",
    ):
        await _refused(workbench, workbench.request("true", workdir=folder))


async def nonsense_refused(workbench: Workbench) -> None:
    """An empty command, a NUL and a network that the task does not permit are refused."""
    await _refused(workbench, Request(command=(), workdir=workbench.repo))
    await _refused(workbench, Request(command=("echo", "a\0b"), workdir=workbench.repo))
    await _refused(workbench, workbench.request("true", network="full"))


async def loader_variables_refused(workbench: Workbench) -> None:
    """Variables that would make the sandbox's helper on the host load code are refused."""
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES"):
        await _refused(workbench, workbench.request("true", env={name: "x"}))


async def missing_command(workbench: Workbench) -> None:
    """A program that is not there is exit code 127, and one that cannot be executed 126."""
    for word, code in (
        ("agentrunner-no-such-program", 127),
        (str(workbench.repo / "file.txt"), 126),
    ):
        result = await workbench.sandbox.run(Request(command=(word,), workdir=workbench.repo))
        expect(result.exit_code == code, f"{word}: {result.exit_code}")
        expect(word in result.stderr.decode(), f"{word} is not named: {result.stderr!r}")


async def environment_from_nothing(workbench: Workbench) -> None:
    """Nothing of our own environment reaches a command; what a request adds does."""
    result = await workbench.sh("env", env={"ADDED": "värde"})
    expect(workbench.bait not in result.stdout.decode(), "our own environment is inherited")
    expect("ADDED=värde" in result.stdout.decode(), "the request's variable is missing")


async def no_value_in_argv(workbench: Workbench) -> None:
    """The value of a variable is in no command line, where every user could read it."""
    secret = f"secret-{workbench.marker[::-1]}"
    result = await workbench.sh("cat /proc/[0-9]*/cmdline", env={"TOKEN": secret})
    expect(secret.encode() not in result.stdout, "it is in a command line inside")
    launch = workbench.sandbox.launch(workbench.request("true", env={"TOKEN": secret}))
    expect(not any(secret in word for word in launch.argv), "it is in the helper's command line")


async def output_is_bounded(workbench: Workbench) -> None:
    """Of much output the first 64 KiB and the end are kept, and all of it is counted."""
    size = 64 << 20
    script = f"echo start; head -c {size} /dev/zero; echo end"
    result = await workbench.sh(script, keep_bytes=1000)
    expect(len(result.stdout) < 70_000, f"{len(result.stdout)} bytes were kept")
    expect(result.stdout.startswith(b"start\n"), "the beginning is lost")
    expect(result.stdout.endswith(b"end\n"), "the end is lost")
    expect(result.stdout_bytes == size + 10, f"{result.stdout_bytes} bytes were counted")


async def output_limit(workbench: Workbench) -> None:
    """A command that prints without end is ended."""
    result = await workbench.sh(f"yes {workbench.marker}", stop_bytes=1 << 20)
    expect(result.ending is Ending.OUTPUT_LIMIT, f"it ended as {result.ending}")
    expect(result.exit_code != 0, "and counts as a success")


async def live_output(workbench: Workbench) -> None:
    """Output can be seen as it comes."""
    seen: list[tuple[str, bytes]] = []
    request = workbench.request("echo out; echo err >&2")
    await workbench.sandbox.run(request, lambda stream, data: seen.append((stream, data)))
    expect(sorted(seen) == [("stderr", b"err\n"), ("stdout", b"out\n")], f"{seen}")


async def timeout_ends_the_tree(workbench: Workbench) -> None:
    """At the deadline everything ends, what ignores SIGTERM and left the session too."""
    sleeper = f"setsid sh -c 'trap \"\" TERM; sleep 1000; :' {workbench.marker}"
    start = time.monotonic()
    try:
        await workbench.sh(f"trap '' TERM; {sleeper} & echo on; sleep 1000", timeout_sec=0.5)
    except SandboxError as error:
        expect(error.kind is ErrorKind.TIMEOUT, f"it is {error.kind}")
        expect(error.result and error.result.stdout == b"on\n", "its output is lost")
    else:
        expect(False, "it came to an end")
    expect(time.monotonic() - start < 10, "it took more than 10 s")


async def timeout_lets_it_finish(workbench: Workbench) -> None:
    """At the deadline the command itself gets SIGTERM, and the time to save its work."""
    try:
        await workbench.sh(
            "trap 'echo saved > saved.txt; exit 0' TERM; sleep 1000", timeout_sec=0.5
        )
    except SandboxError as error:
        expect(error.kind is ErrorKind.TIMEOUT, f"it is {error.kind}")
    expect((workbench.repo / "saved.txt").exists(), "it was killed at once")


async def end_is_the_end(workbench: Workbench) -> None:
    """A child in the background neither delays the result nor outlives it."""
    start = time.monotonic()
    result = await workbench.sh(f"sh -c 'sleep 1000; :' {workbench.marker} & echo done")
    expect(result.stdout == b"done\n", f"{result.stdout!r}")
    expect(time.monotonic() - start < 5, "the result was held up")


async def cancelling_ends_it(workbench: Workbench) -> None:
    """Whoever cancels the call ends the command."""
    task = asyncio.create_task(_long(workbench))
    await wait_for(workbench.repo / "on")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    expect(task.cancelled(), "the call was not cancelled")


async def kill_all_ends_it(workbench: Workbench) -> None:
    """kill_all ends what runs, and the sandbox is usable afterwards."""
    task = asyncio.create_task(_long(workbench))
    await wait_for(workbench.repo / "on")
    await workbench.sandbox.kill_all()
    async with asyncio.timeout(5):
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
    expect(isinstance(outcome, SandboxError), f"it came to {outcome}")
    expect((await workbench.sh("true")).exit_code == 0, "the sandbox is gone")


async def pause_and_go_on(workbench: Workbench) -> None:
    """A paused command does nothing, and goes on when told to."""
    task = asyncio.create_task(workbench.sh("touch on; while [ ! -e go ]; do sleep 0.02; done"))
    await wait_for(workbench.repo / "on")
    await workbench.sandbox.pause()
    (workbench.repo / "go").touch()
    done, _ = await asyncio.wait({task}, timeout=0.3)
    await workbench.sandbox.unpause()
    result = await task
    expect(not done, "it ran on while paused")
    expect(result.exit_code == 0, f"it ended with {result.exit_code}")


async def many_at_once(workbench: Workbench) -> None:
    """Requests can run side by side."""
    results = await asyncio.gather(*(workbench.sh(f"echo {n}") for n in range(4)))
    expect([int(r.stdout) for r in results] == [0, 1, 2, 3], f"{[r.stdout for r in results]}")


async def nothing_accumulates(workbench: Workbench) -> None:
    """No zombies, no descriptors and no children of ours are left."""
    await workbench.sh("true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        await workbench.sh("i=0; while [ $i -lt 50 ]; do (exit 0) & i=$((i+1)); done; wait")
    after = len(list(Path("/proc/self/fd").iterdir()))
    expect(after <= before, f"{after - before} descriptors more")
    alive = family(os.getpid())
    zombies = [pid for pid in children(os.getpid()) if pid not in alive]
    expect(not zombies, f"zombies: {zombies}")


async def repository_is_writable(workbench: Workbench) -> None:
    """The repository is at its own path, writable, and what is made there is ours."""
    result = await workbench.sh(
        f"echo new > '{workbench.repo}/new.txt'; cat '{workbench.repo}/file.txt'"
    )
    expect(result.stdout == b"hello\n", f"{result.stderr!r}")
    made = workbench.repo / "new.txt"
    expect(made.read_text() == "new\n", "what was written is not there")
    expect(made.stat().st_uid == os.geteuid(), f"it belongs to uid {made.stat().st_uid}")


async def run_folder_is_writable(workbench: Workbench) -> None:
    """The run's own folder is at its own path, and writable."""
    await workbench.sh(f"echo kept > '{workbench.home}/session'")
    expect((workbench.home / "session").read_text() == "kept\n", "it was not kept")


async def home_is_empty(workbench: Workbench) -> None:
    """HOME is there, empty and writable."""
    result = await workbench.sh('cd "$HOME" && ls -A && echo x > probe && cat probe')
    expect(result.stdout == b"x\n", f"{result.stdout!r} {result.stderr!r}")


async def git_works(workbench: Workbench) -> None:
    """status, diff and log work on the repository."""
    script = "echo more >> file.txt; git status --short; git log --oneline; git diff --stat"
    result = await workbench.sh(script)
    expect(result.exit_code == 0, f"{result.stderr!r}")
    expect(b" M file.txt" in result.stdout and b"first" in result.stdout, f"{result.stdout!r}")


async def launched_from_outside(workbench: Workbench) -> None:
    """What `launch` says can be started by another process, which is told of its end."""
    launch = workbench.sandbox.launch(workbench.request("echo launched; exit 3"))
    read, write = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(str(write) if word == "{status_fd}" else word for word in launch.argv),
            env=dict(launch.env),
            cwd=launch.cwd,
            pass_fds=(write,),
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    finally:
        os.close(write)
    output, _ = await process.communicate()
    with os.fdopen(read) as status:
        text = status.read()
    expect((output, process.returncode) == (b"launched\n", 3), f"{output!r}, {process.returncode}")
    reports = "{status_fd}" in launch.argv
    expect(not reports or '"exit-code": 3' in text, f"the helper told {text!r}")


async def close_twice(workbench: Workbench) -> None:
    """Closing is safe to repeat."""
    await workbench.sandbox.close()
    await workbench.sandbox.close()


CHECKS = promises_in(globals())
