"""The system calls that a sandbox is denied, as a program for the kernel's filter.

It denies what Docker's default profile denies a container without capabilities and what still
matters without them: other namespaces, mounts, keyrings, BPF, io_uring, modules, clocks. A debugger
works, as in Docker. Calls of another architecture end the process; calls newer than this table
appear missing (ENOSYS), so that programs fall back to older ones.

It uses little, and only the standard library, because `enter` imports it.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Step = tuple[int, int, int, int]
    """Operation, the steps to skip if it holds, the steps to skip if it does not, operand."""

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the tables, and the kernel's constant for the architecture (AUDIT_ARCH_…)."""

DENIED = {
    # files and mounts
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "statmount": (457, 457), "listmount": (458, 458),
    "open_tree_attr": (467, 467), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "swapon": (167, 224), "swapoff": (168, 225),
    # namespaces and other processes
    "unshare": (272, 97), "setns": (308, 268), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    # parts of the kernel that a sandbox does not need, or through which programs have escaped
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "syslog": (103, 116),
    "acct": (163, 89), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "uselib": (134, None),
    # the machine
    "reboot": (169, 142), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58),
    "iopl": (172, None), "ioperm": (173, None), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "get_mempolicy": (239, 236), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "set_mempolicy_home_node": (450, 450),
}  # fmt: skip
"""Calls that fail with EPERM, by their numbers on x86_64 and aarch64; None where it is absent."""
CLONE, CLONE3 = (56, 220), (435, 435)
PERSONALITY, IOCTL, SOCKET = (135, 92), (16, 29), (41, 198)
NEWEST = 469
"""The newest known call: file_setattr, of Linux 6.17."""

NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
"""The usual one, 32 bits, an old version number; the last only asks for the current one."""
TERMINAL_REQUESTS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type into somebody else's terminal."""
FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, INET, INET6 and NETLINK. Some of the others ignore namespaces (AF_VSOCK)."""

LOAD, EQUAL, GREATER, ANY_BIT, RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97


def program(machine: str) -> bytes:
    """Return the filter for `os.uname().machine`, for bwrap; raises ValueError for others."""
    if machine not in MACHINES:
        raise ValueError(f"no filter of system calls is known for {machine}")
    return b"".join(struct.pack("=HBBI", *step) for step in _steps(*MACHINES[machine]))


def _steps(column: int, architecture: int) -> Iterator[Step]:
    # Only loads, comparisons and returns: with those the kernel computes once which calls are
    # always allowed, and does not run the program for them.
    yield LOAD, 0, 0, ARCHITECTURE_AT
    yield EQUAL, 1, 0, architecture
    yield RETURN, 0, 0, KILL
    yield LOAD, 0, 0, NUMBER_AT
    # The numbers of the x32 ABI are above all others.
    yield from _if(GREATER, NEWEST, ERRNO | ENOSYS)
    yield from _if(EQUAL, CLONE3[column], ERRNO | ENOSYS)
    for numbers in DENIED.values():
        if (number := numbers[column]) is not None:
            yield from _if(EQUAL, number, ERRNO | EPERM)
    yield from _call(CLONE[column], 0, [*_if(ANY_BIT, NEW_NAMESPACES, ERRNO | EPERM)], ALLOW)
    typed = [step for value in TERMINAL_REQUESTS for step in _if(EQUAL, value, ERRNO | EPERM)]
    yield from _call(IOCTL[column], 1, typed, ALLOW)
    usual = [step for value in PERSONALITIES for step in _if(EQUAL, value, ALLOW)]
    yield from _call(PERSONALITY[column], 0, usual, ERRNO | EPERM)
    known = [step for value in FAMILIES for step in _if(EQUAL, value, ALLOW)]
    yield from _call(SOCKET[column], 0, known, ERRNO | EAFNOSUPPORT)
    yield RETURN, 0, 0, ALLOW


def _if(operation: int, operand: int, answer: int) -> Iterator[Step]:
    yield operation, 0, 1, operand
    yield RETURN, 0, 0, answer


def _call(number: int, argument: int, steps: list[Step], otherwise: int) -> Iterator[Step]:
    """Return steps that judge the lower half of one argument, which is all the kernel looks at."""
    yield EQUAL, 0, len(steps) + 2, number
    yield LOAD, 0, 0, ARGUMENTS_AT + 8 * argument
    yield from steps
    yield RETURN, 0, 0, otherwise
