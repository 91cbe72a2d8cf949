"""A request that goes out and the reply that comes back, whoever answers: a provider or a tape."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Outgoing:
    """A request as it leaves the gateway, but for the key."""

    method: str
    path: str
    """Below the provider's base URL, without the query."""
    query: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    model: str
    """As the request names it; "" where it names none."""
    metered: bool
    """False for what costs nothing; such calls may come in any order or not at all."""


@dataclass(frozen=True)
class Incoming:
    """A reply whose body is still to come."""

    status: int
    headers: Sequence[tuple[str, str]]
    chunks: AsyncIterator[bytes]
    """Raises Unreachable where the body breaks off."""

    @property
    def lower(self) -> Mapping[str, str]:
        """The headers by their names in lower case; of repeated ones the last."""
        return {name.lower(): value for name, value in self.headers}


class UpstreamUnreachable(Exception):
    """There is no reply, or no more of it; the text is a sentence about why."""


class Mismatch(Exception):
    """A request is not the recorded one; the text says which and where they differ."""


class Provider(Protocol):
    """Who answers."""

    def ask(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """Send the request; entering waits for the reply's head.

        Raises Unreachable, and Mismatch where a tape answers.
        """
