"""OpenAI's Codex CLI, `codex exec --json`, as a worker. Tested with the version in `TESTED`."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from agentrunner.errors import UsageError
from agentrunner.task.crew import WorkerSpec
from agentrunner.workers.base import (
    Ended,
    EventReader,
    Probe,
    WireName,
    WorkerCall,
    WorkerCommand,
    WorkerReading,
)
from agentrunner.workers.binary import find_program, native_binary
from agentrunner.workers.codex_stream import CodexEvents, read_codex

TESTED = "0.169.0"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
KEY_ENV = "AR_MODEL_KEY"
ACCOUNT_ENV = "AR_ACCOUNT_ID"
_PROBE_TIMEOUT_SEC = 10
_EFFORT = r'model_reasoning_effort=("?)(low|medium|high)\1'

_ALWAYS = (
    # Each of these phones home or costs 5 s where there is no network.
    ("--disable", "plugins"),
    ("-c", "analytics.enabled=false"),
    ("-c", "check_for_update_on_startup=false"),
    # Keeps variables named *KEY*, *SECRET*, *TOKEN* from the commands that the model runs.
    ("-c", "shell_environment_policy.ignore_default_excludes=false"),
)


MISSING = (
    "The Codex CLI is not found outside the repository: neither runner.worker.command "
    "nor AGENTRUNNER_CODEX nor PATH leads to it by an absolute path."
)
CURE = f"npm install -g @openai/codex@{TESTED}"


class CodexWorker:
    """Builds the command line and reads the event stream of the Codex CLI."""

    kind = "codex-cli"
    needs_model = True
    key_names: tuple[str, ...] = ("CODEX_API_KEY", "OPENAI_API_KEY")
    wire: WireName = "openai"
    flag_rules: Mapping[str, str] = {"-c": _EFFORT, "--config": _EFFORT}

    def __init__(self, spec: WorkerSpec, repo: Path | None = None) -> None:
        self._spec = spec
        self._repo = repo
        self._named = _binary_setting(spec.command)
        self.provider_url = spec.base_url or DEFAULT_BASE_URL
        if not re.fullmatch(r"https?://[\x21-\x7e]+", self.provider_url):
            raise UsageError(
                "A base URL begins with http:// or https:// and has no blanks.",
                code="worker-base-url",
                path="runner.worker.base_url",
            )

    def probe(self) -> Probe:
        """Find the binary and ask it for its version; never raises."""
        path = self._binary
        if path is None:
            return Probe(None, tested=TESTED, problem=MISSING, cure=CURE)
        try:
            said = subprocess.run(
                [path, "--version"],
                env={"PATH": os.defpath, "CODEX_HOME": "/nonexistent"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_TIMEOUT_SEC,
                check=True,
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            return Probe(path=path, tested=TESTED, problem=f"{path} does not run: {error}")
        words = said.decode("utf-8", "replace").split() or [""]
        return Probe(path=path, version=words[-1], tested=TESTED)

    def program(self) -> str:
        """The native binary's absolute path; without one here, the name it has in an image."""
        return str(self._binary or "codex")

    def command(self, call: WorkerCall) -> WorkerCommand:
        """`codex exec`, or `codex exec resume` where the call names a session.

        The task's own flags come last, so that they win over the meta-agent's.
        """
        home = call.home / "codex"
        scratch = call.home / "tmp"
        model = call.model or self._spec.model
        resume = call.mode == "resume" and call.session_id
        base_url = call.base_url or self.provider_url
        argv = [
            *(self.program(), "exec", "--json", "--skip-git-repo-check", "-C", str(call.workdir)),
            *(("-m", model) if model else ()),
            *("-c", "model_provider=ar", "-c", f"model_providers.ar={_provider(base_url)}"),
            *_confinement(call.sandboxed),
            *(word for option in _ALWAYS for word in option),
            *("-o", str(call.home / "last-message.txt")),
            *call.flags,
            *self._spec.flags,
            *(("resume", str(call.session_id)) if resume else ()),
            "-",
        ]
        return WorkerCommand(
            argv=tuple(argv),
            stdin=call.prompt.encode(),
            # Codex refuses a CODEX_HOME under TMPDIR, and its own sandbox then fails silently.
            env={"CODEX_HOME": str(home), "TMPDIR": str(scratch)},
            folders=(home, scratch),
            stop_signal="INT",
            key_env=KEY_ENV,
        )

    def events(self) -> EventReader:
        """Reads the JSONL stream."""
        return CodexEvents()

    def read(self, ended: Ended) -> WorkerReading:
        """Completed only with exit 0 and `turn.completed` as the last word of the turn."""
        return read_codex(ended)

    @cached_property
    def _binary(self) -> Path | None:
        name = self._named or os.environ.get("AGENTRUNNER_CODEX") or "codex"
        found = find_program(name, avoid=self._repo)
        return native_binary(found, "@openai/codex", "codex") if found else None


def _provider(base_url: str) -> str:
    # An own provider: the built-in one ignores the base URL or tries a WebSocket for 7 s.
    # Few retries: AgentRunner owns time limits, and Codex repeats a 401 five times.
    fields = {
        "name": "ar",
        "base_url": base_url,
        "env_key": KEY_ENV,
        "wire_api": "responses",
        "request_max_retries": 2,
        "stream_max_retries": 2,
        "stream_idle_timeout_ms": 120_000,
    }
    # For these ASCII texts and numbers a JSON value is a TOML value.
    settings = [f"{key}={json.dumps(value)}" for key, value in fields.items()]
    # With a login the provider wants to know the account; without the variable nothing is sent.
    settings.append(f'env_http_headers={{"chatgpt-account-id"="{ACCOUNT_ENV}"}}')
    return "{" + ",".join(settings) + "}"


def _confinement(sandboxed: bool) -> tuple[str, ...]:
    # Codex's own sandbox inside ours fails without a word and with exit 0.
    if sandboxed:
        return ("--dangerously-bypass-approvals-and-sandbox",)
    return ("-s", "workspace-write")


def _binary_setting(command: list[str] | str | None) -> str:
    words = [command] if isinstance(command, str) else list(command or ())
    if not words:
        return ""
    if len(words) > 1 or not Path(words[0]).is_absolute():
        raise UsageError(
            "For the worker kind codex-cli the command is one absolute path, of the codex binary.",
            code="worker-command",
            path="runner.worker.command",
            remedy="put options into runner.worker.flags",
        )
    return words[0]
