"""A request that goes out and the reply that comes back, from a provider or a recording."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct


class Outgoing(Struct, frozen=True):
    """A request as it leaves the gateway, except for the key."""

    method: str
    path: str
    """Below the provider's base URL, without the query."""
    query: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    model: str
    """As the request names it; "" if it names none."""
    metered: bool
    """False for calls that cost nothing; they may come in any order or not at all."""


class Incoming(Struct, frozen=True):
    """A reply whose body is still to come."""

    status: int
    headers: Sequence[tuple[str, str]]
    chunks: AsyncIterator[bytes]
    """Raises UpstreamUnreachable if the body breaks off."""

    @property
    def lower(self) -> Mapping[str, str]:
        """The headers by their lower-case names; of repeated ones the last."""
        return {name.lower(): value for name, value in self.headers}


class UpstreamUnreachable(Exception):
    """There is no reply, or no more of it; the text is a sentence about why."""


class Mismatch(Exception):
    """A request is not the recorded one; the text says which and where they differ."""


class Provider(Protocol):
    """Something that answers requests."""

    def ask(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """Send the request; entering waits for the reply's head.

        Raises UpstreamUnreachable, and Mismatch if a recording answers.
        """
