"""A task held against policies: what it may not, what it gets where it left something out.

A value that the task wrote and a policy does not allow is a breach. A value that it left out
becomes the policy's where the default would be one: a task need not know every machine's policies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentrunner import registry
from agentrunner.errors import UsageError
from agentrunner.task.policy import Policy
from agentrunner.task.policy_match import covered, enumeration, is_below, matches
from agentrunner.task.policy_place import place_of
from agentrunner.task.rules import env_reference
from agentrunner.task.spec import NetworkSpec, PolicySource, TaskSpec
from agentrunner.task.yaml_text import Place

AUTO = tuple(kind for kind in registry.SANDBOXES if kind != "none")
"""What `auto` may choose."""
MODELLESS = frozenset({"command", "mock", "checklist", "script"})
"""Kinds of workers and meta-agents that are told no model and no endpoint."""
_NETWORKS = ("none", "allowlist", "full")
_MODES = ("judged", "evidence", "strict")
_SHOWN = 4
"""Further breaches that are listed below the first."""


def narrowed(
    spec: TaskSpec, policies: Sequence[Policy], environ: Mapping[str, str], *, stored: bool = False
) -> TaskSpec:
    """The task within all of these policies, which it then names.

    Raises UsageError (`policy-breach`) with the lines of task and policy where it goes beyond.
    `stored` is for the task of a run that was started before: nobody can write its numbers anew,
    so budgets and rounds are lowered to what is allowed today.
    """
    spec = spec.model_copy(update={"policies": [], "host_caps": [], "budget_caps": {}})
    for policy in policies:
        spec = _Narrowing(spec, policy, environ, stored=stored).result()
    return spec


def check_loops(max_loops: int | None, policies: Iterable[Policy]) -> None:
    """Refuse a limit of rounds for a new attempt; raises UsageError (`policy-breach`)."""
    for policy in policies:
        cap = policy.caps.meta.max_loops
        if max_loops is not None and cap is not None and max_loops > cap:
            raise _breach(
                f"--max-loops is {max_loops}; the policy allows {cap}.",
                Place("--max-loops"),
                policy.place("meta.max_loops"),
                f"--max-loops {cap}",
            )


def _breach(message: str, place: Place, cap: Place, remedy: str) -> UsageError:
    line = f"{cap.where}     {cap.source_line}".rstrip()
    return UsageError(
        message,
        code="policy-breach",
        path=place.where,
        source_line=place.source_line[:200],
        details=(("policy", line),),
        remedy=remedy,
    )


class _Narrowing:
    """One task and one policy."""

    def __init__(
        self, spec: TaskSpec, policy: Policy, environ: Mapping[str, str], *, stored: bool
    ) -> None:
        self._spec = spec
        self._policy = policy
        self._environ = environ
        self._stored = stored
        self._given: dict[str, Any] = {}
        """Settings of `runner` that the policy gives, by dotted name."""
        self._breaches: list[UsageError] = []

    def result(self) -> TaskSpec:
        for check in (
            self._boxes,
            self._network,
            self._images,
            self._read_paths,
            self._worker,
            self._worker_program,
            self._meta,
            self._budget,
            self._completion,
        ):
            check()
        if self._breaches:
            first, others = self._breaches[0], self._breaches[1 : 1 + _SHOWN]
            first.details += tuple(("also", f"{one.path}: {one.message}") for one in others)
            raise first
        policy, caps = self._policy, self._policy.caps
        source = PolicySource(path=str(policy.path), sha256=policy.sha256)
        hosts = [] if caps.sandbox.hosts is None else [list(caps.sandbox.hosts)]
        budget = dict(self._spec.budget_caps)
        for name, cap in caps.budget:
            if cap is not None:
                budget[name] = min(cap, budget.get(name, cap))
        return self._spec.model_copy(
            update={
                "runner": _with(self._spec.runner, self._given),
                "policies": [*self._spec.policies, source],
                "host_caps": [*self._spec.host_caps, *hosts],
                "budget_caps": budget,
            }
        )

    # -- what was written where ------------------------------------------------------------------

    def _value(self, key: str) -> Any:
        """A setting as it stands now, what this policy gave included."""
        if key in self._given:
            return self._given[key]
        value: Any = self._spec.runner
        for part in key.split(".")[1:]:
            value = getattr(value, part)
        return value

    def _is_written(self, key: str) -> bool:
        return key in self._spec.places

    def _refuse(self, key: str, message: str, cap: str, remedy: str) -> None:
        if self._stored:
            remedy = "start a new run; the task of this one is kept as it was"
        place = self._policy.place(cap)
        self._breaches.append(_breach(message, place_of(self._spec, key), place, remedy))

    # -- the box ---------------------------------------------------------------------------------

    def _boxes(self) -> None:
        kinds, kind = self._policy.caps.sandbox.kinds, self._value("runner.sandbox.kind")
        if kinds is None:
            return
        allowed = [name for name in AUTO if name in kinds] if kind == "auto" else [kind]
        if not allowed or kind not in ("auto", *kinds):
            self._refuse(
                "runner.sandbox.kind",
                f"The sandbox {kind} is not allowed; the policy allows {enumeration(kinds)}.",
                "sandbox.kinds",
                f"--sandbox {kinds[0]}" if kinds else "ask whoever keeps the policy",
            )
        elif len(allowed) == 1:
            self._given["runner.sandbox.kind"] = allowed[0]

    def _network(self) -> None:
        caps = self._policy.caps.sandbox
        most = caps.network or ("full" if caps.hosts is None else "allowlist")
        cap = "sandbox.network" if caps.network else "sandbox.hosts"
        key = "runner.sandbox.network"
        written = self._value(key)
        if most != "full" and self._value("runner.sandbox.kind") == "none":
            self._refuse(
                "runner.sandbox.kind",
                f"Without a sandbox all is reachable; the policy allows {most} at most.",
                cap,
                "--sandbox auto",
            )
        elif written is None and most == "none":
            self._given[key] = NetworkSpec(policy="none")
        elif written and _NETWORKS.index(written.policy) > _NETWORKS.index(most):
            self._refuse(
                key,
                f"The network {written.policy} is not allowed; the policy allows {most} at most.",
                cap,
                f"--set {key}={most}",
            )
        box = self._spec.runner.sandbox
        builds = box.image_from and box.pull in ("missing", "always")
        if most != "full" and builds and not self._stored:  # that of a stored task is there
            self._refuse(
                "runner.sandbox.image_from",
                "The commands that build an image reach every host; "
                f"the policy allows {most} at most.",
                cap,
                "--set runner.sandbox.pull=never, and build it beforehand: agentrunner image build",
            )
        for place, host in self._named_hosts():
            if most == "none":
                message = f"The host {host} is named; the policy allows no network."
                self._refuse(place, message, cap, "remove it")
            elif caps.hosts is not None and not covered(host, caps.hosts):
                self._refuse(
                    place,
                    f"The host {host} is not allowed; the policy allows {enumeration(caps.hosts)}.",
                    "sandbox.hosts",
                    "remove it",
                )

    def _named_hosts(self) -> Iterator[tuple[str, str]]:
        """Where each host is named, and the host."""
        task, network = self._spec.task, self._value("runner.sandbox.network")
        for key, hosts in (
            ("runner.sandbox.network.allow", network.allow if network else []),
            ("task.setup.network", task.setup.network if task.setup else []),
            ("task.test.network", task.test.network if task.test else []),
        ):
            for index, host in enumerate(hosts):
                yield f"{key}[{index}]", host

    def _images(self) -> None:
        caps, key = self._policy.caps.sandbox.images, "runner.worker.docker_image"
        if caps is None:
            return
        image = self._value(key)
        if self._value("runner.sandbox.image_from"):
            self._refuse(
                "runner.sandbox.image_from",
                f"An image of the repository's own is not allowed; it is {enumeration(caps)}.",
                "sandbox.images",
                "remove runner.sandbox.image_from",
            )
        elif image is not None or self._value("runner.sandbox.kind") in ("auto", "docker"):
            self._pattern(key, image, caps, "sandbox.images", "The image")

    def _read_paths(self) -> None:
        roots = self._policy.caps.sandbox.read_paths
        for index, path in enumerate(self._value("runner.sandbox.read_paths")):
            real = Path(os.path.realpath(Path(self._spec.base_dir) / path))
            if roots is not None and not any(
                real.is_relative_to(os.path.realpath(root)) for root in roots
            ):
                self._refuse(
                    f"runner.sandbox.read_paths[{index}]",
                    f"{path} may not be read; the policy allows {enumeration(roots)}.",
                    "sandbox.read_paths",
                    "remove it",
                )

    # -- who works, who decides ------------------------------------------------------------------

    def _worker(self) -> None:
        caps = self._policy.caps.worker
        self._kind("worker", caps.kinds)
        login = self._value("runner.worker.auth") == "login"
        if login and caps.login is False:
            self._refuse(
                "runner.worker.auth",
                "The login of this machine may not be used.",
                "worker.login",
                "--set runner.worker.auth=key",
            )
        if self._value("runner.worker.kind") in MODELLESS:
            return
        if caps.models is not None:
            model = self._value("runner.worker.model")
            self._pattern("runner.worker.model", model, caps.models, "worker.models", "The model")
        if caps.base_urls is not None and not login:  # a login goes to its own provider only
            self._endpoint("runner.worker.base_url", caps.base_urls, "worker.base_urls", "")

    def _worker_program(self) -> None:
        caps, worker = self._policy.caps.worker, self._spec.runner.worker
        if caps.commands is not None and worker.command:
            text = isinstance(worker.command, str) and worker.kind == "command"
            words = [worker.command] if isinstance(worker.command, str) else worker.command
            first = "sh" if text else words[0]
            if not matches(first, caps.commands):
                self._refuse(
                    "runner.worker.command",
                    f"The command {first} is not allowed; the policy allows "
                    f"{enumeration(caps.commands)}.",
                    "worker.commands",
                    "write it as a list: command: [PROGRAM, ARGUMENT]" if text else "remove it",
                )
        flags, cap = caps.flags, "worker.flags"
        if flags is None and (caps.models is not None or caps.base_urls is not None):
            flags, cap = [], "worker.models" if caps.models is not None else "worker.base_urls"
        for index, flag in enumerate(worker.flags):
            if flags is not None and not matches(flag, flags):
                message = f"The flag {flag} is not allowed; the policy allows {enumeration(flags)}."
                self._refuse(f"runner.worker.flags[{index}]", message, cap, "remove it")
        for name, value in worker.env.items():
            variable = env_reference(value)
            if caps.env is not None and variable and not matches(variable, caps.env):
                self._refuse(
                    f"runner.worker.env.{name}",
                    f"The variable {variable} may not be read; the policy allows "
                    f"{enumeration(caps.env)}.",
                    "worker.env",
                    "remove it",
                )

    def _meta(self) -> None:
        caps = self._policy.caps.meta
        self._kind("meta", caps.kinds)
        self._number("runner.meta.max_loops", caps.max_loops, "meta.max_loops")
        if self._value("runner.meta.kind") in MODELLESS:
            return
        key = "runner.meta.model"
        if caps.models is not None:
            # Where the task names none, reading it has put in the machine's own default.
            model = self._value(key)
            left_out = not self._is_written(key) and not matches(str(model), caps.models)
            self._pattern(key, None if left_out else model, caps.models, "meta.models", "The model")
        if caps.base_urls is not None:
            cap = "meta.base_urls"
            self._endpoint("runner.meta.base_url", caps.base_urls, cap, "OPENAI_BASE_URL")

    def _kind(self, section: str, kinds: Sequence[str] | None) -> None:
        key = f"runner.{section}.kind"
        kind = self._value(key)
        if kinds is not None and kind not in kinds:
            self._refuse(
                key,
                f"The {section} {kind} is not allowed; the policy allows {enumeration(kinds)}.",
                f"{section}.kinds",
                f"--{section} {kinds[0]}" if kinds else "ask whoever keeps the policy",
            )

    def _pattern(
        self, key: str, value: str | None, patterns: Sequence[str], cap: str, what: str
    ) -> None:
        """A text that must match; left out, the first pattern that is a text itself."""
        plain = next((pattern for pattern in patterns if "*" not in pattern), None)
        if value is None and plain is not None:
            self._given[key] = plain
        elif value is None or not matches(value, patterns):
            said = f"{what} {value} is not allowed" if value else f"{what} has to be named"
            self._refuse(
                key,
                f"{said}; the policy allows {enumeration(patterns)}.",
                cap,
                f"--set {key}={plain}" if plain else f"--set {key}=…",
            )

    def _endpoint(self, key: str, urls: Sequence[str], cap: str, variable: str) -> None:
        """An endpoint that must be one of these, or below one."""
        url = self._value(key)
        named = url or self._environ.get(variable, "")
        if not named and urls:
            self._given[key] = urls[0]
        elif not any(is_below(named, root) for root in urls):
            # That of the machine is not replaced: its key would go to somebody else.
            place = key if url or not named else variable
            self._refuse(
                place,
                f"The endpoint {named or 'of the provider'} is not allowed; the policy allows "
                f"{enumeration(urls)}.",
                cap,
                f"--set {key}={urls[0]}" if url and urls else f"look at {place}",
            )

    # -- how much, how well ----------------------------------------------------------------------

    def _budget(self) -> None:
        for name, cap in self._policy.caps.budget:
            self._number(f"runner.budget.{name}", cap, f"budget.{name}")

    def _number(self, key: str, cap: float | None, cap_key: str) -> None:
        value = self._value(key)
        if cap is None or (value is not None and value <= cap):
            return
        if not self._is_written(key) or self._stored:
            self._given[key] = cap
            return
        said = "unlimited" if value is None else f"{value:g}"
        message = f"{key} is {said}; the policy allows {cap:g}."
        self._refuse(key, message, cap_key, f"--set {key}={cap:g}")

    def _completion(self) -> None:
        least, mode = self._policy.caps.completion, self._spec.completion
        if least is None or _MODES.index(mode) >= _MODES.index(least):
            return
        if self._spec.runner.completion is None:
            self._given["runner.completion"] = least
        else:
            self._refuse(
                "runner.completion",
                f"runner.completion is {mode}; the policy asks for {least} at least.",
                "completion",
                f"--set runner.completion={least}",
            )


def _with(section: Any, given: Mapping[str, Any]) -> Any:
    """A copy of `runner` with settings by dotted name."""
    for key, value in given.items():
        _, *inner, name = key.split(".")
        holder = getattr(section, inner[0]) if inner else section
        changed = holder.model_copy(update={name: value})
        section = section.model_copy(update={inner[0]: changed}) if inner else changed
    return section
