"""What stands between a launch and the command: it must not show."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from agentrunner.sandboxes.base import Request
from agentrunner.sandboxes.bwrap import BwrapSandbox
from tests.kit.sandbox_place import Place


def box(place: Place, **environ: str) -> BwrapSandbox:
    environ = {"PATH": os.environ["PATH"], **environ}
    return BwrapSandbox(place.spec(programs=("python3",)), environ=environ, host_home=place.user)


async def test_the_environment_is_the_one_of_the_launch(place: Place) -> None:
    """Python would set LC_CTYPE for a C locale, and needs libraries that the box must not get."""
    libraries = os.environ.get("LD_LIBRARY_PATH", "/nonexistent")
    sandbox = box(place, LD_LIBRARY_PATH=libraries)
    env = {"LANG": "C", "LC_ALL": "C", "PYTHONHOME": "/x", "ODD": "värde\udcff"}
    request = Request(("env", "-0"), place.repo, env=env)
    launch = sandbox.launch(request)
    assert launch.env["LD_LIBRARY_PATH"] == libraries
    result = await sandbox.run(request)
    told = dict(line.split(b"=", 1) for line in result.stdout.split(b"\0") if line)
    expected = {os.fsencode(n): os.fsencode(v) for n, v in launch.env.items()}
    del expected[b"LD_LIBRARY_PATH"]
    assert {name: value for name, value in told.items() if name != b"PWD"} == expected


async def test_signals_and_descriptors_are_as_a_program_expects_them(place: Place) -> None:
    script = "yes | head -1 > /dev/null; echo ${PIPESTATUS[0]}; ls /proc/self/fd; ulimit -c"
    result = await box(place).run(Request(("bash", "-c", script), place.repo))
    assert result.stdout.split()[:5] == [b"141", b"0", b"1", b"2", b"3"], "3 is ls's own"
    ignored = "grep SigIgn /proc/self/status"
    result = await box(place).run(Request(("sh", "-c", ignored), place.repo))
    named = (1 << 31) - 1  # the others belong to the C library
    assert int(result.stdout.split()[1], 16) & named == 0


async def test_a_terminal_can_be_made(place: Place) -> None:
    code = "import os, pty; pid, fd = pty.fork(); pid or os._exit(7); print(os.waitpid(pid, 0)[1])"
    result = await box(place).run(Request(("python3", "-c", code), place.repo))
    assert int(result.stdout) == 7 << 8, result.stderr


def test_who_is_dead_already_starts_nothing(place: Place) -> None:
    """The helper dies with its parent, also with one that has died before it could ask for that."""
    launch = box(place).launch(Request(("touch", "started"), place.repo))
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [str(write) if word == "{status_fd}" else word for word in launch.argv],
        env=dict(launch.env),
        cwd=launch.cwd,
        pass_fds=(write,),
        check=False,
    )
    os.close(write)
    assert ended.returncode == 125 and not Path(place.repo, "started").exists()
