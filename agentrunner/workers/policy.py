"""What a meta-agent may ask of a worker: the task's word wins over the model's (threat T15).

Everything in a `worker_call` is text of a language model that has read untrusted files. What is
not allowed here is refused with a reason, and the meta-agent is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agentrunner.errors import ProtocolError
from agentrunner.protocol import WorkerCall
from agentrunner.workers.make import canonical_kind
from agentrunner.workers.member import Member

MAX_PROMPT_BYTES = 256 * 1024
_MAX_FLAGS = 20
_MAX_ENV_VALUE = 1_000
_MODES = ("exec", "resume")
_ENV_NAMES = re.compile(
    r"CI|TZ|LANG|LC_[A-Z]+|NO_COLOR|FORCE_COLOR|DEBUG|VERBOSE|LOG_LEVEL"
    r"|NODE_ENV|RAILS_ENV|APP_ENV|RUST_LOG|RUST_BACKTRACE"
)
"""An allow-list: what steers loaders, interpreters, git, proxies and homes has no end of names."""


def check_call(call: WorkerCall, member: Member) -> None:
    """Refuse what the task does not allow; raises ProtocolError("invalid", path, reason).

    The task's own `worker.flags` and `worker.env` are a
    person's word and are not looked at here.
    """
    spec, worker = member.spec.runner.worker, member.worker
    if worker.kind != "mock" and canonical_kind(call.worker_type) != worker.kind:
        raise _refused("worker_type", f"this task's worker is {worker.kind}")
    if call.mode not in _MODES:
        raise _refused("mode", f"the modes are {' and '.join(_MODES)}")
    if call.model and call.model != spec.model:
        allowed = f"only {spec.model}" if spec.model else "none"
        raise _refused("model", f"the task allows {allowed}; leave it out")
    if call.tool_specific:
        raise _refused("tool_specific", "no settings are allowed here; leave it out")
    _check_prompt(call.prompt)
    _check_flags(call.flags, worker.flag_rules)
    _check_env(call.env)


def _check_prompt(prompt: str) -> None:
    if not prompt.strip():
        raise _refused("prompt", "the prompt is empty")
    if "\0" in prompt:
        raise _refused("prompt", "the prompt has a NUL character")
    try:
        size = len(prompt.encode())
    except UnicodeEncodeError:
        raise _refused("prompt", "the prompt has a lone surrogate, which is no text") from None
    if size > MAX_PROMPT_BYTES:
        raise _refused("prompt", f"{size} bytes; at most {MAX_PROMPT_BYTES} are allowed")


def _check_flags(flags: Sequence[str], rules: Mapping[str, str]) -> None:
    """Each flag must be a known one, its value after it or joined by `=` for long names."""
    if len(flags) > _MAX_FLAGS:
        raise _refused("flags", f"{len(flags)} flags; at most {_MAX_FLAGS} are allowed")
    known = ", ".join(rules) or "none"
    index = 0
    while index < len(flags):
        place = f"flags.{index}"
        name, joined, value = flags[index].partition("=")
        if name not in rules or (joined and not name.startswith("--")):
            raise _refused(place, f"this flag is not allowed. Allowed: {known}")
        rule = rules[name]
        if rule and not joined:
            index += 1
            value = flags[index] if index < len(flags) else ""
        if not re.fullmatch(rule, value):
            raise _refused(place, f"{name} does not take this value; it must match {rule!r}")
        index += 1


def _check_env(env: Mapping[str, str]) -> None:
    for name, value in env.items():
        if not _ENV_NAMES.fullmatch(name):
            allowed = _ENV_NAMES.pattern.replace("|", ", ")
            raise _refused("env", f"variable {name[:60]!r} is not allowed. Allowed: {allowed}")
        # `env:NAME` is how a task file takes a variable, perhaps a secret, of the host.
        if value.startswith(("env:", "literal:")) or not value.isprintable():
            raise _refused(f"env.{name}", "a plain text on one line is expected")
        if len(value) > _MAX_ENV_VALUE:
            raise _refused(f"env.{name}", f"longer than {_MAX_ENV_VALUE} characters")


def _refused(place: str, reason: str) -> ProtocolError:
    return ProtocolError("invalid", f"worker_call.{place}", f"refused by the task: {reason}")
