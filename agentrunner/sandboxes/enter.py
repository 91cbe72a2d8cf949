"""Starts bubblewrap with what no command line can hold, and supervises it where needed.

    python -I -S -X utf8 -c … PACKAGE_HOME [OPTION…] -- BWRAP WORD…

    --status FD                      the pipe on which bwrap reports; {"oom": true} is added to it
    --filter                         a seccomp filter (see `seccomp`), passed to bwrap as a file
    --group PARENT FILE=VALUE…       a cgroup of its own below PARENT, with these settings
    --door FOLDER PORT=NAME…         listeners inside it, handed over to FOLDER/control.sock
    --host-network                   the sandbox has the host's network, and so its loopback
    --layers FOLDER SOURCE…          copies of these, as FOLDER/0, FOLDER/1, …, while it lives

Without group, door or layer this process becomes bwrap and costs nothing more. Otherwise it is
bwrap's parent: it dies with its own parent, bwrap dies with it, and it ends with bwrap's exit code
when the last process of the sandbox is gone.

It uses little, and only the standard library, because it runs before every command: `signal` alone
would take 5 ms to import, `ctypes` and `select` take 3.
"""
# pathlib takes 8 ms to import
# ruff: noqa: PTH102, PTH106, PTH208

from __future__ import annotations

import ctypes
import os
import select
import sys

GROUP_PREFIX = "agentrunner-"
OPTIONS = ("--status", "--filter", "--group", "--door", "--host-network", "--layers")
OOM_FILES = ("memory.oom_control", "memory.events")
"""Files of cgroup v1 and v2; both have a line `oom_kill N`."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGPIPE, SIGXFSZ = 1, 2, 3, 9, 13, 25
FAILED = 125

libc = ctypes.CDLL(None, use_errno=True)


class EnterOptions:
    """The options before bwrap's own words."""

    def __init__(self, words: list[str]) -> None:
        """Parse the words. Raises ValueError for an unknown option."""
        self.bwrap = words[words.index("--") + 1 :]
        self.status = -1
        self.filter = False
        self.groups: list[tuple[str, list[str]]] = []
        self.door = ""
        self.ports: dict[int, str] = {}
        self.host_network = False
        self.layers: list[str] = []
        """The folder for copies, then what is copied."""
        option = ""
        for word in words[: words.index("--")]:
            if word.startswith("--"):
                option = word
                self.filter |= word == "--filter"
                self.host_network |= word == "--host-network"
                if word not in OPTIONS:
                    raise ValueError(f"unknown option {word}")
            else:
                self._value(option, word)

    def _value(self, option: str, word: str) -> None:
        if option == "--status":
            self.status = int(word)
        elif option == "--group" and "=" not in word:
            self.groups.append((word, []))
        elif option == "--group":
            self.groups[-1][1].append(word)
        elif option == "--layers":
            self.layers.append(word)
        elif option == "--door" and not self.door:
            self.door = word
        else:
            port, _, name = word.partition("=")
            self.ports[int(port)] = name


class Enclosure:
    """Bwrap as our child process, with its cgroups and its door."""

    def __init__(self, order: EnterOptions, words: list[str]) -> None:
        self.order = order
        self.words = words
        """Options that bwrap gets in addition to its own."""
        self.groups: list[str] = []

    def run(self) -> int:
        """Start bwrap, wait for its end, and return its exit code. Raises OSError."""
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        keeper = -1
        try:
            if self.order.layers:
                from agentrunner.sandboxes.layers import make_layers

                keeper = make_layers(self.order.layers[0], self.order.layers[1:])
            for parent, settings in self.order.groups:
                sweep(parent)
                self.groups.append(make_group(parent, settings))
            if not self.order.ports:
                pid = self._start(self.words)
                _silence()
            else:
                pid = self._start_with_door()
            return _wait(pid)
        finally:
            self._remove_groups()
            if keeper >= 0:
                from agentrunner.sandboxes.layers import remove_layers

                remove_layers(self.order.layers[0])

    def _start(self, words: list[str]) -> int:
        """Fork; the child joins the cgroups and becomes bwrap. Return its process id."""
        us = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        try:
            libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
            if os.getppid() == us:
                for group in self.groups:
                    write(f"{group}/cgroup.procs", "0")
                become(self.order.bwrap, words)
        except OSError as error:
            complain(error)
        finally:
            os._exit(FAILED)

    def _start_with_door(self) -> int:
        """Start bwrap, and release the command when its door is open. Return bwrap's process id."""
        info, info_end = os.pipe()
        block_end, block = os.pipe()
        for fd in (info_end, block_end):
            os.set_inheritable(fd, True)
        words = [*self.words, "--info-fd", str(info_end), "--block-fd", str(block_end)]
        bwrap = self._start(words)
        os.close(info_end)
        os.close(block_end)
        # This import takes 8 ms, for sockets; bwrap makes the sandbox meanwhile.
        from agentrunner.sandboxes.door import DoorKeeper

        first = read_child(info)
        os.close(info)
        if not first:
            return bwrap
        try:
            inside = 0 if self.order.host_network else first
            keeper = DoorKeeper(self.order.door, self.order.ports, inside)
        except OSError:
            # Without its door the command must not start.
            os.kill(bwrap, SIGKILL)
            _wait(bwrap)
            raise
        keeper.hand_over()
        os.write(block, b"\n")
        os.close(block)
        _silence()
        keeper.keep(os.pidfd_open(bwrap))
        return bwrap

    def _remove_groups(self) -> None:
        killed = any(oom_kills(group) for group in self.groups)
        if killed and self.order.status >= 0:
            os.write(self.order.status, b'{"oom": true}\n')
        for group in self.groups:
            remove_group(group)


