"""The server of `warm`: it imports AgentRunner and plays a run once; each command is a fork of it.

    python -m tests.kit.warm_server DESCRIPTOR BYTE_CODE

What a process compiles and makes at its first run, regular expressions, templates of notes and
models, is half of the CPU of a command; so the server has a run behind it when it begins to serve.
Runs begin with the byte code of that folder (`byte_code`).

Each packet on the socket is an order in JSON, with four descriptors: the three streams, and a
socket for two numbers of 8 bytes: the pid, and how it ended, as os.waitpid says it. In the fork
`serve` returns the order, and the module becomes the command; so it ends as any program does.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import io
import json
import locale
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import termios
import threading
import time
import types
from pathlib import Path
from typing import Any

PRELOADED = (
    "agentrunner.cli",
    "agentrunner.commands.chat",
    "agentrunner.commands.fail",
    "agentrunner.commands.look",
    "agentrunner.commands.plan_commands",
    "agentrunner.commands.respond",
    "agentrunner.commands.start",
    "agentrunner.commands.watch",
    "agentrunner.engine.runs",
    "agentrunner.plans.execution.executor",
    "agentrunner.planners.checklist",
    "agentrunner.planners.script",
    "agentrunner.sandboxes.bwrap",
    "agentrunner.workers.command",
)
PACKET = 1 << 20


def play_a_run() -> None:
    """Play a plan of one task to its end, with the run and the merge that belong to it."""
    from tests.kit.plan_project import PlanProject, Work

    with tempfile.TemporaryDirectory() as place:
        plan = PlanProject.make(Path(place), [Work()], {"README.md": "# A shop\n"})
        if plan.carry()["tasks"] != {"TASK-0001": "COMPLETE"}:
            raise RuntimeError(f"the run that warms up did not end well: {plan.result}")


def serve(orders: socket.socket) -> dict[str, Any] | None:
    """Fork for each order; returns it in the fork, and None where the socket ends."""
    ended, ended_in = os.pipe()
    for descriptor in (ended, ended_in):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(ended_in)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([orders.fileno(), ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            _reap(waiting)
        if orders.fileno() not in ready:
            continue
        data, fds, _, _ = socket.recv_fds(orders, PACKET, 4)
        if not data:
            return None
        reply = socket.socket(fileno=fds.pop())
        if pid := os.fork():
            reply.sendall(pid.to_bytes(8, "little"))
            waiting[pid] = reply
            for descriptor in fds:
                os.close(descriptor)
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (ended, ended_in):
            os.close(descriptor)
        for other in (orders, reply, *waiting.values()):
            other.close()
        return {**json.loads(data), "streams": fds}


def _reap(waiting: dict[int, socket.socket]) -> None:
    """Say of each command that ended how it did."""
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with waiting.pop(pid) as reply:
            try:
                reply.sendall(status.to_bytes(8, "little"))
            except OSError:  # nobody waits for it any more
                continue


def enter(order: dict[str, Any]) -> None:
    """Take over what belongs to the command, where a new Python would have started with it."""
    for number, descriptor in enumerate(order["streams"]):
        os.dup2(descriptor, number)
    for descriptor in order["streams"]:
        os.close(descriptor)
    if order["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if order["umask"] >= 0:
        os.umask(order["umask"])
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        errors = "backslashreplace" if name == "stderr" else "strict"
        binary = os.fdopen(number, "wb" if number else "rb", closefd=False)
        lines = name == "stderr" or binary.isatty()
        stream = io.TextIOWrapper(binary, "utf-8", errors, line_buffering=lines)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    added = order["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[0:1] = [order["cwd"], *(path for path in added if path and path not in sys.path)]


def become(order: dict[str, Any]) -> None:
    """Run the command; what it raises, SystemExit as well, ends this process."""
    _, how, what, *rest = order["argv"]
    sys.argv = [how, *rest]
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
        return
    if how != "-c":
        raise ValueError(f"only -m and -c are known, not {how}")
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(what, "<string>", "exec"), main.__dict__)


def main() -> None:
    """Serve until the socket ends."""
    from agentrunner.verification.rooms.decision_sandbox import DecisionSandbox
    from tests.kit.byte_code import warmed

    for name in PRELOADED:
        importlib.import_module(name)
    play_a_run()
    byte_code = Path(sys.argv[2])
    DecisionSandbox.warm = warmed(lambda: byte_code)  # type: ignore[assignment, method-assign]
    if threading.active_count() > 1:
        raise RuntimeError(f"a fork would lose threads: {threading.enumerate()}")
    gc.collect()
    gc.freeze()
    order = serve(socket.socket(fileno=int(sys.argv[1])))
    if order is not None:
        enter(order)
        become(order)


if __name__ == "__main__":
    main()
