"""The new tree without the work, in whole or in part: what its tests say there."""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from agentrunner.verification.evidence.target import Measured
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.syntax.emptied_functions import (
    changed_functions,
    empty_functions,
    has_its_old_body,
    with_former_functions,
    without_classes,
)
from agentrunner.verification.syntax.emptied_text_functions import (
    emptied_in_text,
    family_of_functions,
)
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.stand_ins import only_raising
from agentrunner.verification.syntax.tokens import lexical_family
from agentrunner.verification.world import SnapshotTrees

Change = Callable[[str, bytes | None, bytes], bytes | None]
"""From a file's path, its old and its new text to another text; None leaves it as it is."""


class TreesWithoutWork(Struct, frozen=True):
    """Makes trees in which functions that the work added or altered do nothing."""

    world: SnapshotTrees

    async def emptied(
        self, only: str = "", *, added: bool = False, memory: bool = False, text: bool = False
    ) -> str | None:
        """The new tree with empty bodies in functions that were added or altered, or None.

        With `only`, in those of this last name. With `added`, altered functions stay as they are.
        With `text`, what the bodies said stays as a comment.
        With `memory`, functions in C that return a pointer return memory full of zeros.
        """
        change = partial(_with_empty_functions, only=only, added=added, memory=memory, text=text)
        return await asyncio.to_thread(self._changed, change)

    async def without_code(self, asked: str) -> str | None:
        """The new tree in which no function of the code that `asked` names does anything.

        That is code which the work left alone, named by its path or its name; None where there is
        none.
        """
        world = self.world

        def emptied() -> str | None:
            old = world.snapshots.list(world.old)
            stood = [
                path
                for path, entry in world.snapshots.list(world.new).items()
                if old.get(path) == entry
                and language_of(path) is not None
                and _is_named(asked, posixpath.basename(path))
            ]
            return self._changed(lambda path, _, now: _with_empty_functions(path, None, now), stood)

        return await asyncio.to_thread(emptied)

    async def without_data(self, asked: str) -> str | None:
        """The new tree with files that are no code, and that `asked` names, as before or empty.

        None where the work changed none.
        """
        world = self.world
        named = [
            path
            for path in world.product
            if _is_named(asked, posixpath.basename(path))
            and not (family_of(path) or lexical_family(path, world.now(path) or b""))
        ]
        if not named:
            return None
        return await asyncio.to_thread(self._changed, lambda _, was, __: was or b"", named)

    async def with_former(self, tree: str, members: Mapping[str, Collection[str]]) -> str | None:
        """This tree with these methods (`Cart.total`) of Python files as they were before the run.

        New ones are left out. None where one of them is not in the text of its file.
        """

        def change(path: str, text: bytes) -> bytes | None:
            return with_former_functions(self.world.was(path), text, members[path])

        return await asyncio.to_thread(self._with_each, tree, members, change)

    async def without_classes(self, classes: Mapping[str, Collection[str]]) -> str | None:
        """The new tree without these classes of Python files; None where one is not there."""

        def change(path: str, text: bytes) -> bytes | None:
            return without_classes(text, classes[path])

        return await asyncio.to_thread(self._with_each, self.world.new, classes, change)

    def _with_each(
        self, tree: str, paths: Iterable[str], change: Callable[[str, bytes], bytes | None]
    ) -> str | None:
        """A tree with a change in each of these files; None where one of them has none."""
        read = self.world.snapshots.reader(tree)
        texts: dict[str, bytes] = {}
        for path in paths:
            made = change(path, read(path) or b"")
            if made is None:
                return None
            texts[path] = made
        return self.world.snapshots.with_texts(tree, texts)

    async def is_empty(self) -> bool:
        """Whether functions were added or altered, and none of them does anything."""

        def has_functions() -> bool:
            return any(
                not has_its_old_body(before, one)
                for _, language, before, after in self.world.sources()
                for one in changed_functions(before, after, language)
            )

        return await asyncio.to_thread(has_functions) and await self.emptied() is None

    async def only_raising(self, asked: str) -> str | None:
        """The new tree with changed functions raising at once where they raise in place of work,
        and empty elsewhere; None where no function does that. `asked` may ask for exceptions."""
        found: list[str] = []

        def change(path: str, before: bytes | None, after: bytes) -> bytes | None:
            language = language_of(path)
            if language is None:
                return _with_empty_functions(path, before, after)
            made, raises = only_raising(before, after, language, asked)
            found.extend([path] if raises else [])
            return made

        tree = await asyncio.to_thread(self._changed, change)
        return tree if found else None

    def _changed(self, change: Change, paths: Sequence[str] | None = None) -> str | None:
        """The new tree with a change in each of these files, by default those of the product; None
        where there is none."""
        world = self.world
        entries = world.snapshots.list(world.new)
        changed: dict[str, bytes] = {}
        for path in world.product if paths is None else paths:
            after = world.now(path)
            if after is None or path not in entries:
                continue
            made = change(path, world.was(path), after)
            if made is not None:
                changed[path] = made
        return world.snapshots.with_texts(world.new, changed) if changed else None


def _is_named(asked: str, name: str) -> bool:
    """Whether a text names a file: `luhn.py`, or `luhn` where it is in back quotes."""
    stem = re.escape(name.partition(".")[0])
    return bool(re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)|`{stem}`", asked))


def turns_red(ran: Measured, names: Sequence[str]) -> bool:
    """Whether any of these tests, which pass with the work, fails here or cannot be loaded.

    One that is left out here says nothing.
    """
    if ran.results is None:
        return not ran.passed
    found = [ran.results.named(name) for name in names]
    return any(
        not tests or any(test.outcome not in ("passed", "skipped") for test in tests)
        for tests in found
    )


def _with_empty_functions(
    path: str,
    before: bytes | None,
    after: bytes,
    only: str = "",
    *,
    added: bool = False,
    memory: bool = False,
    text: bool = False,
) -> bytes | None:
    """A file whose changed functions do nothing; None where none is known to have changed."""
    language = language_of(path)
    if language is not None:
        made = empty_functions(before, after, language, only, added=added, text=text)
        return made.source if made is not None else None
    if (family := family_of_functions(path, after)) is None:
        return None
    return emptied_in_text(before, after, family, only, added=added, memory=memory)
