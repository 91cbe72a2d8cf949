"""`doctor --planner`: one small call of the configured planner, and what is wrong with it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrunner.config.kinds import planner_kind
from agentrunner.errors import AgentRunnerError, InfraError, UsageError
from agentrunner.screens.doctor import DoctorItem, DoctorReport

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec
    from agentrunner.planners.base import PlannerClient, PlannerUnavailable
    from agentrunner.planners.probe import ProbedCall
    from agentrunner.planners.servers import Server

PROMPT_TOKENS = 4000
"""Approximate size of a run's first question."""
ROOM_TOKENS = 16_384
"""A context that is large enough for a run of several rounds."""
SLOW_SEC = 120
CONNECT_SEC = 2.0
"""Longest wait for a connection to a server on this machine or in its network, with all addresses
that its name has and the time until they are found."""
NOT_ASKED, TRY_PLANNER = "planner asked", "agentrunner doctor --planner   asks it once"
SCENE = "first-step.en"
"""Played by planners that are programs: it is their smallest possible call."""
CURES: Mapping[str, str] = {
    "auth": "set {key} to a key that is good",
    "model": "name a model that it has: --set runner.meta.model=NAME, or AGENTRUNNER_META_MODEL",
    "network": "see whether its server is up at {url}",
    "server": "see the log of its server at {url}; a model too large for the memory fails so",
    "overload": "its server is overloaded: try again later",
    "quota": "raise the quota, or wait",
    "rate_limit": "raise the quota, or wait",
    "context": "give its server a longer context",
    "request": "another model or server may take the request",
}


def probe_planner(environ: Mapping[str, str], state_dir: Path, policy: Path | None) -> DoctorReport:
    """Report what a call of the planner showed; sends at least one request. Blocks."""
    from agentrunner.commands.planner_settings import no_planner, settled_planner

    try:
        settled, why = settled_planner(environ, state_dir, policy)
        if not why:
            raise no_planner()
        head, findings, ready = asyncio.run(_probe(settled, why, environ))
    except (InfraError, UsageError) as error:
        head, findings, ready = "The planner", [_failed(error)], False
    verdict = "The planner answers." if ready else "The planner cannot be used as it is set."
    after = "agentrunner planners try   shows what it is fit for" if ready else ""
    return DoctorReport(
        head, [("Planner (requests were sent to it)", findings)], verdict, ready, next=after
    )


def connection_item(settled: TaskSpec, environ: Mapping[str, str]) -> DoctorItem | None:
    """Return whether the planner's server takes a connection, if it is on this machine or near it,
    and that nothing was sent to it; None for a planner without a model. Blocks.
    """
    if not planner_kind(settled.runner.meta.kind).calls_model:
        return None
    url, near = _address(settled, environ)
    place = _host_and_port(url) if near else None
    if place is None:
        return DoctorItem("", NOT_ASKED, "nothing was sent to its model", TRY_PLANNER)
    where = f"{place[0]}:{place[1]}"
    try:
        _connect(place)
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        cure = f"start its server, or correct its address {url}, then agentrunner doctor --planner"
        return DoctorItem("FAIL", "planner", f"its server {where} takes no connection: {why}", cure)
    text = f"{where} takes a connection; nothing was sent to its model"
    return DoctorItem("", NOT_ASKED, text, TRY_PLANNER)


def _connect(place: tuple[str, int]) -> None:
    """Connect, and hang up; raise OSError, TimeoutError after CONNECT_SEC. Blocks.

    On a thread of its own: nothing ends a search for a name's addresses before its time, and each
    of them would be waited for.
    """
    ended: Future[None] = Future()

    def work() -> None:
        try:
            socket.create_connection(place, CONNECT_SEC).close()
        except (OSError, ValueError) as error:
            ended.set_exception(error)
        else:
            ended.set_result(None)

    threading.Thread(target=work, daemon=True, name="connect").start()
    try:
        ended.result(CONNECT_SEC)
    except TimeoutError as error:
        raise TimeoutError(f"no answer within {CONNECT_SEC:g} s") from error


def _host_and_port(url: str) -> tuple[str, int] | None:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        port = parts.port or {"https": 443}.get(parts.scheme, 80)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname else None


def _failed(error: AgentRunnerError) -> DoctorItem:
    return DoctorItem("FAIL", "planner", error.message, error.remedy)


async def _probe(
    settled: TaskSpec, why: str, environ: Mapping[str, str]
) -> tuple[str, list[DoctorItem], bool]:
    from agentrunner.planners.factory import make_planner

    if not planner_kind(settled.runner.meta.kind).is_chat_model:
        return await _play_scene(settled, why, environ)
    client = make_planner(settled, environ)
    try:
        head = f"{client.describe()}: {why}"
        findings = [one async for one in _try_call(client, settled, environ)]
    finally:
        await client.close()
    return head, findings, all(one.mark != "FAIL" for one in findings)


async def _play_scene(
    settled: TaskSpec, why: str, environ: Mapping[str, str]
) -> tuple[str, list[DoctorItem], bool]:
    """Let a planner that is no chat model answer one scene, in its own sandbox."""
    from agentrunner.scenes.playing import Company, play_all
    from agentrunner.scenes.scene import load_scenes

    company = Company(settled, environ)
    head = f"{company.describe()}: {why}"
    try:
        [played] = [one async for one in play_all(load_scenes(only=[SCENE]), settled, environ)]
    except InfraError as error:
        return head, [_failed(error)], False
    if played.grade == "unusable":
        return head, [DoctorItem("FAIL", "answer", played.why, "agentrunner planners try")], False
    text = f"usable, after {played.seconds:.1f} s"
    cost = f"; {played.input_tokens:,} tokens in, {played.output_tokens:,} out"
    return head, [DoctorItem("ok", "answer", text + cost * bool(played.input_tokens))], True


