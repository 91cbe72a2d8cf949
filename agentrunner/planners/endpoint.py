"""The planner's endpoint: model and URL, from the task file, then the process environment."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from agentrunner.config.agents import PlannerSpec
from agentrunner.config.hosts import is_loopback
from agentrunner.config.kinds import planner_kind
from agentrunner.errors import AgentRunnerError
from agentrunner.errors.planners import BaseUrlRefused, InheritedUrlRefused
from agentrunner.planners.timeouts import TimeLimits, is_near, limits_of

DEFAULT_BASE_URL = "https://api.openai.com/v1"
PLAIN_HTTP = "runner.meta.allow_plain_http"
"""The setting that allows `http://` to other machines of a private network."""
PRIVATE = tuple(
    map(
        ipaddress.ip_network,
        (
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "169.254.0.0/16",
            "fd00::/8",
            "fe80::/10",
        ),
    )
)
"""Addresses that no router passes on to the internet."""


class Endpoint(Struct, frozen=True):
    """A model at an address."""

    model: str
    base_url: str
    host: str
    """With the port where the URL names one; shown to people."""
    loopback: bool
    plain: bool
    """Whether traffic is unencrypted."""
    near: bool
    """Whether it is a server on this machine or in its network."""
    limits: TimeLimits
    """For one attempt, from connecting to the last byte."""


def endpoint(meta: PlannerSpec, environ: Mapping[str, str]) -> Endpoint:
    """Return the endpoint in force; `environ` is the process's own, never a file's.

    Raises UsageError for a base URL of the task file and InfraError for one of the environment that
    must not be used, and InfraError for a META_TIMEOUT_SEC that is no number.
    """
    model = meta.model or planner_kind(meta.kind).usual_model(environ)
    from_file = meta.base_url
    base_url = from_file or environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL
    place = "runner.meta.base_url" if from_file else "OPENAI_BASE_URL"
    plain = meta.allow_plain_http
    host, loopback = checked_url(base_url, place, from_file=bool(from_file), plain=plain)
    bare = urlsplit(base_url).hostname or ""
    in_the_clear = urlsplit(base_url).scheme == "http"
    limits = limits_of(meta, environ, bare)
    return Endpoint(model, base_url, host, loopback, in_the_clear, is_near(bare), limits)


def near_server(
    kind: str, base_url: str | None, model: str | None, environ: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return URL and model of a planner whose server is on this machine or in its network.

    None for any other: a provider documents the length of its contexts.
    """
    traits = planner_kind(kind)
    url = base_url or environ.get(traits.url_variable) or ""
    try:
        near = is_near(urlsplit(url).hostname or "")
    except ValueError:
        return None
    name = model or environ.get(traits.model_variable(environ)) or ""
    return (url, name) if near else None


def checked_url(
    base_url: str, place: str, *, from_file: bool, plain: bool | None = None
) -> tuple[str, bool]:
    """Return the host (with the port where the URL names one) and whether it is this machine.

    `plain` is whether the person allows `http://` to a private address; None where that cannot be
    allowed. Raises UsageError for a URL `from_file` to which no key may go, else InfraError.
    """
    problem: type[AgentRunnerError] = BaseUrlRefused if from_file else InheritedUrlRefused

    def refuse(why: str, remedy: str) -> AgentRunnerError:
        return problem(
            f"The planner's base URL {why}.",
            path=place,
            remedy=remedy,
            nothing_spent=True,
        )

    try:
        url = urlsplit(base_url)
        host, port = url.hostname or "", url.port
    except ValueError:
        raise refuse("is not a URL", f"set {place} to something like {DEFAULT_BASE_URL}") from None
    if url.scheme not in ("http", "https") or not host:
        raise refuse("is not a web address", f"set {place} to something like {DEFAULT_BASE_URL}")
    if url.username is not None or url.password is not None:
        raise refuse("holds credentials", "put the key into OPENAI_API_KEY")
    loopback = is_loopback(host)
    if url.scheme == "http" and not loopback and not (plain and is_private(host)):
        remedy_text = "use https://"
        if plain is False and is_private(host):
            remedy_text += (
                f", or allow it for your own network: --set {PLAIN_HTTP}=true, or in your own"
            )
            remedy_text += " config.yaml"
        raise refuse(
            f"is http:// on {host}: the key would cross the network in the clear", remedy_text
        )
    return (f"{host}:{port}" if port else host), loopback


def is_private(host: str) -> bool:
    """Whether a host is an address of a private network; a name never is."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return any(address in network for network in PRIVATE)
