"""The base class of CLI adapters: finds the binary, probes it, reads its event stream.

An adapter adds what is specific: class attributes, `command` and `facts`. One whose CLI prints no
JSON lines overrides `events` and `facts_in`.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from agentrunner.config.agents import WorkerSpec
from agentrunner.environment import find_program
from agentrunner.errors.workers import BadWorkerCommand, BadWorkerUrl
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.workers.base import (
    Ended,
    EventReader,
    Failure,
    OutputWatch,
    Probe,
    Reports,
    WireName,
    WorkerCommand,
    WorkerReading,
    WorkerRequest,
)
from agentrunner.workers.fact import Fact
from agentrunner.workers.failures import unknown_flag
from agentrunner.workers.streams import clip, tail_of
from agentrunner.workers.transcript import TranscriptEvents, facts_in, reading_of

_PROBE_TIMEOUT_SEC = 20
_NPM_PLATFORMS = {"x86_64": "x64", "aarch64": "arm64"}
_PROVIDER_URLS: Mapping[WireName, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""The base URL of the provider if the task names none."""
_VERSION = lazy_regex(r"(?<!\d)\d++(?:\.\d+)+(?:[\w.+-]*\w)?")

LOGIN_PROMPT = (
    r"(?i)^(?!\s*\{).*(?:(?:please|must|need to) (?:log|sign) ?in\b"
    r"|press enter to (?:log|sign) ?in"
    r"|enter (?:the |this |your )?(?:authorization |verification |device |one-time )?code\b"
    r"|open (?:the following|this) (?:url|link).{0,40}(?:log|sign|authenti)"
    r"|(?:visit|navigate to|go to) (?:this (?:url|link)|https?://\S{1,200}) to"
    r" (?:log|sign|authenti)"
    r"|waiting for (?:authentication|login))"
)
"""For `Watch.login`: a prompt to log in.

Only lines that are not JSON come from the CLI itself: JSON contains files and the model's text, and
a worker that builds a login page must not be ended for it.
"""


def _for_user(cure: str) -> str:
    """Return the install command for the current user: npm's own folder usually belongs to root."""
    if os.geteuid() == 0:
        return cure
    return cure.replace("npm install -g ", "npm install -g --prefix ~/.local ")


class CliWorker(ABC):
    """A `Worker` (see `workers/base.py`) for a CLI that prints its events as JSON lines."""

    kind: str
    title: str
    """The CLI at the beginning of a sentence: "The Codex CLI"."""
    binary: str
    """Its name on PATH, and in an image."""
    binary_env: str
    """The variable that names another binary: AGENTRUNNER_CODEX."""
    package: str = ""
    """The npm package whose script starts a native program; used with `native`."""
    native: str = ""
    """A glob for that program in the package for this platform; "" if there is none."""
    tested: str
    """The version that the adapter was built for."""
    verified: str
    cure: str
    """One command that installs the tested version."""
    needs_model: bool = True
    key_names: tuple[str, ...] = ()
    wire: WireName = ""
    reports: Reports = Reports()
    confines_itself: bool = False
    memory: str = "1g"
    hosts: tuple[str, ...] = ()
    flag_rules: Mapping[str, str] = {}
    tool_rules: Mapping[str, str] = {}
    lost_session: str = ""
    """A pattern for the message with which it reports an unknown session."""
    version_env: Mapping[str, str] = {}
    """Variables that `--version` needs besides PATH and HOME."""
    key_env: str = ""
    """The variable from which it reads its credential."""
    reads_stdin: bool = True
    """Whether it reads its prompt from stdin."""
    stop_signal: Literal["INT", "TERM"] = "TERM"
    watch: OutputWatch = OutputWatch()

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        self.spec = spec
        self._repo = repo
        self._binary_name = _binary_setting(self.kind, spec.command)
        self._version = ""
        self.provider_url = spec.base_url or _PROVIDER_URLS.get(self.wire, "")
        if self.provider_url and not re.fullmatch(r"https?://[\x21-\x7e]+", self.provider_url):
            raise BadWorkerUrl(
                "A base URL begins with http:// or https:// and has no blanks.",
                path="runner.worker.base_url",
            )

    @abstractmethod
    def command(self, call: WorkerRequest) -> WorkerCommand:
        """Return the command line for this call; pure except for finding the binary once.

        The task's own flags come last, so that they override the planner's.
        """

    @abstractmethod
    def facts(self, record: Mapping[str, object]) -> Iterable[Fact]:
        """Return the facts in one record of its stream: pure, stateless, never raises."""

    def probe(self) -> Probe:
        """Find the binary and ask it for its version; never raises."""
        path = self._binary
        if path is None:
            missing = (
                f"{self.title} is not found outside the repository: neither runner.worker.command "
                f"nor {self.binary_env} nor PATH leads to it by an absolute path."
            )
            return Probe(None, tested=self.tested, problem=missing, cure=_for_user(self.cure))
        try:
            output = self._version_output(path)
        except (OSError, subprocess.SubprocessError) as error:
            return Probe(path=path, tested=self.tested, problem=f"{path} does not run: {error}")
        found = _VERSION.search(output.decode("utf-8", "replace"))
        self._version = found[0] if found else ""
        return Probe(path=path, version=self._version, tested=self.tested)

    def _version_output(self, path: Path) -> bytes:
        """Return what `--version` prints; raises OSError or SubprocessError if it does not run."""
        # Some CLIs write to their home even then, and as root they create any missing folder.
        with tempfile.TemporaryDirectory(prefix="agentrunner-", ignore_cleanup_errors=True) as home:
            return subprocess.run(
                [path, "--version"],
                # The interpreter of a script is often in the same folder.
                env={
                    "PATH": f"{path.parent}:/usr/local/bin:{os.defpath}",
                    "HOME": home,
                    "TMPDIR": home,
                    **self.version_env,
                },
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_TIMEOUT_SEC,
                check=True,
            ).stdout

    def program(self) -> str:
        """Return the binary's absolute path; if there is none here, its name in an image."""
        return str(self._binary or self.binary)

    def events(self) -> EventReader:
        """Return a reader of the JSON lines."""
        return TranscriptEvents(self.facts)

    def facts_in(self, ended: Ended) -> Iterator[Fact]:
        """Yield the facts of an ended run; lines that are not JSON objects are skipped."""
        return facts_in(ended.stdout, self.facts)

    def read(self, ended: Ended) -> WorkerReading:
        """Return the facts of the run; if the CLI did not begin, with a sentence on its flags."""
        reading = reading_of(
            ended,
            self.facts_in(ended),
            lost_session=self.lost_session,
            counts_actions=self.reports.actions,
        )
        return self._with_refused_flags(ended, reading)

    def _with_refused_flags(self, ended: Ended, reading: WorkerReading) -> WorkerReading:
        """Return the reading; if the CLI did not begin, with a sentence on the flag it refused."""
        began = reading.completed or reading.session_id or reading.actions
        if began or ended.outcome != "exited" or ended.exit_code == 0:
            return reading
        flag = unknown_flag(tail_of(ended.stderr))
        if not flag:
            return reading
        version = f" {self._version}" if self._version else ""
        tested = f"version {self.tested}" if self.tested else "no version of it"
        sentence = clip(
            f"{self.title}{version} does not take {flag} as it is given; "
            f"AgentRunner was tested with {tested}."
        )
        return replace(reading, failure=Failure("protocol", sentence), error=sentence)

    def prepare(
        self,
        call: WorkerRequest,
        home: Path,
        words: Iterable[str],
        env: Mapping[str, str],
        files: Mapping[Path, str] | None = None,
        *,
        folders: Iterable[Path] = (),
    ) -> WorkerCommand:
        """Return the command of these words, with what every CLI gets.

        `home` is its folder for settings and sessions; for temporary files it has another.
        """
        scratch = call.home / "tmp"
        return WorkerCommand(
            argv=(self.program(), *words),
            stdin=call.prompt.encode() if self.reads_stdin else b"",
            env={"TMPDIR": str(scratch), **env},
            key_env=self.key_env,
            folders=(home, scratch, *folders),
            files=files or {},
            stop_signal=self.stop_signal,
            watch=self.watch,
        )

    def model_of(self, call: WorkerRequest) -> str | None:
        """Return the model to use: the call's, or else the task's."""
        return call.model or self.spec.model

    def url_of(self, call: WorkerRequest) -> str:
        """Return the model's address from inside the sandbox: the gateway, or else the provider."""
        return call.base_url or self.provider_url

    def flags_of(self, call: WorkerRequest) -> tuple[str, ...]:
        """Return further flags; the task's own last, so that they override the planner's."""
        return (*call.flags, *self.spec.flags)

    @cached_property
    def _binary(self) -> Path | None:
        name = self._binary_name or os.environ.get(self.binary_env) or self.binary
        found = find_program(name, avoid=self._repo)
        if found is None or not self.native:
            return found
        return native_binary(found, self.package, self.native)


