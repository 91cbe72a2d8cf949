"""A planner's looks at a repository, answered for one candidate after the other."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence

from agentrunner.discovery.seeing.looks import Looker
from agentrunner.protocol import Look
from agentrunner.storage.failpoints import reach


class Looking(ABC):
    """Answers looks; what was looked at is forgotten when another candidate is asked."""

    looker: Looker | None = None
    answers: tuple[str, ...] = ()
    """What it was shown so far."""

    @abstractmethod
    def make_looker(self) -> Looker:
        """Return what answers the looks, made at the first look. Blocks; may raise GitFailed."""

    def begin(self) -> None:
        """Forget earlier looks: another candidate is asked, and it has seen none of them."""
        self.looker, self.answers = None, ()

    async def answer(self, looks: Sequence[Look]) -> str:
        """Return what the planner wants to see; raise what `make_looker` raises."""
        found = await asyncio.to_thread(self._answer, looks)
        reach("after_look")
        return found

    def _answer(self, looks: Sequence[Look]) -> str:
        if self.looker is None:
            self.looker = self.make_looker()
        found = self.looker.answer(looks)
        self.answers = (*self.answers, found)
        return found
