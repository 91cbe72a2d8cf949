"""A coding CLI as the planner, for people who have a subscription and no key.

One call is one fresh process in a sandbox of its own (see `cli_sandbox`). The process gets role and
policy in a file and the request on stdin. Our parser reads its answer and `asking.py` requests it
again if it is unusable, whatever the CLI itself thinks of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from agentrunner.config.agents import PlannerSpec, WorkerSpec
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import InfraError, UsageError
from agentrunner.errors.command_line import ReplayMismatch
from agentrunner.errors.planners import NoPlannerKey, PlannerMissing
from agentrunner.gateway.usage import ModelCall
from agentrunner.launching.access import CliAccess, CliCredential, find_login
from agentrunner.launching.launch import CliLaunch
from agentrunner.launching.route import NO_CASSETTE, Cassette
from agentrunner.money.counters import Usage
from agentrunner.planners.base import PlannerRequest, PlannerUnavailable, Reply
from agentrunner.planners.cli_sandbox import CliFolders, CliOutcome, CliSandbox
from agentrunner.planners.constraint import AskedSchema, Constraint, schema_of
from agentrunner.planners.endpoint import checked_url
from agentrunner.planners.faults import OUTAGES
from agentrunner.planners.retry import BY_CLASS, capped, seconds_until
from agentrunner.planners.timeouts import NEAR, is_near
from agentrunner.planners.workplace import Workplace
from agentrunner.workers.base import Failure, FailureKind, Worker, WorkerCommand
from agentrunner.workers.failures import failure_of
from agentrunner.workers.login import Login, not_logged_in
from agentrunner.workers.member import make_worker

URL_NAMES: Mapping[str, str] = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
"""By wire protocol, the environment variable that names another server than the provider's."""

TIMEOUT_SEC = 600.0
NOT_FOUND = 127


class CliCall(Struct, frozen=True):
    """One call: what is asked, and where it runs."""

    place: CliFolders
    request: PlannerRequest
    system: str
    """Role, policy and format, written to a file."""
    prompt: str
    """Written to stdin."""
    shown: CliCredential
    base_url: str
    """The model's address for the CLI: the gateway, else the provider."""
    constraint: Constraint = "task"

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The schema that the answer must follow; None where the provider takes none."""
        found = schema_of(self.request, self.constraint)
        return found[1] if found else None


class CliAnswer(Struct, frozen=True):
    """The parsed output of a CLI."""

    text: str = ""
    completed: bool = False
    """Whether the CLI reached its own end with an answer, good or not."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    model: str = ""
    error: str = ""
    """The CLI's own message on why there is no answer."""
    kind: FailureKind | None = None
    """The failure kind that the CLI's own error code stands for."""


