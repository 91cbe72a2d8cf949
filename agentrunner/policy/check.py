"""Checks a task against policies: refuses what is not allowed, and fills in what was left out.

A value that the task wrote and a policy does not allow is a breach. A value that it left out
becomes the policy's if the default would be a breach: a task need not know every machine's
policies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agentrunner import registry
from agentrunner.config.kinds import sandbox_kind
from agentrunner.config.rules import env_reference, written_workers
from agentrunner.config.sandbox import KEPT, NetworkSpec, size_of
from agentrunner.config.spec import PolicySource, TaskSpec
from agentrunner.config.yaml_text import Place, dotted
from agentrunner.policy.match import covered, enumeration, matches
from agentrunner.policy.narrowing import Narrowing, breach
from agentrunner.policy.permitted_agents import hold_agents
from agentrunner.policy.policy_file import Policy

_NETWORKS = ("none", "allowlist", "full")
_MODES = ("judged", "evidence", "strict")
_SHOWN = 4
"""Further breaches that are listed below the first."""


def narrowed(
    spec: TaskSpec, policies: Sequence[Policy], environ: Mapping[str, str], *, stored: bool = False
) -> TaskSpec:
    """Return the task within all of these policies, which it then names.

    Raises UsageError (`policy-breach`) with the lines of task and policy if it exceeds one.
    `stored` is for the task of an earlier run: nobody can rewrite its numbers, so budgets and
    rounds are lowered to what is allowed today.
    """
    none: dict[str, object] = {
        "policies": [],
        "host_caps": [],
        "cache_caps": None,
        "budget_caps": {},
    }
    spec = spec.model_copy(update=none)
    for policy in policies:
        spec = _Narrowing(spec, policy, environ, stored=stored).result()
    return spec


def check_loops(max_loops: int | None, policies: Iterable[Policy]) -> None:
    """Refuse a limit of rounds for a new attempt; raises UsageError (`policy-breach`)."""
    for policy in policies:
        cap = policy.caps.meta.max_loops
        if max_loops is not None and cap is not None and max_loops > cap:
            raise breach(
                f"--max-loops is {max_loops}; the policy allows {cap}.",
                Place("--max-loops"),
                policy.place("meta.max_loops"),
                f"--max-loops {cap}",
            )


def caches_allowed(
    policies: Sequence[Policy], allowed: list[str] | None = None
) -> list[str] | None:
    """Return the ecosystems of `allowed` whose caches may be shown under all of these policies.

    None allows any.
    """
    for policy in policies:
        if (most := policy.caps.sandbox.caches) is not None:
            listed = [] if most == "none" else most
            allowed = [name for name in listed if allowed is None or name in allowed]
    return allowed


def isolating(kinds: Iterable[str]) -> list[str]:
    """Return those kinds of sandboxes that isolate."""
    return [name for name in registry.SANDBOXES if name in kinds and sandbox_kind(name).isolates]


class _Narrowing(Narrowing):
    """All rules of a policy for one task."""

    def result(self) -> TaskSpec:
        for check in (
            self._sandboxes,
            self._network,
            self._images,
            self._read_paths,
            self._caches,
            self._kept_files,
            self._setup_env,
            self._candidates,
            self._budget,
            self._completion,
        ):
            check()
        if self.breaches:
            first, others = self.breaches[0], self.breaches[1 : 1 + _SHOWN]
            first.details += tuple(("also", f"{one.path}: {one.message}") for one in others)
            raise first
        policy, caps = self.policy, self.policy.caps
        source = PolicySource(path=str(policy.path), sha256=policy.sha256)
        hosts = [] if caps.sandbox.hosts is None else [list(caps.sandbox.hosts)]
        budget = dict(self.spec.budget_caps)
        for name, cap in caps.budget:
            if cap is not None:
                budget[name] = min(cap, budget.get(name, cap))
        return self.spec.model_copy(
            update={
                "runner": self.runner(),
                "places": self.places(),
                "policies": [*self.spec.policies, source],
                "host_caps": [*self.spec.host_caps, *hosts],
                "cache_caps": caches_allowed([policy], self.spec.cache_caps),
                "budget_caps": budget,
            }
        )

    # -- the sandbox
    # ---------------------------------------------------------------------------------

    def _sandboxes(self) -> None:
        kinds, kind = self.policy.caps.sandbox.kinds, self.value("runner.sandbox.kind")
        if kinds is None:
            return
        allowed = isolating(kinds) if kind == "auto" else [kind]
        if not allowed or kind not in ("auto", *kinds):
            self.refuse(
                "runner.sandbox.kind",
                f"The sandbox {kind} is not allowed; the policy allows {enumeration(kinds)}.",
                "sandbox.kinds",
                f"--sandbox {kinds[0]}" if kinds else "ask whoever keeps the policy",
            )
        elif kind == "auto" and len(allowed) == 1:
            self.give("runner.sandbox.kind", allowed[0])

    def _network(self) -> None:
        caps = self.policy.caps.sandbox
        most = caps.network or ("full" if caps.hosts is None else "allowlist")
        cap = "sandbox.network" if caps.network else "sandbox.hosts"
        key = "runner.sandbox.network"
        written = self.value(key)
        if most != "full" and not sandbox_kind(self.value("runner.sandbox.kind")).isolates:
            self.refuse(
                "runner.sandbox.kind",
                f"Without a sandbox all is reachable; the policy allows {most} at most.",
                cap,
                "--sandbox auto",
            )
        elif written is None and most == "none":
            self.give(key, NetworkSpec(policy="none"))
        elif written and _NETWORKS.index(written.policy) > _NETWORKS.index(most):
            self.refuse(
                key,
                f"The network {written.policy} is not allowed; the policy allows {most} at most.",
                cap,
                f"--set {key}={most}",
            )
        settings = self.spec.runner.sandbox
        builds = settings.image_from and settings.pull in ("missing", "always")
        if most != "full" and builds and not self.stored:  # a stored task has its image already
            self.refuse(
                "runner.sandbox.image_from",
                "The commands that build an image reach every host; "
                f"the policy allows {most} at most.",
                cap,
                "--set runner.sandbox.pull=never, and build it beforehand: agentrunner image build",
            )
        for place, host in self._named_hosts():
            if most == "none":
                message = f"The host {host} is named; the policy allows no network."
                self.refuse(place, message, cap, "remove it")
            elif caps.hosts is not None and not covered(host, caps.hosts):
                self.refuse(
                    place,
                    f"The host {host} is not allowed; the policy allows {enumeration(caps.hosts)}.",
                    "sandbox.hosts",
                    "remove it",
                )

    def _named_hosts(self) -> Iterator[tuple[str, str]]:
        """Yield where each host is named, and the host."""
        task, network = self.spec.task, self.value("runner.sandbox.network")
        for key, hosts in (
            ("runner.sandbox.network.allow", network.allow if network else []),
            ("task.setup.network", task.setup.network if task.setup else []),
            ("task.test.network", task.test.network if task.test else []),
        ):
            for index, host in enumerate(hosts):
                yield f"{key}[{index}]", host

    def _images(self) -> None:
        caps = self.policy.caps.sandbox.images
        if caps is None:
            return
        if self.value("runner.sandbox.image_from"):
            self.refuse(
                "runner.sandbox.image_from",
                f"An image of the repository's own is not allowed; it is {enumeration(caps)}.",
                "sandbox.images",
                "remove runner.sandbox.image_from",
            )
            return
        for path, _ in written_workers(self.spec.runner):
            key = dotted((*path, "docker_image"))
            image = self.value(key)
            if image is not None or sandbox_kind(self.value("runner.sandbox.kind")).has_image:
                self.pattern(key, image, caps, "sandbox.images", "The image")

    def _read_paths(self) -> None:
        roots = self.policy.caps.sandbox.read_paths
        for index, path in enumerate(self.value("runner.sandbox.read_paths")):
            real = Path(os.path.realpath(Path(self.spec.base_dir) / path))
            if roots is not None and not any(
                real.is_relative_to(os.path.realpath(root)) for root in roots
            ):
                self.refuse(
                    f"runner.sandbox.read_paths[{index}]",
                    f"{path} may not be read; the policy allows {enumeration(roots)}.",
                    "sandbox.read_paths",
                    "remove it",
                )

    def _caches(self) -> None:
        allowed = self.policy.caps.sandbox.caches
        wanted = self.value("runner.sandbox.caches")
        if allowed is None or isinstance(wanted, str):
            return  # `auto` shows what every policy allows
        allowed = [] if allowed == "none" else allowed
        for name in wanted:
            if name not in allowed:
                self.refuse(
                    "runner.sandbox.caches",
                    f"The package cache of {name} may not be shown; the policy allows "
                    f"{enumeration(allowed)}.",
                    "sandbox.caches",
                    "--set runner.sandbox.caches=auto",
                )

    def _kept_files(self) -> None:
        cap, key = self.policy.caps.sandbox.keep_files_up_to, "runner.sandbox.keep_files_up_to"
        written = self.value(key)
        if cap is None or size_of(written or KEPT) <= size_of(cap):
            return
        if written is None or self.stored:
            self.give(key, cap)
            return
        message = f"Files up to {written} may not be kept; the policy allows {cap}."
        self.refuse(key, message, "sandbox.keep_files_up_to", f"--set {key}={cap}")

    def _setup_env(self) -> None:
        """Check the variables of this machine that a set-up may read, by the rule for workers."""
        caps, setup = self.policy.caps.worker.env, self.spec.task.setup
        for name, value in (setup.env if setup else {}).items():
            variable = env_reference(value)
            if caps is not None and variable and not matches(variable, caps):
                self.breaches.append(
                    breach(
                        f"{variable} may not be read; the policy allows {enumeration(caps)}.",
                        Place(f"task.setup.env.{name}"),
                        self.policy.place("worker.env"),
                        "remove it",
                    )
                )

    # -- who, how much, how well -----------------------------------------------------------------

    def _candidates(self) -> None:
        hold_agents(self)

    def _budget(self) -> None:
        for name, cap in self.policy.caps.budget:
            self.number(f"runner.budget.{name}", cap, f"budget.{name}")

    def _completion(self) -> None:
        least, mode = self.policy.caps.completion, self.spec.completion
        if least is None or _MODES.index(mode) >= _MODES.index(least):
            return
        if self.spec.runner.completion is None:
            self.give("runner.completion", least)
        else:
            self.refuse(
                "runner.completion",
                f"runner.completion is {mode}; the policy asks for {least} at least.",
                "completion",
                f"--set runner.completion={least}",
            )
