"""Whether a text, a host or an address is among those that a policy allows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from urllib.parse import SplitResult, urlsplit

from agentrunner.config.hosts import AllowedHost, parse_host
from agentrunner.config.spec import TaskSpec

_SHOWN = 8


def matches(text: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the text; only `*` is special: any text."""
    plain = (pattern.replace("[", "[[]").replace("?", "[?]") for pattern in patterns)
    return any(fnmatchcase(text, pattern) for pattern in plain)


def enumeration(words: Sequence[str]) -> str:
    """Return the words for a sentence; only the first few if there are many."""
    shown = ", ".join(words[:_SHOWN])
    return f"{shown}, …" if len(words) > _SHOWN else shown or "none"


def may_reach(spec: TaskSpec, host: str) -> bool:
    """Whether a person may still allow this host ("host:port"), by every policy of the run."""
    return all(covered(host, caps) for caps in spec.host_caps)


def covered(host: str, caps: Iterable[str]) -> bool:
    """Whether one of `caps` covers everything that `host` may mean; written as in a task file."""
    wanted = parse_host(host)
    return any(_covers(parse_host(cap), wanted) for cap in caps)


def _covers(cap: AllowedHost, wanted: AllowedHost) -> bool:
    """Whether `cap` covers `wanted`. A pin must be the policy's: it leads to a private address."""
    if cap.address != wanted.address or cap.port != wanted.port:
        return False
    if wanted.wildcard:
        below = wanted.name == cap.name or wanted.name.endswith(f".{cap.name}")
        return cap.wildcard and below
    return cap.covers(wanted.name, wanted.port)


def is_below(url: str, root: str) -> bool:
    """Whether both share scheme, host and port, and the path is the root's or below it."""
    try:
        one, other = urlsplit(url), urlsplit(root)
        same = _origin(one) == _origin(other)
    except ValueError:
        return False
    base = other.path.rstrip("/")
    inside = one.path.rstrip("/") == base or one.path.startswith(f"{base}/")
    return same and inside and one.username is None and not _may_lead_up(one.path)


def _may_lead_up(path: str) -> bool:
    """Whether some client finds ".." in it: many decode %2e, and treat a backslash as a slash."""
    plain = path.lower().replace("%2e", ".").replace("%5c", "/").replace("\\", "/")
    return "/.." in plain.replace("%2f", "/")


def _origin(url: SplitResult) -> tuple[str, str | None, int | None]:
    return url.scheme, url.hostname, url.port or {"https": 443, "http": 80}.get(url.scheme)
