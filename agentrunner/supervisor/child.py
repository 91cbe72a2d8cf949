"""The worker's process, or that of the sandbox helper around it: start, signals, end.

Standard library only, for the supervisor.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from agentrunner.sandboxes.process_tree import (
    PR_SET_PDEATHSIG,
    descendants,
    prctl,
    process_table,
    send,
)
from agentrunner.text.lazy_regex import lazy_regex

CHILD_PID = lazy_regex(rb'"child-pid"\s*:\s*(\d+)')
EXIT_CODE = lazy_regex(rb'"exit-code"\s*:\s*(\d+)')
FORWARDS = lazy_regex(rb'"forwards-signals"\s*:\s*true')
OOM = lazy_regex(rb'"oom"\s*:\s*true')
ERROR = lazy_regex(rb'"error"\s*:\s*("(?:[^"\\]|\\.)*")')

KILL_ROUNDS = 100
KILL_PAUSE_SEC = 0.02


class Child:
    """A process with its pipes, held at a gate until `release`.

    In `argv` the text `{status_fd}` stands for a pipe on which a sandbox helper reports its child,
    as bwrap does: {"child-pid": N} and, if the command ran, {"exit-code": N}. A helper whose child
    is invisible to us reports {"forwards-signals": true}; SIGUSR1 then asks it to kill everything.
    {"oom": true} and {"error": TEXT} say why it ended badly.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        self.argv = argv
        self.env = env
        self.cwd = cwd
        self.has_status = any("{status_fd}" in word for word in argv)
        self.inner_status = b""
        """What came on the status pipe so far."""
        self.status: int | None = None
        """Exit code of the process, 128 + n after signal n; None while it lives."""
        gate_end, self._gate = os.pipe2(os.O_CLOEXEC)
        self._failure, failure_end = os.pipe2(os.O_CLOEXEC)
        stdin_end, self.stdin = os.pipe2(os.O_CLOEXEC)
        self.stdout, stdout_end = os.pipe2(os.O_CLOEXEC)
        self.stderr, stderr_end = os.pipe2(os.O_CLOEXEC)
        self.status_pipe, status_end = os.pipe2(os.O_CLOEXEC)
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._gate)
            self._become(gate_end, failure_end, (stdin_end, stdout_end, stderr_end), status_end)
        for fd in (gate_end, failure_end, stdin_end, stdout_end, stderr_end, status_end):
            os.close(fd)

    def _become(self, gate: int, failure: int, standard: tuple[int, int, int], status: int) -> None:
        """In the child: wait for the release, then execute."""
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.read(gate, 1) != b"\n":
                os._exit(125)
            for place, fd in enumerate(standard):
                os.dup2(fd, place)
            if self.has_status:
                os.set_inheritable(status, True)
            argv = [word.replace("{status_fd}", str(status)) for word in self.argv]
            os.umask(0o022)
            os.chdir(self.cwd)
            self._execute(argv)
        except (OSError, ValueError) as error:
            os.write(failure, f"{self.argv[0]} can't be started: {error}".encode())
        finally:
            os._exit(126)

    def _execute(self, argv: list[str]) -> None:
        """Become the program; raises OSError if it can't be executed."""
        os.execvpe(argv[0], argv, dict(self.env))

    def release(self) -> str:
        """Let it execute; return why it can't, or ""."""
        os.write(self._gate, b"\n")
        os.close(self._gate)
        failure = os.read(self._failure, 4096).decode("utf-8", "replace")
        os.close(self._failure)
        return failure

    def reap(self) -> bool:
        """Collect every ended child; the supervisor also gets the orphans. Return if any lives."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self.pid:
                    code = os.waitstatus_to_exitcode(ended[1])
                    self.status = code if code >= 0 else 128 - code
            return True
        return False

    @property
    def ran(self) -> bool:
        """Whether the command itself ended.

        A helper that can't set up its sandbox or find the command also ends with 1; it reports an
        exit code only if the command ran.
        """
        return not self.has_status or EXIT_CODE.search(self.inner_status) is not None

    @property
    def oom(self) -> bool:
        """Whether the kernel killed it, or one of its processes, for using too much memory."""
        return OOM.search(self.inner_status) is not None

    @property
    def complaint(self) -> str:
        """Why the helper could not run the command, in its own words; "" if it did not say."""
        match = ERROR.search(self.inner_status)
        return str(json.loads(match[1])) if match else ""

    @property
    def exit_code(self) -> int | None:
        """The exit code that the helper reported, or else the status of the process."""
        match = EXIT_CODE.search(self.inner_status)
        return int(match[1]) if match else self.status

    def signal(self, number: int) -> None:
        """Signal the command's process group; for SIGKILL, everything.

        The helper must not get the signal, because its end would end the sandbox: the command is
        what the sandbox's first process started.
        """
        first = CHILD_PID.search(self.inner_status)
        if FORWARDS.search(self.inner_status):
            send(self.pid, signal.SIGUSR1 if number == signal.SIGKILL else number)
        elif number == signal.SIGKILL or (self.has_status and first is None):
            if first is not None:
                send(int(first[1]), signal.SIGKILL)
            send(self.pid, signal.SIGKILL)
        elif first is None:
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)
        else:
            table = process_table()
            groups = {facts.group for facts in table.values() if facts.parent == int(first[1])}
            for pid in descendants(int(first[1]), table):
                if table[pid].group in groups:
                    send(pid, number)

    def kill_leftovers(self) -> int:
        """Kill every process below this one; return how many there were besides the child.

        Orphans below us became our children (PR_SET_CHILD_SUBREAPER).
        """
        killed: set[int] = set()
        for _ in range(KILL_ROUNDS):
            if not self.reap():
                break
            alive = descendants(os.getpid(), process_table())
            if not alive:
                break
            for pid in alive:
                send(pid, signal.SIGKILL)
            killed.update(alive)
            time.sleep(KILL_PAUSE_SEC)
        return len(killed - {self.pid})


STANDARD = 2
"""The last of the descriptors that every program has."""
_PYTHON_BEGINS_WITH: Mapping[int, Any] = {
    signal.SIGCHLD: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
    signal.SIGPIPE: signal.SIG_IGN,
}
"""What signals do in a Python that has just started."""


class OwnProgram(Child):
    """A child that, where it is `python -I -S -c CODE WORD…` of our own Python, stays this fork.

    Another start of Python, and imports that we have already, would take longer than such a program
    does. The code finds its words, environment and streams as it would there, and no other file of
    ours is open.
    """

    def _execute(self, argv: list[str]) -> None:
        if argv[:4] != [sys.executable, "-I", "-S", "-c"]:
            super()._execute(argv)
        for number, handler in _PYTHON_BEGINS_WITH.items():
            signal.signal(number, handler)
        # By what is open: where no limit is set, a range would end at a thousand million.
        for fd in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - no files
            if fd > STANDARD:
                with contextlib.suppress(OSError):  # the list's own
                    os.close(fd)
        os.environ.clear()
        os.environ.update(self.env)
        sys.argv = ["-c", *argv[5:]]
        try:
            exec(argv[4], {"__name__": "__main__"})
            sys.stdout.flush()
        except SystemExit as end:
            sys.stdout.flush()
            if not isinstance(end.code, int | None):
                sys.stderr.write(f"{end.code}\n")
            os._exit(end.code or 0 if isinstance(end.code, int | None) else 1)
        except BaseException:  # noqa: BLE001 - as Python ends with what nothing caught
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
