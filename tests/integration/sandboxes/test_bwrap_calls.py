"""The filter of system calls, by its effect in the box."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from agentrunner.sandboxes.base import Launch, Request
from agentrunner.sandboxes.bwrap import BwrapSandbox
from agentrunner.sandboxes.seccomp import CLONE3, DENIED, IOCTL, MACHINES, PERSONALITY, SOCKET
from tests.kit.missing import missing
from tests.kit.sandbox_place import Place

MACHINE = os.uname().machine
pytestmark = pytest.mark.skipif(MACHINE not in MACHINES, reason=f"no filter for {MACHINE}")
NUMBERS = {
    name: numbers[MACHINES.get(MACHINE, (0, 0))[0]]
    for name, numbers in {
        **DENIED,
        "clone3": CLONE3,
        "personality": PERSONALITY,
        "ioctl": IOCTL,
        "socket": SOCKET,
    }.items()
}
TRIES = {
    "unshare": (0x10000000,),
    "keyctl": (0, -3, 1),
    "add_key": (0, 0, 0, 0, 0),
    "io_uring_setup": (1, 0),
    "kcmp": (0, 0, 0, 0, 0),
    "process_madvise": (-1, 0, 0, 0, 0),
    "get_mempolicy": (0, 0, 0, 0, 0),
    "clone3": (0, 0),
    "personality": (0x40000,),
    "ioctl": (0, 0x5412, 0),
    "socket": (38, 1, 0),
}
"""Calls that would fail otherwise, or not at all, without the filter."""
CALL = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
told = {}
for name, (number, words) in json.loads(sys.argv[1]).items():
    ctypes.set_errno(0)
    value = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, words))
    told[name] = ctypes.get_errno() if value == -1 else 0
print(json.dumps(told))
"""
OLD_CALL = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b814000000cd80c3"))  # getpid of i386
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())
"""


class Unfiltered(BwrapSandbox):
    """What the tests would see without the filter."""

    def launch(self, request: Request) -> Launch:
        launch = super().launch(request)
        words = tuple(word for word in launch.argv if word != "--filter")
        return Launch(words, launch.env, launch.cwd)


async def errors(place: Place, kind: type[BwrapSandbox]) -> dict[str, int]:
    calls = {name: (NUMBERS[name], words) for name, words in TRIES.items()}
    box = kind(place.spec(programs=("python3",)), environ=os.environ, host_home=place.user)
    result = await box.run(Request(("python3", "-c", CALL, json.dumps(calls)), place.repo))
    assert result.exit_code == 0, result.stderr
    told: dict[str, int] = json.loads(result.stdout)
    return told


async def test_each_call_is_denied_by_the_filter_and_by_nothing_else(place: Place) -> None:
    expected = dict.fromkeys(TRIES, errno.EPERM)
    expected |= {"clone3": errno.ENOSYS, "socket": errno.EAFNOSUPPORT}
    assert await errors(place, BwrapSandbox) == expected
    free = await errors(place, Unfiltered)
    same = [name for name in TRIES if free[name] == expected[name]]
    # AF_ALG may not be built into this kernel.
    assert set(same) <= {"socket"}, f"denied without the filter too: {same}"


async def test_the_kernel_says_that_there_is_a_filter(place: Place) -> None:
    result = await place.box().run(Request(("grep", "Seccomp", "/proc/self/status"), place.repo))
    assert result.stdout.split()[1] == b"2"


@pytest.mark.skipif(MACHINE != "x86_64", reason="x86-64 has calls of another architecture")
async def test_a_call_of_another_architecture_ends_the_process(place: Place) -> None:
    box = place.box(programs=("python3",))
    result = await box.run(Request(("python3", "-c", OLD_CALL), place.repo))
    assert (result.exit_code, result.stdout) == (128 + 31, b"")
    result = await box.run(Request(("python3", "-c", CALL, '{"x": [1073741863, []]}'), place.repo))
    assert json.loads(result.stdout) == {"x": errno.ENOSYS}


@pytest.mark.parametrize(
    "script",
    [
        "python3 -c 'import threading, subprocess, socket, multiprocessing as m;"
        ' threading.Thread(target=print).start(); subprocess.run(["true"], check=True);'
        " socket.socketpair(); socket.socket().close(); m.Lock()'",
        'node -e \'const w = require("worker_threads"); new w.Worker("1", {eval: true})\'',
        "git status --short && git log --oneline",
        "echo 'int main() { return 7; }' > /tmp/a.c && gcc -o /tmp/a /tmp/a.c && { /tmp/a;"
        " [ $? = 7 ]; }",
        "strace -o /tmp/trace true && grep -q execve /tmp/trace",
        "setsid sh -c 'sleep 0' && timeout 5 true && nice -n 5 true && env | sort | head -1",
    ],
)
async def test_what_developers_use_works(place: Place, script: str) -> None:
    program = script.split()[0]
    if program not in ("echo", "setsid") and shutil.which(program) is None:
        missing(f"{program} is not installed")
    box = place.box(programs=("python3", "node", "git", "gcc"))
    result = await box.run(Request(("bash", "-c", script), place.repo, timeout_sec=60))
    assert result.exit_code == 0, result.stderr


def test_the_numbers_are_those_of_this_machine() -> None:
    """By the C library's headers, where they are installed."""
    header = next(Path("/usr/include").glob("*/asm/unistd_64.h"), None)
    if header is None or MACHINE != "x86_64":
        pytest.skip("no headers")
    words = (line.split() for line in header.read_text().splitlines() if "__NR_" in line)
    known = {word[1].removeprefix("__NR_"): int(word[2]) for word in words if len(word) == 3}
    wrong = {name for name, number in NUMBERS.items() if known.get(name, number) != number}
    assert not wrong and len(NUMBERS.keys() & known.keys()) > 50