class CliPlanner(ABC):
    """Completes messages with a CLI; subclasses add its command line and read its output."""

    kind: str
    recordable = True
    is_program = True
    """It runs in a sandbox, and its own model decides what it spends."""

    def __init__(
        self,
        spec: TaskSpec,
        environ: Mapping[str, str],
        cassette: Cassette = NO_CASSETTE,
    ) -> None:
        """Find the program and its credential; starts nothing.

        The cassette is for the gateway of its sandbox, where each call has a channel of its own.
        Raises InfraError (`planner-missing`,
        `no-planner-key`, `login-missing`, …), or UsageError for settings that cannot work.
        """
        self._spec = spec
        self._environ = environ
        self._cassette = cassette
        self._worker = _program_of(self.kind, spec)
        self._sandbox: CliSandbox | None = None
        self._workplace: Workplace | None = None
        self._refused = ""
        """Fingerprint of a login token that the provider refused."""
        if not spec.runner.sandbox.isolates and cassette.used:
            raise UsageError(
                f"{self.kind} is recorded and replayed at the gateway of its sandbox, and there is "
                "none.",
                path="--record" if cassette.record else "--replay",
                remedy="--sandbox bwrap or --sandbox docker",
            )
        if not Path(self._worker.program()).is_absolute() and (not spec.runner.sandbox.has_image):
            raise self._missing("on this machine, outside of the repository")
        self._access = planner_access(
            spec, self._worker, environ, replays=cassette.replay is not None
        )
        near = is_near(urlsplit(self._access.server).hostname or "")
        self._timeout_sec = spec.runner.meta.timeout_sec or (NEAR[0] if near else TIMEOUT_SEC)
        self._schema = AskedSchema(near=near)

    @abstractmethod
    def command(self, call: CliCall, program: str, model: str | None) -> WorkerCommand:
        """Return the command line for this call; pure."""

    @abstractmethod
    def read(self, stdout: bytes) -> CliAnswer:
        """Parse the program's output; never raises, whatever that is."""

    def describe(self) -> str:
        """Return a text for the header."""
        model = self._spec.runner.meta.model or "its own model"
        access = self._access
        how = "with its login" if access.login else f"with {access.key_name or 'no key'}"
        return f"{self.kind} {model}, {how}"

    async def open(self, workplace: Workplace) -> None:
        """Keep the workplace; the sandbox is made by the first call."""
        self._workplace = workplace
        program = self._worker.program()
        self._sandbox = CliSandbox(workplace, self._spec, program, self._environ, self._cassette)

    async def complete(self, request: PlannerRequest) -> Reply:
        """Make one attempt; raises PlannerUnavailable, or InfraError without program or login."""
        sandbox = self._sandbox
        assert sandbox is not None and self._workplace is not None, "open() comes first"
        shown = await self._access.credential(
            self._timeout_sec, gateway=sandbox.isolates, refused=self._refused
        )
        self._workplace.redactor.learn(shown.secrets)
        # Calls of a subscription cost no money.
        allowed = replace(request.allowance, usd=None) if self.subscribed else request.allowance
        route = sandbox.route(shown.upstream, request.call_number, allowed)
        place = await sandbox.place()
        call = self._call(place, request, shown, route.base_url or shown.base_url)
        command = self.command(call, self._worker.program(), self._spec.runner.meta.model)
        launch = CliLaunch(command, shown, route, place.work, self._timeout_sec)
        ran = await sandbox.run(launch, place.home)
        return self._reply(ran, shown, call.constraint)

    async def close(self) -> None:
        """End all processes and remove the sandbox."""
        if self._sandbox is not None:
            await self._sandbox.close()

    def _call(
        self, place: CliFolders, request: PlannerRequest, shown: CliCredential, base_url: str
    ) -> CliCall:
        system = "\n\n".join(m.content for m in request.messages if m.role == "system")
        texts = [message.content for message in request.messages if message.role != "system"]
        if place.repo is not None:
            texts.append(f"The repository is {place.repo}. You can read it, and cannot change it.")
        prompt = "\n\n".join(texts)
        constraint = self._schema.of(request)
        return CliCall(place, request, system, prompt, shown, base_url, constraint)

    # -- outcome of a call ------------------------------------------------------------------------

    def _reply(self, ran: CliOutcome, shown: CliCredential, constrained: Constraint) -> Reply:
        answer = self.read(ran.result.stdout) if ran.result else CliAnswer()
        reply = self._figures(answer, ran.usage)
        last = ran.usage.last_error
        if last is not None and last.error == "replay":
            raise ReplayMismatch(last.detail, remedy="record the run again")
        if ran.result is None:
            raise PlannerUnavailable(
                f"The planner {self.kind} gave no answer within {self._timeout_sec:g} s.",
                retryable=True,
                kind=BY_CLASS[last.error] if last and last.error else "network",
                spent=reply,
            )
        # A CLI may end well though its last model call failed: trust the gateway instead.
        if answer.completed and last is None:
            return reply
        if ran.result.exit_code == NOT_FOUND and not ran.usage.total.calls:
            raise self._missing("in its sandbox")
        failure = self._failure(answer, ran.result.stderr, last)
        refused = last.status in (400, 422) if last is not None else failure.kind == "protocol"
        if refused and self._schema.is_refused(constrained, failure.message):
            raise PlannerUnavailable(
                f"The planner {self.kind}: {capped(failure.message)}",
                retryable=True,
                kind=failure.kind,
                spent=reply,
                other_form=True,
            )
        raise self._unavailable(failure, shown, reply)

    @property
    def subscribed(self) -> bool:
        """Whether calls are covered by a subscription."""
        return self._access.login is not None

    def _figures(self, answer: CliAnswer, used: Usage) -> Reply:
        """The reply with its usage: as the gateway counted it, else as the CLI reports it."""
        reply = Reply(
            answer.text,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            cached_tokens=answer.cached_tokens,
            usd=None if self.subscribed else answer.usd,
            model=answer.model or self._spec.runner.meta.model or "",
            known="reported" if answer.input_tokens or answer.output_tokens else "unknown",
            subscription=self.subscribed,
        )
        counted = used.total
        if not counted.calls or counted.unknown_calls:
            return reply
        return replace(
            reply,
            input_tokens=counted.input_tokens,
            output_tokens=counted.output_tokens,
            cached_tokens=counted.cached_tokens,
            usd=None if self.subscribed else counted.price,
            model=max(used.by_model, key=lambda name: used.by_model[name].calls or 0),
            known="counted",
        )

    def _failure(self, answer: CliAnswer, stderr: bytes, last: ModelCall | None) -> Failure:
        """Return why there is no answer: the gateway knows best, then the CLI's own message."""
        if last is not None and last.error is not None:
            detail = last.detail or f"its model calls failed ({last.error})"
            return Failure(BY_CLASS[last.error], detail, last.reset_at or "")
        words = answer.error or stderr.decode("utf-8", "replace").strip()
        words = words or "it ended without an answer"
        found = failure_of(words, datetime.now(UTC), kind=answer.kind)
        return found or Failure("protocol", words)

    def _unavailable(
        self, failure: Failure, shown: CliCredential, spent: Reply
    ) -> PlannerUnavailable:
        retry = failure.kind in OUTAGES
        wish = seconds_until(failure.reset_at, datetime.now(UTC))
        if failure.kind == "auth" and shown.fingerprint and not self._refused:
            # The token may have been revoked; a fresh one is fetched once.
            self._refused, retry, wish = shown.fingerprint, True, 0.0
        return PlannerUnavailable(
            f"The planner {self.kind}: {capped(failure.message)}",
            retryable=retry,
            retry_after=wish,
            kind=failure.kind,
            reset_at=failure.reset_at,
            spent=spent,
        )

    def _missing(self, where: str) -> InfraError:
        probe = self._worker.probe()
        return PlannerMissing(
            f"The planner {self.kind}: {Path(self._worker.program()).name} is not found {where}.",
            path="runner.meta.kind",
            remedy=probe.cure or "agentrunner doctor",
            nothing_spent=True,
        )


