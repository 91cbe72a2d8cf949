"""The person's own command, run when a run needs somebody or has ended.

It never affects the run: nobody waits for it during the run, it has a time limit, and its failure
is reported once.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Literal

from msgspec import Struct

from agentrunner.errors.command_line import BadOption
from agentrunner.screens.layout import flat
from agentrunner.storage.run_folder import write_private

LIMIT_SEC = 10.0
"""A command that takes longer is killed."""
LOOK_SEC = 0.05
MOST_CHARS = 4_000
"""Per text; everything must fit into a pipe, since we cannot wait for a reader."""
WHERE_OPTION, WHERE_SETTINGS = "--notify", "notify in your settings"
KEPT = "notify.json"
"""File name, in the folder of a run or a plan: the command of the option that it was begun with."""


class _Sent(Struct):
    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    until: float


class Notifier:
    """Runs the command; `where` says which setting named it."""

    def __init__(
        self,
        argv: list[str],
        where: str = WHERE_OPTION,
        environ: Mapping[str, str] = os.environ,
        limit_sec: float = LIMIT_SEC,
        problem: str = "",
    ) -> None:
        """`problem` is why the command cannot be run at all, to be reported instead."""
        self.argv, self._where, self._environ = argv, where, environ
        self._limit = limit_sec
        self._sent: list[_Sent] = []
        self._problem = problem
        self._usable = not problem
        self._warned = False

    def send(self, kind: Literal["needs_you", "ended"], facts: Mapping[str, Any]) -> None:
        """Start the command with `facts` as JSON on its stdin; never raises or waits."""
        if not self._usable:
            return
        value = {"event": kind, **{name: _cut(one) for name, one in facts.items()}}
        own = {
            "AGENTRUNNER_EVENT": kind,
            "AGENTRUNNER_RUN": str(value.get("run_id") or ""),
            "AGENTRUNNER_TEXT": flat(str(value.get("text") or "")).replace("\0", ""),
        }
        # A file, not a pipe: nobody would read the pipe, and a full one would block the command.
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the command has ended
        try:
            process = subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**self._environ, **own},
                start_new_session=True,
            )
        except OSError as error:
            errors.close()
            self._fails(f"cannot be started: {error.strerror or error}")
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.write(json.dumps(value).encode())
            process.stdin.close()
        self._sent.append(_Sent(process, errors, time.monotonic() + self._limit))

    def poll(self) -> str:
        """Return what went wrong, once, else "". Kills commands that take too long."""
        for sent in list(self._sent):
            code = sent.process.poll()
            if code is None and time.monotonic() < sent.until:
                continue
            if code is None:
                _end(sent.process)
                self._fails(f"was ended after {self._limit:g} s")
            elif code:
                self._fails(f"exits {code}{_first_line(sent.errors)}")
            sent.errors.close()
            self._sent.remove(sent)
        if self._warned or not self._problem:
            return ""
        self._warned = True
        return f"{self._where}: `{flat(shlex.join(self.argv))}` {flat(self._problem)}"

    def close(self) -> str:
        """Wait for all commands, at most until their time limit; returns like `poll`."""
        problem = self.poll()
        while self._sent:
            time.sleep(LOOK_SEC)
            problem = self.poll() or problem
        return problem

    def _fails(self, problem: str) -> None:
        self._problem = self._problem or problem


def _cut(value: Any) -> Any:
    return value[:MOST_CHARS] if isinstance(value, str) else value


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _first_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read(2000).decode("utf-8", "replace").strip().splitlines()
    return f": {lines[0]}" if lines else ""


def notifier_of(
    option: str | None, environ: Mapping[str, str] = os.environ, *, settings: bool = True
) -> Notifier | None:
    """Return the command of the option, else of the person's settings; None without either.

    An empty option means none. A repository's settings are ignored, and no program inside it is
    used. Raises BadOption for an option that is no command.
    """
    if option is not None:
        return Notifier(_argv(option, environ), WHERE_OPTION, environ) if option.strip() else None
    from agentrunner.config.config_files import notify_command

    named = notify_command(environ) if settings else ""
    if not named.strip():
        return None
    try:
        return Notifier(_argv(named, environ), WHERE_SETTINGS, environ)
    except BadOption as error:  # this must not keep a run from starting
        return Notifier([named], WHERE_SETTINGS, environ, problem=error.message)


def kept_notifier(
    folder: Path,
    option: str | None,
    usual: Notifier | None,
) -> Notifier | None:
    """Return the command for a run or a plan that lives in `folder`.

    `usual` comes from `notifier_of`. That of the option is kept for whoever continues, who needs
    none then; without an option it is the kept one, if there is one.
    """
    place = folder / KEPT
    with contextlib.suppress(OSError, ValueError):  # a command of yours must not stop a run
        if option is not None:
            write_private(place, json.dumps(usual.argv if usual else []).encode(), sync=False)
        elif place.is_file():
            argv = [str(word) for word in json.loads(place.read_bytes())]
            return Notifier(argv) if argv else None
    return usual


def _argv(text: str, environ: Mapping[str, str]) -> list[str]:
    """Split a command, and return it with the full path of its program."""
    from agentrunner.commands.which_run import here
    from agentrunner.environment import find_program

    try:
        name, *words = shlex.split(text)
    except ValueError as error:
        raise BadOption(
            f"--notify is no command: {error}.",
            path="--notify",
            remedy="--notify 'notify-send AgentRunner'",
        ) from error
    program = find_program(name, avoid=here(), environ=environ)
    if program is None:
        raise BadOption(
            f"--notify: there is no program {name} outside of the repository.",
            path="--notify",
            remedy="name one that is on PATH, or its whole path; no shell reads the words",
        )
    return [str(program), *words]
