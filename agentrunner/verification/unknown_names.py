"""Names that no product can guess, for tests and values that an examination adds to it."""

from __future__ import annotations

import hashlib
import secrets

from agentrunner.text.unicode import to_bytes


class UnknownNames:
    """Makes names, each once; seeded alike, it makes the same ones in the same order.

    So an examination that was killed asks the same questions again, and knows their answers.
    """

    def __init__(self) -> None:
        self.seed(secrets.token_bytes(16))

    def seed(self, seed: bytes) -> None:
        """Begin anew from these bytes, at most 64, which nobody else may know."""
        self._seed, self._made = seed, 0

    def make(self) -> str:
        """Return eight hexadecimal digits."""
        self._made += 1
        return hashlib.blake2b(to_bytes(str(self._made)), key=self._seed).hexdigest()[:8]
