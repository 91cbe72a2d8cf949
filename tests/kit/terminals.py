"""A program in a terminal of its own: what it shows is waited for, and keys are typed."""

from __future__ import annotations

import os
import select
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.kit.warm import warm_terminal

PATIENCE_SEC = 60.0


class Terminal:
    """A `python -m` or `python -c` with a terminal, from its start to its end."""

    def __init__(self, argv: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> None:
        self.seen = b""
        self._read_to = 0
        self._process, self._terminal = warm_terminal(argv, cwd, environ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Whoever is still there is hung up on."""
        if self._terminal >= 0:
            self._close()

    def until(self, text: str) -> str:
        """What came since the last look up to this text; fails where it does not come."""
        wanted = text.encode()
        while (place := self.seen.find(wanted, self._read_to)) < 0:
            if not self._more():
                raise AssertionError(f"{text!r} was not shown:\n{self._shown(self._read_to)}")
        since = self._read_to
        self._read_to = place + len(wanted)
        return self.seen[since : self._read_to].decode("utf-8", "replace")

    def type(self, keys: str) -> None:
        """Press keys; "\\r" is Enter, "\\x03" Ctrl-C."""
        os.write(self._terminal, keys.encode())

    def answer(self, keys: Sequence[str], prompts: tuple[str, ...]) -> None:
        """Press these one after another, each where something that is shown ends in a prompt."""
        ends = tuple(prompt.encode() for prompt in prompts)
        waiting = list(keys)
        while waiting and self._more():
            if self.seen.endswith(ends):
                self.type(waiting.pop(0))

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._more():
            pass
        return self._close()

    def _close(self) -> int:
        os.close(self._terminal)
        self._terminal = -1
        return self._process.wait()

    def _more(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], PATIENCE_SEC)
        if not ready:
            raise AssertionError(f"nothing more is shown:\n{self._shown(self._read_to)}")
        try:
            chunk = os.read(self._terminal, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += chunk
        return bool(chunk)

    def _shown(self, since: int) -> str:
        return self.seen[since:].decode("utf-8", "replace")
