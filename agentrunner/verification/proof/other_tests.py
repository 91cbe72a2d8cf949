"""Whether the worker's tests still pass in other words: where they accept no other value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from agentrunner.verification.evidence.target import Target
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.syntax.alternatives import narrowed
from agentrunner.verification.syntax.languages import language_of

ACCEPTS_MORE = "it passes by a value that it accepts beside the one that the task names"


class PlacedTests(Struct, frozen=True):
    """Tests of a command by the paths of their files."""

    exam: Examination
    target: Target
    places: Mapping[str, Sequence[str]]

    async def red_in_other_words(self, change: Callable[[str, bytes], bytes]) -> list[str]:
        """Those in files that `change` makes different, and that fail there.

        Raises what running in rooms raises.
        """
        world = self.exam.world
        files = await asyncio.to_thread(self.files)
        made = {path: change(path, text) for path, text in files.items()}
        changed = {path: text for path, text in made.items() if text != files[path]}
        if not changed:
            return []
        tree = await asyncio.to_thread(world.snapshots.with_texts, world.new, changed)
        names = [name for path in changed for name in self.places[path]]
        ran = await self.exam.run(self.target, tree, names)
        red = {test.name for test in ran.results.red} if ran.results is not None else set()
        return [name for name in names if name in red]

    def files(self) -> dict[str, bytes]:
        """Their files in the new tree, with what these say. Blocks."""
        world = self.exam.world
        entries = world.snapshots.list(world.new)
        texts = ((path, world.now(path)) for path in self.places if path in entries)
        return {path: text for path, text in texts if text is not None}


async def find_wider_answers(tests: PlacedTests, asked: str) -> dict[str, str]:
    """Tests that fail where they accept only what `asked` names; and why.

    Raises what running in rooms raises.
    """

    def narrow(path: str, text: bytes) -> bytes:
        language = language_of(path)
        return text if language is None else narrowed(text, language, asked)

    return dict.fromkeys(await tests.red_in_other_words(narrow), ACCEPTS_MORE)
