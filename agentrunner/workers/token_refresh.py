"""Asks an issuer for new tokens. Nothing of its answer is repeated except its own error codes."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from agentrunner.config.hosts import is_loopback
from agentrunner.text.lazy_regex import lazy_regex

TIMEOUT_SEC = 30.0
_MOST_BYTES = 1 << 20
_CODE = lazy_regex(r"[a-z][a-z_]{0,60}")


class RefreshRefused(Exception):
    """The issuer does not accept this refresh token. The text is for people."""


class IssuerUnreachable(Exception):
    """There was no answer, or no usable one. The text is for people."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would pass the refresh token to somebody else."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """Follow none: a redirect is then an error like any other status."""


def is_safe_url(url: str) -> bool:
    """Whether a token may be sent there: https, or http on this very machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if not host or parts.username is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def refreshed(url: str, body: Mapping[str, str]) -> dict[str, Any]:
    """Return the issuer's answer; raises RefreshRefused or IssuerUnreachable.

    Blocks, at most TIMEOUT_SEC per step.
    """
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json"},
    )
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SEC) as reply:
            data = json.loads(reply.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (400, 401, 403):
                raise RefreshRefused(
                    _code_of(error) or f"its issuer answers {error.code}"
                ) from None
        raise IssuerUnreachable(f"it answers {error.code}") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise IssuerUnreachable(
            getattr(reason, "strerror", None) or type(reason).__name__
        ) from None
    if not isinstance(data, dict):
        raise IssuerUnreachable("its answer is no JSON object")
    return data


def _code_of(error: urllib.error.HTTPError) -> str:
    """Return the error code in {"error": {"code": "refresh_token_reused"}} or {"error": "…"}."""
    try:
        reply = json.loads(error.read(_MOST_BYTES))
    except (OSError, HTTPException, ValueError):
        return ""
    reply = reply.get("error") if isinstance(reply, dict) else None
    code = reply.get("code") if isinstance(reply, dict) else reply
    return code.replace("_", " ") if isinstance(code, str) and _CODE.fullmatch(code) else ""
