"""Commands of AgentRunner as processes of their own that need not import it first.

    with WarmPopen([sys.executable, "-m", "agentrunner", "list"], cwd=repo, env=env) as process:
        process.wait()

A server (`warm_server`), one for each pytest process, has the engine imported and forks for each
command. Importing takes 1.5 s of CPU, and a command that asks one question takes 0.2 s. A command
gets its own arguments, folder, environment, streams and session; it is killed, signalled and waited
for by its pid, as any other. Tests of what a start itself does begin one with `subprocess`.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import pty
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.kit.byte_code import compiled

ROOT = Path(__file__).resolve().parents[2]
LOCALE = "C.UTF-8"
"""What the server and all its commands read and write in."""


class WarmPopen(subprocess.Popen[str]):
    """A `subprocess.Popen` of `python -m MODULE …` or `python -c CODE …`, by the server."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        terminal: bool = False,
        **streams: Any,
    ) -> None:
        """With `terminal`, stdin is the terminal of a session of its own.

        Raises ValueError for variables that Python reads at its start, where they differ from ours.
        """
        for name in {name for name in {*env, *os.environ} if name.startswith("PYTHON")}:
            if name != "PYTHONPATH" and env.get(name) != os.environ.get(name):
                raise ValueError(f"a warm process has {name} already: start it with subprocess")
        self._order = {"argv": [*argv], "cwd": str(cwd), "env": dict(env), "terminal": terminal}
        self._reply: socket.socket | None = None
        super().__init__(argv, text=True, **streams)

    def _execute_child(self, *arguments: Any) -> None:
        """Where `subprocess` would fork and exec; its arguments are all by position."""
        pipes: tuple[int, ...] = arguments[10:16]
        streams = [
            given if given >= 0 else n for n, given in enumerate(pipes[i] for i in (0, 3, 5))
        ]
        self._order["umask"] = arguments[20]
        self._reply, theirs = socket.socketpair()
        try:
            order = json.dumps(self._order).encode()
            socket.send_fds(server(), [order], [*streams, theirs.fileno()])
            theirs.close()
            self.pid = self._number()
        finally:
            theirs.close()
            self._child_created = True
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _number(self) -> int:
        assert self._reply is not None
        if not (data := self._reply.recv(8)):
            raise RuntimeError("the server of warm processes is gone")
        return int.from_bytes(data, "little")

    def _try_wait(self, flags: int) -> tuple[int, int]:
        """As os.waitpid, which knows children only: the pid and its status, or zeros."""
        if self._reply is None:
            return 0, 0
        if flags & os.WNOHANG and not select.select([self._reply], [], [], 0)[0]:
            return 0, 0
        status = self._number()
        self._reply.close()
        self._reply = None
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def python_variables() -> dict[str, str]:
    """What Python reads at its start, as the server had it: for an environment made anew."""
    kept = {name: text for name, text in os.environ.items() if name.startswith("PYTHON")}
    kept.pop("PYTHONPATH", None)
    return kept


def warm_run(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """A command to its end, without input, as `subprocess.run` would with `capture_output`."""
    pipe = subprocess.PIPE
    with WarmPopen(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
    ) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def warm_terminal(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> tuple[WarmPopen, int]:
    """A command in a terminal of its own, and the descriptor of its other side."""
    master, slave = pty.openpty()
    try:
        process = WarmPopen(
            argv, cwd=cwd, env=env, terminal=True, stdin=slave, stdout=slave, stderr=slave
        )
    finally:
        os.close(slave)
    return process, master


@functools.cache
def server() -> socket.socket:
    """The server's socket; the server ends when this process does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.kit.warm_server", str(theirs.fileno()), compiled()],
            cwd=ROOT,
            env={**os.environ, "LC_ALL": LOCALE},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