def main() -> None:
    """Parse our command line and run it."""
    code = FAILED
    try:
        order = EnterOptions(sys.argv[2:])
        _die_with_parent(order.status)
        words = ["--seccomp", str(_filter())] if order.filter else []
        if not order.groups and not order.ports and not order.layers:
            become(order.bwrap, words)
        code = Enclosure(order, words).run()
    except (OSError, ValueError) as error:
        complain(error)
    os._exit(code)


def become(bwrap: list[str], words: list[str]) -> None:
    """Execute bwrap with the signals and environment that a program expects at its start."""
    # An ignored signal stays ignored in the command. Our Python ignores some, the shell or nohup
    # that started AgentRunner may ignore others.
    for number in (SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ):
        libc.signal(number, None)
    # This variable is only for our own start (see `bwrap`): no request may set it.
    env = {name: value for name, value in os.environb.items() if name != b"LD_LIBRARY_PATH"}
    os.execve(bwrap[0], [bwrap[0], *words, *bwrap[1:]], env)


def make_group(parent: str, settings: list[str]) -> str:
    """Make a cgroup named after this process, so that `sweep` can find it; raises OSError."""
    group = f"{parent}/{GROUP_PREFIX}{os.getpid()}-{start_time(os.getpid())}"
    os.mkdir(group)
    try:
        for setting in settings:
            file, _, value = setting.partition("=")
            write(f"{group}/{file}", value)
    except OSError:
        remove_group(group)
        raise
    return group


def remove_group(group: str) -> None:
    """Remove a cgroup without processes; one that is not empty is left to `sweep`."""
    try:  # noqa: SIM105 - contextlib takes 3 ms to import
        os.rmdir(group)
    except OSError:
        pass


def sweep(parent: str) -> None:
    """Remove the cgroups below `parent` whose owner was killed before it could remove them."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        owner, _, started = name.removeprefix(GROUP_PREFIX).partition("-")
        ours = name.startswith(GROUP_PREFIX) and owner.isdigit()
        if ours and str(start_time(int(owner))) != started:
            remove_group(f"{parent}/{name}")


def oom_kills(group: str) -> int:
    """Return how many processes of this cgroup the kernel has killed for its memory limit."""
    for name in OOM_FILES:
        try:
            lines = read(f"{group}/{name}").splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(b"oom_kill "):
                return int(line.split()[1])
    return 0


def start_time(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 if it has ended.

    A zombie counts as ended: in a container whose first process reaps nobody, zombies stay.
    """
    try:
        words = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if words[0] in (b"Z", b"X") else int(words[19])


def read_child(info: int) -> int:
    """Return the pid of the sandbox's first process, from bwrap; 0 if bwrap ended before that."""
    output = b""
    while b"}" not in output:
        piece = os.read(info, 4096)
        if not piece:
            return 0
        output += piece
    digits = output.partition(b'"child-pid"')[2].lstrip(b": ")
    return int(digits[: len(digits) - len(digits.lstrip(b"0123456789"))])


def read(path: str) -> bytes:
    """Return the first 64 KiB of a small kernel file."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 65536)
    finally:
        os.close(fd)


def write(path: str, text: str) -> None:
    """Write to a kernel file in one piece; raises OSError with its path."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(fd)


def complain(error: Exception) -> None:
    """Print on stderr why there is no sandbox."""
    os.write(2, f"sandbox: {error}\n".encode(errors="replace"))


def _filter() -> int:
    """Return a descriptor from which bwrap reads the seccomp program."""
    from agentrunner.sandboxes.seccomp import program

    fd = os.memfd_create("seccomp", 0)
    os.write(fd, program(os.uname().machine))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _die_with_parent(status: int) -> None:
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    libc.signal(SIGINT, None)
    if status < 0:
        return
    # The parent may have died before: then nobody reads the status pipe any more.
    os.set_inheritable(status, True)
    poller = select.poll()
    poller.register(status, 0)
    if any(events & select.POLLERR for _, events in poller.poll(0)):
        os._exit(FAILED)


def _silence() -> None:
    """Release the command's streams: their readers must see their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _wait(bwrap: int) -> int:
    """Wait until bwrap and the whole sandbox have ended, and return bwrap's exit code."""
    code = FAILED
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return code
        if pid == bwrap:
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            _end_orphans()


def _end_orphans() -> None:
    """Kill our remaining children: the sandbox's first process, if it was never released."""
    us = os.getpid()
    try:
        children = read(f"/proc/{us}/task/{us}/children").split()
    except OSError:
        return
    for pid in children:
        os.kill(int(pid), SIGKILL)
