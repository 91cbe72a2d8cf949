"""Starts bubblewrap with what no command line can hold, and stays beside it where that is needed.

    python -I -S -X utf8 -c BOOTSTRAP PACKAGE_HOME [OPTION…] -- BWRAP WORD…

    --status FD                      the pipe on which bwrap reports; {"oom": true} is added to it
    --filter                         a seccomp filter (see `seccomp`), handed to bwrap as a file
    --group PARENT FILE=VALUE…       a cgroup of its own below PARENT, with these settings
    --door FOLDER PORT=NAME…         listeners inside of it, handed over to FOLDER/control.sock
    --host-network                   the sandbox has the host's network, and so its loopback
    --layers FOLDER SOURCE…          copies of these, as FOLDER/0, FOLDER/1, …, while it lives

With no group, door or layer it becomes bwrap and costs nothing more. Else it is bwrap's parent:
it dies with its own parent, bwrap with it, and it ends with bwrap's exit code when the last
process of the sandbox is gone.

Standard library only, and little of that: it runs before every command. `signal` alone would take
5 ms to import, `ctypes` and `select` take 3.
"""
# pathlib takes 8 ms to import
# ruff: noqa: PTH102, PTH106, PTH208

from __future__ import annotations

import ctypes
import os
import select
import sys

BOOTSTRAP = """\
import sys
sys.path.append(sys.argv[1])
from agentrunner.sandboxes.enter import main
main()
"""
GROUP_PREFIX = "agentrunner-"
OPTIONS = ("--status", "--filter", "--group", "--door", "--host-network", "--layers")
OOM_FILES = ("memory.oom_control", "memory.events")
"""Of cgroup v1 and v2; both have a line `oom_kill N`."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGPIPE, SIGXFSZ = 1, 2, 3, 9, 13, 25
FAILED = 125

libc = ctypes.CDLL(None, use_errno=True)


class EnterOptions:
    """The words before bwrap's own."""

    def __init__(self, words: list[str]) -> None:
        """Raises ValueError for words that are not ours."""
        self.bwrap = words[words.index("--") + 1 :]
        self.status = -1
        self.filter = False
        self.groups: list[tuple[str, list[str]]] = []
        self.door = ""
        self.ports: dict[int, str] = {}
        self.host_network = False
        self.layers: list[str] = []
        """The folder for copies, and what is copied."""
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
    """Bwrap, as our child, with its cgroups and its door."""

    def __init__(self, order: EnterOptions, words: list[str]) -> None:
        self.order = order
        self.words = words
        """Options that bwrap gets beside its own."""
        self.groups: list[str] = []

    def run(self) -> int:
        """Start it, see it to its end; returns its exit code. Raises OSError."""
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
        """Fork, and become bwrap in the cgroups."""
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
        """Start it, and let the command go when its door stands."""
        info, info_end = os.pipe()
        block_end, block = os.pipe()
        for fd in (info_end, block_end):
            os.set_inheritable(fd, True)
        words = [*self.words, "--info-fd", str(info_end), "--block-fd", str(block_end)]
        bwrap = self._start(words)
        os.close(info_end)
        os.close(block_end)
        # It takes 8 ms, for sockets; bwrap makes the sandbox meanwhile.
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
    """Run the words of our command line."""
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
    """Execute bwrap in the state in which a program expects to be started."""
    # What is ignored stays so in the command: some by our Python, some by the shell or nohup that
    # AgentRunner was started with.
    for number in (SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ):
        libc.signal(number, None)
    # Only for our own start (see `bwrap`): no request may set it.
    env = {name: value for name, value in os.environb.items() if name != b"LD_LIBRARY_PATH"}
    os.execve(bwrap[0], [bwrap[0], *words, *bwrap[1:]], env)


def make_group(parent: str, settings: list[str]) -> str:
    """A cgroup that is named after this process, so that it can be swept; raises OSError."""
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
    """Remove a cgroup in which nothing runs; one that is not empty is left to `sweep`."""
    try:  # noqa: SIM105 - contextlib takes 3 ms to import
        os.rmdir(group)
    except OSError:
        pass


def sweep(parent: str) -> None:
    """Remove the cgroups below `parent` whose owner was killed before it could do so."""
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
    """How many processes the kernel has ended in this cgroup for its memory."""
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
    """When a process started, in clock ticks since boot; 0 if it has ended.

    Also where nobody collects it, as in a container whose first process is none that does.
    """
    try:
        words = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if words[0] in (b"Z", b"X") else int(words[19])


def read_child(info: int) -> int:
    """The first process of the sandbox, as bwrap tells it; 0 if it ended before."""
    output = b""
    while b"}" not in output:
        piece = os.read(info, 4096)
        if not piece:
            return 0
        output += piece
    digits = output.partition(b'"child-pid"')[2].lstrip(b": ")
    return int(digits[: len(digits) - len(digits.lstrip(b"0123456789"))])


def read(path: str) -> bytes:
    """The beginning of a small file of the kernel."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 65536)
    finally:
        os.close(fd)


def write(path: str, text: str) -> None:
    """Write to a file of the kernel in one piece; raises OSError with its path."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(fd)


def complain(error: Exception) -> None:
    """Say on stderr why there is no sandbox."""
    os.write(2, f"sandbox: {error}\n".encode(errors="replace"))


def _filter() -> int:
    """A descriptor from which bwrap reads the seccomp program."""
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
    # It may have died before: then nobody reads the status pipe any more.
    os.set_inheritable(status, True)
    poller = select.poll()
    poller.register(status, 0)
    if any(events & select.POLLERR for _, events in poller.poll(0)):
        os._exit(FAILED)


def _silence() -> None:
    """Let go of the command's streams: their readers must see their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _wait(bwrap: int) -> int:
    """Wait until bwrap and all of the sandbox have ended; returns bwrap's exit code."""
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
    """The sandbox's first process ends with bwrap, but not before it was let go."""
    us = os.getpid()
    try:
        left = read(f"/proc/{us}/task/{us}/children").split()
    except OSError:
        return
    for pid in left:
        os.kill(int(pid), SIGKILL)
