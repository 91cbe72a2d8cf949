"""Read lines that a person types while other work continues in the same event loop."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import termios
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from agentrunner.commands.question_prompt import at_words
from agentrunner.text.terminal import cell_width


class LineReader:
    """Reads one line whenever one is requested.

    It uses a thread: `readline` allows editing and history, but only in a blocking call. The thread
    is a daemon, since only a key press ends that call.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wanted: asyncio.Future[str | None] | None = None
        self._prompt = ""
        self._asked = threading.Semaphore(0)
        threading.Thread(target=self._serve, daemon=True, name="lines").start()

    async def read(self, prompt: str) -> str | None:
        """Return the next line without its end; None at the end of input."""
        if self._wanted is None or self._wanted.done():
            self._wanted = self._loop.create_future()
            above, _, self._prompt = at_words(prompt, sys.stdout).rpartition("\n")
            if above:
                sys.stdout.write(f"{above}\n")
            self._asked.release()
        return await asyncio.shield(self._wanted)

    def leave(self) -> None:
        """Want no line any more; what is told from now on has no prompt after it."""
        if self._wanted is not None:
            self._wanted.cancel()

    def tell(self, text: str) -> None:
        """Write lines above the one that is being typed."""
        typing = self._wanted is not None and not self._wanted.done()
        again = f"{self._prompt}{_buffer()}" if typing else ""
        blank = f"\r{' ' * cell_width(again)}\r" if typing else ""
        sys.stdout.write(f"{blank}{text}\n{again}")
        sys.stdout.flush()

    def _serve(self) -> None:
        while self._asked.acquire():
            line = _read_line(self._prompt)
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._give, line)

    def _give(self, line: str | None) -> None:
        assert self._wanted is not None
        if not self._wanted.done():
            self._wanted.set_result(line)


def _buffer() -> str:
    """Return what is typed so far."""
    with contextlib.suppress(ImportError):
        import readline

        return readline.get_line_buffer()
    return ""


def _read_line(prompt: str) -> str | None:
    try:
        return input(prompt)
    except (EOFError, OSError, UnicodeDecodeError):
        return None


def _complete_first_word(words: Sequence[str]) -> None:
    """Have Tab complete the first word of a line; importing readline makes input() edit lines."""
    import readline

    def complete(text: str, state: int) -> str | None:
        fitting = [word for word in words if text and word.startswith(text)]
        return fitting[state] if readline.get_begidx() == 0 and state < len(fitting) else None

    readline.set_completer_delims(" \t\n")
    readline.set_completer(complete)
    if "libedit" in (readline.__doc__ or ""):
        readline.parse_and_bind("bind ^I rl_complete")
    else:
        readline.parse_and_bind("tab: complete")
        readline.parse_and_bind("set show-all-if-ambiguous on")


@asynccontextmanager
async def typed_lines(words: Sequence[str] = ()) -> AsyncIterator[LineReader]:
    """Yield a reader of standard input; at the end restore the terminal, even in mid-line.

    Tab completes `words` at the beginning of a line.
    """
    with contextlib.suppress(ImportError):
        _complete_first_word(words)
    before: list[Any] | None = None
    with contextlib.suppress(termios.error, OSError, ValueError):
        before = termios.tcgetattr(sys.stdin.fileno())
    try:
        yield LineReader()
    finally:
        if before is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
