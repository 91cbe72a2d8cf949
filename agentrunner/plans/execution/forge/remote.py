"""Which forge a repository's remote is on, and the token for it: from its address. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from agentrunner.config.hosts import is_loopback
from agentrunner.errors import UsageError
from agentrunner.errors.plans import ForgeTokenMissing, UnknownForge
from agentrunner.text.lazy_regex import lazy_regex

Kind = Literal["github", "gitlab"]
TOKENS: dict[Kind, tuple[str, ...]] = {
    "github": ("GITHUB_TOKEN", "GH_TOKEN"),
    "gitlab": ("GITLAB_TOKEN",),
}
PUSH_USER: dict[Kind, str] = {"github": "x-access-token", "gitlab": "oauth2"}
NAMES: dict[Kind, str] = {"github": "GitHub", "gitlab": "GitLab"}
_OWN_SERVERS: dict[Kind, tuple[str, ...]] = {
    "github": ("GITHUB_SERVER_URL", "GITHUB_API_URL", "GH_HOST"),
    "gitlab": ("CI_SERVER_URL", "GITLAB_HOST"),
}
"""Variables that say which forge one's own server is."""
_PUBLIC: dict[Kind, tuple[str, ...]] = {
    "github": ("github.com", "ssh.github.com"),
    "gitlab": ("gitlab.com", "altssh.gitlab.com"),
}
_SHORT = lazy_regex(r"^(?:[\w.-]+@)?(?P<host>[\w.-]+):(?!/)(?P<path>.+)$")


@dataclass(frozen=True)
class Remote:
    """A project on a forge."""

    kind: Kind
    address: str
    """The address git pushes to, without a password; a user's name only for ssh."""
    origin: str
    """Scheme and host of a web address, "" for one of ssh."""
    api: str
    """GitHub: the root of its API. GitLab: the root of the server."""
    project: str
    """"owner/name"; on GitLab with all groups above."""
    token: str = field(repr=False)


def remote_of(address: str, environ: Mapping[str, str]) -> Remote:
    """Return the project behind a remote's address, with the token that the environment has for it.

    A token is only ever sent to the public servers of its forge, and to a server that the
    environment names as one's own. Raises UsageError (`forge-unknown`) and InfraError
    (`forge-token`).
    """
    url = _split(address)
    host = (url.hostname or "").lower()
    project = url.path.strip("/").removesuffix(".git")
    if url.scheme not in ("https", "http", "ssh") or not host or "/" not in project:
        raise _unknown("The remote `origin` is no address of a project on a forge.")
    kind = _kind(url, environ)
    if kind is None:
        raise _unknown(f"Nothing says whether {host} is a GitHub or a GitLab.")
    if url.scheme == "http" and not is_loopback(host):
        raise _unknown(f"A token would cross the network in the clear: {host} is not on https.")
    token = next((environ[name] for name in TOKENS[kind] if environ.get(name)), "")
    if not token:
        raise ForgeTokenMissing(
            f"There is no token for {NAMES[kind]} at {host}.",
            path="--pr",
            remedy=f"export {TOKENS[kind][0]}=…, with the right to push and to open requests",
        )
    place = host if url.port is None else f"{host}:{url.port}"
    web = url.scheme in ("https", "http")
    user = "" if web or not url.username else f"{url.username}@"
    origin = f"{url.scheme}://{place}" if web else ""
    return Remote(
        kind=kind,
        address=f"{url.scheme}://{user}{place}{url.path}",
        origin=origin,
        api=_api(kind, host, origin or f"https://{host}", environ),
        project=project,
        token=token,
    )


def _split(address: str) -> SplitResult:
    short = _SHORT.match(address)
    if short and "://" not in address:
        user = address.partition("@")[0] if "@" in address.partition(":")[0] else "git"
        address = f"ssh://{user}@{short['host']}/{short['path']}"
    try:
        url = urlsplit(address)
        url.port  # noqa: B018  (a bad one raises)
    except ValueError as error:
        raise _unknown("The remote `origin` has an address that cannot be read.") from error
    return url


def _kind(url: SplitResult, environ: Mapping[str, str]) -> Kind | None:
    host = (url.hostname or "").lower()
    for kind, hosts in _PUBLIC.items():
        if host in hosts:
            return kind
    for kind, names in _OWN_SERVERS.items():
        if any(_same_server(environ.get(name, ""), url) for name in names):
            return kind
    return None


def _same_server(named: str, url: SplitResult) -> bool:
    """Whether a variable names the server of an address; the port only matters on the web."""
    if not named:
        return False
    other = urlsplit(named if "://" in named else f"https://{named}")
    if (other.hostname or "").lower() != (url.hostname or "").lower():
        return False
    return url.scheme == "ssh" or _port(other) == _port(url)


def _port(url: SplitResult) -> int:
    return url.port or (80 if url.scheme == "http" else 443)


def _api(kind: Kind, host: str, origin: str, environ: Mapping[str, str]) -> str:
    """Return where the API is; a variable counts only for the server that it names."""
    if host in _PUBLIC[kind]:
        return "https://gitlab.com" if kind == "gitlab" else "https://api.github.com"
    here = urlsplit(f"ssh://{host}")
    if kind == "gitlab":
        own = environ.get("CI_SERVER_URL", "")
        return own.rstrip("/") if _same_server(own, here) else origin
    own, server = environ.get("GITHUB_API_URL", ""), environ.get("GITHUB_SERVER_URL", "")
    ours = own and (_same_server(own, here) or _same_server(server, here))
    return own.rstrip("/") if ours else f"{origin}/api/v3"


def _unknown(why: str) -> UsageError:
    return UnknownForge(
        why,
        path="--pr",
        remedy="git remote set-url origin https://…; for a server of your own also export"
        " GITHUB_SERVER_URL or CI_SERVER_URL",
    )
