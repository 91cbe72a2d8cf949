"""The filter, run as the kernel runs it, for both processors."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from agentrunner.sandboxes.seccomp import (
    CLONE,
    CLONE3,
    DENIED,
    IOCTL,
    MACHINES,
    NEWEST,
    PERSONALITY,
    SOCKET,
    program,
)

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS, EAFNOSUPPORT = 0x50001, 0x50000 | 38, 0x50000 | 97
STEP = struct.Struct("=HBBI")
GENERIC = Path("/usr/include/asm-generic/unistd.h")


def judge(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """What the kernel would do with a call."""
    architecture = MACHINES[machine][1] if architecture is None else architecture
    words = [*arguments, *([0] * 6)][:6]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *words)
    steps = list(STEP.iter_unpack(program(machine)))
    at = held = 0
    while True:
        operation, if_true, if_false, operand = steps[at]
        at += 1
        match operation:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, operand)
            case 0x15:
                at += if_true if held == operand else if_false
            case 0x25:
                at += if_true if held > operand else if_false
            case 0x45:
                at += if_true if held & operand else if_false
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(f"an operation that slows every call down: {operation:#x}")


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_of_the_table_is_denied_and_its_neighbours_are_not(machine: str) -> None:
    column = MACHINES[machine][0]
    numbers = {each[column] for each in DENIED.values()} - {None}
    special = {CLONE3[column], PERSONALITY[column], SOCKET[column]}
    for number in range(NEWEST + 1):
        if number not in special:
            assert judge(machine, number) == (EPERM if number in numbers else ALLOW), number
    assert judge(machine, NEWEST + 1) == judge(machine, -1) == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_arguments_are_judged(machine: str) -> None:
    column = MACHINES[machine][0]
    clone, personality = CLONE[column], PERSONALITY[column]
    socket, ioctl = SOCKET[column], IOCTL[column]
    assert judge(machine, clone, 0x3D0F00) == ALLOW, "a thread"
    for flag in (0x20000, 0x10000000, 0x20000000, 0x40000000):
        assert judge(machine, clone, flag | 17) == EPERM
    assert judge(machine, CLONE3[column], 0) == ENOSYS
    assert [judge(machine, personality, n) for n in (0, 0xFFFFFFFF, 0x40000)] == [
        ALLOW,
        ALLOW,
        EPERM,
    ]
    assert [judge(machine, socket, n) for n in (1, 2, 10, 16)] == [ALLOW] * 4
    assert [judge(machine, socket, n) for n in (0, 17, 38, 40)] == [EAFNOSUPPORT] * 4
    # The kernel looks at the lower half alone; so must we.
    assert judge(machine, ioctl, 0, 0x1_0000_5412) == judge(machine, ioctl, 0, 0x541C) == EPERM
    assert judge(machine, ioctl, 0x5412, 0x5401) == ALLOW


def test_other_architectures_are_ended_and_x32_does_not_exist() -> None:
    assert judge("x86_64", 20, architecture=0x40000003) == KILL
    assert judge("aarch64", 20, architecture=0x40000028) == KILL
    assert judge("x86_64", 0x40000000 + 165) == ENOSYS
    with pytest.raises(ValueError, match="riscv64"):
        program("riscv64")


def test_the_numbers_of_aarch64_are_the_generic_ones() -> None:
    if not GENERIC.exists():
        pytest.skip("no headers")
    words = (line.split() for line in GENERIC.read_text().splitlines())
    known = {
        word[1].removeprefix("__NR3264_").removeprefix("__NR_"): int(word[2])
        for word in words
        if len(word) == 3 and word[0] == "#define" and word[2].isdigit()
    }
    assert {n: each[1] for n, each in DENIED.items() if n in known} == {
        n: known[n] for n in DENIED if n in known
    }
    assert len(DENIED.keys() & known.keys()) > 40
