"""Who may work and plan under a policy: checks every candidate of a task by all rules. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentrunner.config.agents import AUTO, SEES, seen_by
from agentrunner.config.kinds import planner_kind, worker_kind
from agentrunner.config.rules import env_reference, planner_candidates, written_workers
from agentrunner.config.yaml_text import dotted
from agentrunner.policy.match import enumeration, matches
from agentrunner.policy.narrowing import Narrowing
from agentrunner.policy.policy_file import Policy


def barred(kind: str, section: str, policies: Sequence[Policy]) -> str:
    """Return why a kind of `worker` or `meta` may not be chosen; "" if every policy allows it."""
    for policy in policies:
        kinds = getattr(policy.caps, section).kinds
        if kinds is not None and kind not in kinds:
            return f"{policy.path} does not allow it"
    return ""


def login_barred(section: str, policies: Sequence[Policy]) -> bool:
    """Whether the login of this machine may not be used by a `worker` or a `meta`."""
    return any(getattr(policy.caps, section).login is False for policy in policies)


def hold_agents(task: Narrowing) -> None:
    """Check every worker and every planner of the task against the policy."""
    for path, _ in written_workers(task.spec.runner):
        _worker(task, dotted(path))
        _worker_program(task, dotted(path))
    task.number("runner.meta.max_loops", task.policy.caps.meta.max_loops, "meta.max_loops")
    _sight(task)
    _planner(task, "runner.meta")
    assess = task.spec.runner.assess
    if assess is not None and assess.kind is None and (assess.model or assess.base_url):
        _planner(task, "runner.assess")
    for path, _ in planner_candidates(task.spec.runner):
        _planner(task, dotted(path))


def _sight(task: Narrowing) -> None:
    """Check what a planner may see of the code: lower it if nobody wrote it, or else refuse it."""
    cap, key = task.policy.caps.meta.see, "runner.meta.see"
    if cap is None:
        return
    planner = task.spec.runner.meta.model_copy(update={"see": task.value(key)})
    wanted = seen_by(planner)
    if SEES.index(wanted) <= SEES.index(cap):
        pass
    elif task.is_written(key) and not task.stored:
        message = f"{key} is {wanted}; the policy allows {cap}."
        task.refuse(key, message, "meta.see", f"--set {key}={cap}")
    else:
        task.give(key, cap)
    reads = "runner.meta.see_repo"
    if cap != "repo" and task.value(reads) == "read":
        message = f"{reads} is read; the policy allows a planner to see {cap}."
        task.refuse(reads, message, "meta.see", f"--set {reads}=none")


def _worker(task: Narrowing, place: str) -> None:
    caps = task.policy.caps.worker
    _kind(task, place, "worker", caps.kinds)
    login = task.value(f"{place}.auth") == "login"
    if login and caps.login is False:
        _refuse_login(task, f"{place}.auth", "worker.login")
    if not worker_kind(task.value(f"{place}.kind")).needs_model:
        return
    if caps.models is not None:
        key, cap = f"{place}.model", "worker.models"
        task.pattern(key, task.value(key), caps.models, cap, "The model")
        for index, model in enumerate(task.value(f"{place}.models")):
            if not matches(model, caps.models):
                allowed = enumeration(caps.models)
                message = f"The model {model} is not allowed; the policy allows {allowed}."
                task.refuse(f"{place}.models[{index}]", message, cap, "remove it")
    if caps.base_urls is not None and not login:  # a login goes to its own provider only
        task.endpoint(f"{place}.base_url", caps.base_urls, "worker.base_urls", "")


def _worker_program(task: Narrowing, place: str) -> None:
    caps, command = task.policy.caps.worker, task.value(f"{place}.command")
    if caps.commands is not None and command:
        text = isinstance(command, str) and task.value(f"{place}.kind") == "command"
        words = [command] if isinstance(command, str) else command
        first = "sh" if text else words[0]
        if not matches(first, caps.commands):
            task.refuse(
                f"{place}.command",
                f"The command {first} is not allowed; the policy allows "
                f"{enumeration(caps.commands)}.",
                "worker.commands",
                "write it as a list: command: [PROGRAM, ARGUMENT]" if text else "remove it",
            )
    flags, cap = caps.flags, "worker.flags"
    if flags is None and (caps.models is not None or caps.base_urls is not None):
        flags, cap = [], "worker.models" if caps.models is not None else "worker.base_urls"
    for index, flag in enumerate(task.value(f"{place}.flags")):
        if flags is not None and not matches(flag, flags):
            message = f"The flag {flag} is not allowed; the policy allows {enumeration(flags)}."
            task.refuse(f"{place}.flags[{index}]", message, cap, "remove it")
    for name, value in task.value(f"{place}.env").items():
        variable = env_reference(value)
        if caps.env is not None and variable and not matches(variable, caps.env):
            task.refuse(
                f"{place}.env.{name}",
                f"The variable {variable} may not be read; the policy allows "
                f"{enumeration(caps.env)}.",
                "worker.env",
                "remove it",
            )


def _planner(task: Narrowing, place: str) -> None:
    """Check `runner.meta`, or a candidate for one of its roles.

    A setting that a candidate leaves out is inherited from `runner.meta` if it has the same kind,
    and was checked against the policy there.
    """
    caps, own = task.policy.caps.meta, place == "runner.meta"
    meta_kind = task.spec.runner.meta.kind
    kind = task.value(f"{place}.kind") or meta_kind
    _kind(task, place, "meta", caps.kinds)
    traits = planner_kind(kind)
    if not traits.calls_model:
        return
    inherits = not own and kind == meta_kind
    login = traits.is_program and _planner_login(task, place, inherits)
    key = f"{place}.model"
    model = task.value(key)
    if caps.models is not None and not (inherits and model is None):
        # If the task names none, reading it has filled in the machine's own default.
        left_out = own and not task.is_written(key) and not matches(str(model), caps.models)
        task.pattern(key, None if left_out else model, caps.models, "meta.models", "The model")
    key = f"{place}.base_url"
    if caps.base_urls is not None and not login and not (inherits and task.value(key) is None):
        task.endpoint(key, caps.base_urls, "meta.base_urls", traits.url_variable)


def _planner_login(task: Narrowing, place: str, inherits: bool) -> bool:
    """Return whether a CLI plans with its login; a policy against that makes it use its key."""
    runner = task.spec.runner
    key = "runner.meta.auth" if place == "runner.assess" else f"{place}.auth"
    auth = task.value(key) if place != "runner.assess" or inherits else None
    if auth is None and inherits:
        auth = runner.meta.auth
    if task.policy.caps.meta.login is False:
        if auth == "login":
            _refuse_login(task, key, "meta.login")
        elif auth is None and place != "runner.assess":
            task.give(key, "key")
            return False
    return auth == "login"


def _refuse_login(task: Narrowing, key: str, cap: str) -> None:
    remedy = "write auth: key" if "[" in key else f"--set {key}=key"
    task.refuse(key, "The login of this machine may not be used.", cap, remedy)


def _kind(task: Narrowing, place: str, section: str, kinds: Sequence[str] | None) -> None:
    kind: Any = task.value(f"{place}.kind")
    if kinds is None or kind is None or kind in kinds or (kind == AUTO and kinds):
        return
    own = place == f"runner.{section}"
    option = "planner" if section == "meta" else section
    remedy = f"--{option} {kinds[0]}" if own and kinds else "remove it"
    task.refuse(
        f"{place}.kind",
        f"The {section} {kind} is not allowed; the policy allows {enumeration(kinds)}.",
        f"{section}.kinds",
        remedy if kinds else "ask whoever keeps the policy",
    )