def _program_of(kind: str, spec: TaskSpec) -> Worker:
    """Return the worker adapter of the same CLI: it knows the program, its keys and its provider.

    If the task names a program for such a worker, that program is used.
    """
    workers = spec.runner.workers or [spec.runner.worker]
    named = next((one.command for one in workers if one.kind == kind and one.command), None)
    program = WorkerSpec(kind=kind, command=named)
    return make_worker(spec.with_runner(worker=program, workers=[]))


def planner_access(
    spec: TaskSpec, worker: Worker, environ: Mapping[str, str], *, replays: bool
) -> CliAccess:
    """Return the CLI's credential: its key, else its login, unless the task names one of them.

    Raises InfraError where there is neither, UsageError for settings that clash. A run that
    `replays` a recording needs neither.
    """
    meta = spec.runner.meta
    key_name = next((name for name in worker.key_names if environ.get(name, "").strip()), "")
    login = None
    if meta.auth == "login" or (meta.auth is None and not key_name and not replays):
        login = _usable_login(spec, worker, environ)
    elif not key_name and not replays:
        raise _no_key(worker)
    url = _base_url(meta, worker, environ)
    return CliAccess(worker, url, key_name, environ.get(key_name, "").strip(), login, url)


def _base_url(planner: PlannerSpec, worker: Worker, environ: Mapping[str, str]) -> str:
    name = URL_NAMES[worker.wire]
    base_url = planner.base_url or environ.get(name) or worker.provider_url
    from_file = bool(planner.base_url)
    place = "runner.meta.base_url" if from_file else name
    checked_url(base_url, place, from_file=from_file, plain=planner.allow_plain_http)
    return base_url


def _usable_login(spec: TaskSpec, worker: Worker, environ: Mapping[str, str]) -> Login:
    named = spec.runner.meta.auth == "login"
    if spec.runner.meta.base_url and not named:
        raise _no_key(worker)
    login = find_login(spec, "meta", worker, environ)
    state = login.describe()
    if state.usable:
        return login
    if named:
        raise not_logged_in(f"{state.text}.", state.cure)
    raise _no_key(worker, f" {state.text}.", state.cure)


def _no_key(worker: Worker, login: str = "", cure: str = "") -> InfraError:
    names = worker.key_names
    return NoPlannerKey(
        f"The planner {worker.kind} has neither a key nor a login here: "
        f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'} not set.{login}",
        remedy=f"export {names[0]}=…" + (f", or {cure}" if cure else ""),
        nothing_spent=True,
    )
