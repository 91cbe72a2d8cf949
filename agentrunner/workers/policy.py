"""What a planner may ask of a worker: the task overrides the model (threat T15).

Everything in a `worker_call` is text of a language model that has read untrusted files. What is not
allowed here is refused with a reason, and the planner is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentrunner.errors import ProtocolError
from agentrunner.errors.replies import ReplyInvalid
from agentrunner.protocol import WorkerCall
from agentrunner.protocol.taking import NOTHING
from agentrunner.registry import canonical_worker_type
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.workers.member import Member

MAX_PROMPT_BYTES = 256 * 1024
_MAX_FLAGS = 20
_MAX_ENV_VALUE = 1_000
_MODES = ("exec", "resume")
_ENV_NAMES = lazy_regex(
    r"CI|TZ|LANG|LC_[A-Z]+|NO_COLOR|FORCE_COLOR|DEBUG|VERBOSE|LOG_LEVEL"
    r"|NODE_ENV|RAILS_ENV|APP_ENV|RUST_LOG|RUST_BACKTRACE"
)
"""An allow-list: the names that steer loaders, interpreters, git, proxies and homes are endless."""


def check_call(call: WorkerCall, members: Sequence[Member]) -> Member:
    """Return the candidate that this call orders, by its name or its kind.

    If several have that kind, it is the first that may use the requested model. Raises
    ProtocolError("invalid", path, reason) for what the task does not allow. The task's own
    `worker.flags` and `worker.env` come from a person and are not checked here; `use_stdin` says
    how a prompt is passed, which the adapter decides, so it has no effect.
    """
    member = _ordered(call, members)
    if call.mode not in _MODES:
        raise _refused("mode", f"the modes are {' and '.join(_MODES)}")
    named = (call.model or "").strip().lower() not in NOTHING
    if named and not model_of(call, member) and _models(member):
        allowed = ", ".join(_models(member))
        raise _refused("model", f"the task allows only {allowed} for {member.name}; leave it out")
    check_prompt(call.prompt)
    _check_flags(call.flags, member.worker.flag_rules)
    _check_settings(call.tool_specific, member.worker.tool_rules)
    _check_env(call.env)
    return member


def model_of(call: WorkerCall, member: Member) -> str | None:
    """Return the model that a call may request of this candidate; None if it takes none."""
    return call.model if call.model in _models(member) else None


def is_kind_for_name(call: WorkerCall, member: Member) -> bool:
    """Whether a call names a candidate by its kind; a mock takes any name."""
    named = canonical_worker_type(call.worker_type) == canonical_worker_type(member.name)
    return not named and not member.is_mock


def settings_of(call: WorkerCall) -> dict[str, str]:
    """Return `tool_specific` of an allowed call, each value as the text that was checked."""
    return {name: str(_as_text(value)) for name, value in call.tool_specific.items()}


def _ordered(call: WorkerCall, members: Sequence[Member]) -> Member:
    wanted = canonical_worker_type(call.worker_type)
    named = [member for member in members if canonical_worker_type(member.name) == wanted]
    found = named or [member for member in members if member.worker.kind == wanted]
    found = found or [member for member in members if member.is_mock]
    if not found:
        known = ", ".join(member.name for member in members)
        what = "this task's worker is" if len(members) == 1 else "this task's workers are"
        raise _refused("worker_type", f"{what} {known}")
    return next((member for member in found if call.model in _models(member)), found[0])


def _models(member: Member) -> list[str]:
    """Return the models that a candidate may be given, its own first."""
    spec = member.spec.runner.worker
    return [model for model in (spec.model, *spec.models) if model]


def check_prompt(prompt: str) -> None:
    """Raise ProtocolError for an invalid prompt: empty, too long, or not text."""
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
    """Check that each flag is known, with its value after it or, for long names, joined by `=`."""
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
        if not re.fullmatch(rule, value, re.ASCII):
            raise _refused(place, f"{name} does not take this value; it must match {rule!r}")
        index += 1


def _check_settings(settings: Mapping[str, Any], rules: Mapping[str, str]) -> None:
    known = ", ".join(rules) or "none"
    for name, value in settings.items():
        place = f"tool_specific.{name[:60]}"
        if name not in rules:
            raise _refused("tool_specific", f"{name[:60]!r} is not allowed. Allowed: {known}")
        text = _as_text(value)
        if text is None or not re.fullmatch(rules[name], text, re.ASCII):
            raise _refused(place, f"it does not take this value; it must match {rules[name]!r}")


def _as_text(value: object) -> str | None:
    """Return a single value as a command line has it; None for any other value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


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
    return ReplyInvalid(f"worker_call.{place}", f"refused by the task: {reason}")