def native_binary(path: Path, package: str, where: str) -> Path | None:
    """Return the native program behind an npm wrapper script, or else `path` with links resolved.

    npm installs `PACKAGE/bin/NAME.js` and, beside the package or nested in it, one package per
    platform, `PACKAGE-linux-x64`, in which `where` is a glob for the program. Killing the wrapper
    would leave the native program running. None if the platform's package is missing.
    """
    real = path.resolve()
    if real.suffix != ".js":
        return real
    machine = platform.machine()
    root = real.parent
    while root.name != package.rpartition("/")[2] and root != root.parent:
        root = root.parent
    scope, _, short = package.rpartition("/")
    platform_package = f"{short}-linux-{_NPM_PLATFORMS.get(machine, machine)}"
    for folder in (
        root.parent / platform_package,
        root / "node_modules" / scope / platform_package,
    ):
        if found := sorted(folder.glob(where)):
            return found[0]
    return None


def resumed(call: WorkerRequest) -> str | None:
    """Return the session to resume; None for a new one."""
    return call.session_id if call.mode == "resume" else None


def session_flags(call: WorkerRequest) -> tuple[str, ...]:
    """Return the flags of CLIs that accept an id for a new session: with it, or to resume one."""
    if session := resumed(call):
        return ("--resume", session)
    return ("--session-id", call.new_session_id) if call.new_session_id else ()


def _binary_setting(kind: str, command: list[str] | str | None) -> str:
    words = [command] if isinstance(command, str) else list(command or ())
    if not words:
        return ""
    if len(words) > 1 or not Path(words[0]).is_absolute():
        raise BadWorkerCommand(
            f"For the worker kind {kind} the command is one absolute path, of its binary.",
            path="runner.worker.command",
            remedy="put options into runner.worker.flags",
        )
    return words[0]


_MAX_BYTES = 100 * 1024
"""Linux refuses an argument of 128 KiB (MAX_ARG_STRLEN)."""


def prompt_argument(call: WorkerRequest) -> str:
    """Return the prompt, or, if it is too long for an argument, a text that says where to read it.

    It begins with a word of ours, so that no prompt is parsed as an option.
    """
    if len(call.prompt.encode("utf-8", "replace")) <= _MAX_BYTES:
        return f"The task:\n\n{call.prompt}"
    return f"The task is written in the file {call.prompt_file}. Read all of it, then do it."
