"""Test runs of one examination that have ended, kept until the examination has.

An examination can take dozens of runs. One that is killed begins again from its first question;
what has ended by then is taken from here, so that at most one run is repeated.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from msgspec import Struct, field
from pydantic import TypeAdapter, ValidationError

from agentrunner.git.process import replace
from agentrunner.storage.failpoints import reach
from agentrunner.storage.run_folder import make_private
from agentrunner.verification.evidence.target import Measured, Target

SECRET_BYTES = 16
LARGEST = 20_000_000
"""The most bytes of one run that are kept."""


class KeptRuns(Struct):
    """The runs of one step, by what ran; those of other steps are removed when it begins."""

    folder: Path
    _step: str = ""
    _asked: Counter[str] = field(default_factory=Counter)

    async def begin(self, *step: object) -> bytes:
        """Begin a step, which what it examines names, or go on with it, where it was killed.

        Returns bytes that are its secret: the same for as long as it is not ended.
        """
        self._step, self._asked = _digest(step), Counter()
        await asyncio.to_thread(self._clear, self._step)
        return await asyncio.to_thread(_secret, self.folder / self._step)

    async def end(self) -> None:
        """Forget all runs: the examination has ended."""
        await asyncio.to_thread(self._clear, "")

    async def run(
        self, target: Target, tree: str, only: Sequence[str], ask: Callable[[], Awaitable[Measured]]
    ) -> Measured:
        """Return what this run gave before, or else what `ask` gives now, and keep that.

        The same question asked twice is two runs: flaky tests are found so. Raises what `ask` does.
        """
        name = _digest([asdict(target), tree, list(only)])
        self._asked[name] += 1
        place = self.folder / self._step / f"{name}-{self._asked[name]}.json"
        known = await asyncio.to_thread(_read, place)
        if known is None:
            known = await ask()
            await asyncio.to_thread(_write, place, known)
            reach("mid_proof")
        return known

    def _clear(self, step: str) -> None:
        """Remove all steps but one. Blocks."""
        for other in self.folder.glob("*"):
            if other.name != step:
                shutil.rmtree(other, ignore_errors=True)


@cache
def _adapter() -> TypeAdapter[Measured]:
    return TypeAdapter(Measured)


def _digest(parts: object) -> str:
    # The 600 of a task file is 600.0 after a resume.
    plain = json.loads(json.dumps(parts), parse_int=float)
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:24]


def _secret(folder: Path) -> bytes:
    place = folder / "secret"
    try:
        known = place.read_bytes()
    except OSError:
        known = b""
    if len(known) != SECRET_BYTES:
        known = secrets.token_bytes(SECRET_BYTES)
        make_private(folder)
        replace(place, known)
    return known


def _read(place: Path) -> Measured | None:
    try:
        return _adapter().validate_json(place.read_bytes())
    except (OSError, ValidationError):
        return None


def _write(place: Path, measured: Measured) -> None:
    try:
        data = _adapter().dump_json(measured, warnings=False)
    except ValueError:  # a name that is not UTF-8: this run would be repeated
        return
    if len(data) <= LARGEST:
        make_private(place.parent)
        replace(place, data)