async def _try_call(client: PlannerClient, settled: TaskSpec, environ: Mapping[str, str]) -> Any:
    """Yield the facts that one call of a chat model shows, and those its server reports."""
    from agentrunner.planners.base import PlannerUnavailable
    from agentrunner.planners.probe import try_once

    url, near = _address(settled, environ)
    try:
        tried = await try_once(client)
    except PlannerUnavailable as failure:
        server = await _server(url, settled, near=near)
        yield _refusal(failure, client, url, server)
        return
    server = await _server(url, settled, near=near)
    for finding in _facts(tried, server, settled):
        yield finding


def _address(settled: TaskSpec, environ: Mapping[str, str]) -> tuple[str, bool]:
    from urllib.parse import urlsplit

    from agentrunner.planners.timeouts import is_near

    meta = settled.runner.meta
    traits = planner_kind(meta.kind)
    url = meta.base_url or environ.get(traits.url_variable) or traits.default_url
    return url, is_near(urlsplit(url).hostname or "")


async def _server(url: str, settled: TaskSpec, *, near: bool) -> Server:
    from agentrunner.planners.servers import Server, look_at

    if not near:  # a provider documents the length of its contexts
        return Server()
    return await asyncio.to_thread(look_at, url, settled.runner.meta.model or "")


def _refusal(
    failure: PlannerUnavailable, client: PlannerClient, url: str, server: Server
) -> DoctorItem:
    from agentrunner.planners.faults import reason_of, words_of_failure

    reason = reason_of(failure)
    key = str(getattr(client, "key_name", "")) or "its key"
    cure = CURES.get(reason, "").format(key=key, url=url or "its provider")
    if reason == "model" and server.models:
        cure = f"--set runner.meta.model=NAME; it has {', '.join(server.models)}"
    return DoctorItem("FAIL", "answer", f"{words_of_failure(failure)}. {failure.message}", cure)


def _facts(tried: ProbedCall, server: Server, settled: TaskSpec) -> Iterator[DoctorItem]:
    model = tried.reply.model or settled.runner.meta.model or "a model"
    who = f"{server.name}, {model}" if server.name else model
    yield DoctorItem("ok", "answer", f"{who}, after {tried.whole_sec:.1f} s")
    yield _speed(tried)
    yield _schema(tried, settled)
    if tried.reply.known != "counted":
        text = "it tells no tokens: budgets of tokens and money cannot be held"
        yield DoctorItem("WARN", "usage", text)
    yield from _context(tried, server, settled.runner.meta.context_tokens)


def _speed(tried: ProbedCall) -> DoctorItem:
    first = PROMPT_TOKENS / tried.read_per_sec
    text = f"reads about {tried.read_per_sec:,.0f} tokens a second"
    if tried.written_per_sec is not None:
        text += f" and writes {tried.written_per_sec:,.0f}"
    text += f"; a first question of a run ({PROMPT_TOKENS:,} tokens) waits about {first:.0f} s"
    return DoctorItem("WARN" if first > SLOW_SEC else "ok", "speed", text)


def _schema(tried: ProbedCall, settled: TaskSpec) -> DoctorItem:
    meta = settled.runner.meta
    if planner_kind(meta.kind).takes_schema == "" or meta.format == "yaml":
        return DoctorItem("--", "schema", "none is sent; the form is asked for in words")
    if tried.enforced:
        return DoctorItem("ok", "schema", "enforced: answers have the form that is asked for")
    why = "refused" if any("schema" in one or "format" in one for one in tried.refused) else "taken"
    text = f"{why}, and not enforced; answers are checked all the same, and asked for again"
    return DoctorItem("WARN", "schema", text)


def _context(tried: ProbedCall, server: Server, wanted: int | None) -> Iterator[DoctorItem]:
    """Yield how long the context is: as the task's settings say (`wanted`), else the server."""
    if tried.cut is not None:
        cure = server.setting(tried.cut.wanted) if server.name else ""
        yield DoctorItem("FAIL", "context", tried.cut.sentence(), cure)
        return
    setting = "runner.meta.context_tokens"
    if wanted is not None and server.context is not None and wanted > server.context:
        text = f"{server.context:,} tokens, and {setting} says {wanted:,}: prompts would not fit"
        yield DoctorItem("WARN", "context", text, f"{setting}: {server.context}, or leave it out")
        return
    if wanted is not None:
        yield DoctorItem("ok", "context", f"{wanted:,} tokens, as {setting} says")
        return
    if server.context is None:
        if server.name:
            text = f"{server.name} does not tell how long it is; {setting}: TOKENS says it"
            yield DoctorItem("--", "context", text)
        return
    text = f"{server.context:,} tokens"
    if server.context >= ROOM_TOKENS:
        yield DoctorItem("ok", "context", text)
        return
    text += f": a run asks {PROMPT_TOKENS:,} at first, and more with each round"
    yield DoctorItem("WARN", "context", text, server.setting(ROOM_TOKENS))
