"""Finds changes of tests and their data that only follow from what a PRD asks for. Pure.

No PRD names each test that imports what moves, nor the path of a snapshot.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.file_names import TEXTS
from agentrunner.verification.inputs.changes import ProofChange
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.wanted_moves import moves_in, renames_in
from agentrunner.verification.inputs.wanted_tests import (
    asked_by_kind,
    asks_to_adapt,
    differs_by_snapshots,
    says_it_becomes,
    wants_snapshots,
)
from agentrunner.verification.inputs.words_of_change import outside_of_checks
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.names import own_name
from agentrunner.verification.syntax.imports import without_imports
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.tokens import without_comments
from agentrunner.verification.test_changes.adapted_tests import (
    adapted_in,
    adapts_snapshots,
    exchanged_values,
    reworded_in,
)
from agentrunner.verification.test_changes.moved_imports import (
    asks_for_es_modules,
    imports_follow,
    modules_follow,
    parts_follow,
    places_follow,
)
from agentrunner.verification.test_changes.moves import MOST_COMPARED, asked_moves, says_the_same
from agentrunner.verification.test_changes.removed_tests import bare_tests, without_new_tests
from agentrunner.verification.test_changes.renamed_names import (
    QUOTED,
    WORD,
    names_follow,
    renamed_in_code,
)
from agentrunner.verification.test_changes.reworded_texts import WantedValues
from agentrunner.verification.test_changes.signatures import changed_heads, follows_heads
from agentrunner.verification.test_changes.stated_values import VALUE
from agentrunner.verification.trees import Changes

CODE_IN_TEXT = lazy_regex(r"__all__\s*\+?=\s*[\[(][^\])]*[\])]|[$#]\{[^{}\n]*\}")
"""Where names of code stand in quotes: what Python exports, and what a text gets put in."""
KEY = lazy_regex(r"(?m)(?:^|[{(,])[ \t]*(?:pub[ \t]+)?(\w+)[ \t]*(?::(?!:)|=(?![=>]))")
"""A field, or a value that is handed over by its name: what is written out may have that name."""


class FollowUps(Struct, frozen=True, dict=True):
    """Finds such changes among the changed inputs of the proof."""

    wanted: str
    """The text of what was asked for."""
    judged: Sequence[ProofChange]
    was: ReadFile
    """Reads a file as it was before the run; `now` reads it as it is."""
    now: ReadFile
    total: Changes

    def of_moves(self) -> set[str]:
        """Tests and settings whose only changes follow what the PRD moves or renames.

        These are imports of modules that moved, names in code, and paths in a Makefile. Where a
        package becomes one of ES modules, files of it import what they required.
        """
        deleted, added = sorted(self.total.deleted), sorted(self.total.added)
        moves = asked_moves(moves_in(self.wanted), self.wanted, deleted, added)
        found = self._moved_along(moves)
        asked, code = outside_of_checks(self.wanted), self._texts(self.total.all)
        to_es_modules = asks_for_es_modules(self.wanted)
        for path in sorted({one.path for one in self.judged} & self.total.modified):
            before, after, language = self.was(path), self.now(path), language_of(path)
            if before is None or after is None:
                continue
            if language is None and not family_of(path):
                follows = places_follow(before, after, moves)
            else:
                follows = (
                    (to_es_modules and language == "javascript" and modules_follow(before, after))
                    or names_follow(path, before, after, self._names, self._in_code_alone)
                    or (language is not None and self._rest_follows(path, before, after))
                    or (language is not None and imports_follow(path, before, after, moves))
                    or (language is not None and parts_follow(path, before, after, asked, code))
                    or (
                        language is not None
                        and parts_follow(path, before, self._without_new(path), asked, code)
                    )
                )
            if follows:
                found.add(path)
        return found

    @cached_property
    def _whole_inputs(self) -> set[str]:
        """Changed inputs that are nothing else: no product with tests inside."""
        return {one.path for one in self.judged if not one.input.region}

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """New names of code by the old ones, as the PRD wants them or as the code shows."""
        return {**renamed_in_code(self._changed_product(), self.wanted), **renames_in(self.wanted)}

    @cached_property
    def _in_code_alone(self) -> set[str]:
        """Those of the old names that the changed product had in no text and as no key."""
        quoted: set[str] = set()
        product = {*self.total.modified, *self.total.deleted} - self._whole_inputs
        for path in sorted(product) if self._names else ():
            text = self.was(path) or b""
            if not family_of(path):  # a template, say; not what people read
                other = "" if path.endswith(TEXTS) else text.decode("utf-8", "replace")
                quoted.update(WORD.findall(other))
                continue
            source = CODE_IN_TEXT.sub("", without_comments(path, text).decode("utf-8", "replace"))
            quoted.update(KEY.findall(source))
            for text in QUOTED.findall(source):
                quoted.update(WORD.findall(text))
        return self._names.keys() - quoted

    def without_new_tests(self, paths: Collection[str]) -> dict[str, bytes]:
        """Those of these files that have new tests or imports besides, without them."""
        found: dict[str, bytes] = {}
        for path in sorted(paths):
            language, before, after = language_of(path), self.was(path), self.now(path)
            if language is None or before is None or after is None:
                continue
            rest = self._without_new(path)
            if rest != after and without_imports(rest, language) is not None:
                found[path] = rest
        return found

    def _without_new(self, path: str) -> bytes:
        """A file with a grammar without new tests and what these import."""
        return without_new_tests(*self._both(path), language_of(path) or "", self._names)

    def _rest_follows(self, path: str, before: bytes, after: bytes) -> bool:
        """Whether a file follows new names, but for new tests and what these import."""
        names, language = self._names, language_of(path) or ""
        bare = bare_tests(before, after, language, names) if names else None
        return bare is not None and names_follow(path, *bare, names, self._in_code_alone)

    def _texts(self, paths: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
        """The first of these files with a grammar, before and after."""
        some = (path for path in paths[:MOST_COMPARED] if language_of(path) is not None)
        return {path: self._both(path) for path in some}

    def _both(self, path: str) -> tuple[bytes, bytes]:
        return self.was(path) or b"", self.now(path) or b""

    def _moved_along(self, moves: Sequence[tuple[str, str]]) -> set[str]:
        """Old and new paths of tests that went, saying the same, where the PRD wants their place.

        "Move `org.example` to `org.example.bank`" names no path.
        """
        found: set[str] = set()
        tests = {one.path for one in self.judged if one.input.kind == "test"}
        for path in sorted(tests & self.total.deleted):
            for was, now in moves:
                new = now + path.removeprefix(was)
                if not path.startswith(f"{was}/") or new not in self.total.added:
                    continue
                before, after = self.was(path), self.now(new)
                if before is None or after is None:
                    continue
                if says_the_same(path, before, {new: after}, moves):
                    found |= {path, new}
        return found

    def of_signatures(self) -> set[str]:
        """Tests and their helpers that only hand over, or take, what a function takes now."""
        paths = self._whole_inputs & self.total.modified
        if not paths:
            return set()
        heads = changed_heads(list(self._changed_product().values()))
        asked = outside_of_checks(self.wanted)
        return {
            path
            for path in sorted(paths)
            if heads
            and (language := language_of(path)) is not None
            and follows_heads(*self._both(path), language, heads, asked)
        }

    def _changed_product(self) -> dict[str, tuple[bytes, bytes]]:
        """Changed files of the product with a grammar, before and after, by path."""
        return self._texts(sorted(self.total.modified - self._whole_inputs))

    def adapted_tests(self, run: Collection[str]) -> dict[str, set[str]]:
        """Tests that were adapted as the PRD asks in ordinary words, by their file.

        `run` are the files whose tests were reported by name before the run.
        """
        found: dict[str, set[str]] = {}
        stated: set[str] = set()
        kinds = {one.path: one.input for one in self.judged if one.path in self.total.modified}
        for path in sorted(kinds.keys() & set(run)):
            language, before, after = language_of(path), self.was(path), self.now(path)
            if language is None or before is None or after is None:
                continue
            if kinds[path].kind != "test" or kinds[path].region:
                continue
            if names := adapted_in(before, after, language, self._wanted_values):
                found[path] = names
            if names := reworded_in(before, after, language, self._wanted_values):
                found[path] = names
                stated.add(path)
        every = {own_name(name) for names in found.values() for name in names}
        snapshots = all(
            adapts_snapshots(*self._both(path), language_of(path) or "") for path in found
        )
        if asks_to_adapt(self.wanted, every, snapshots=snapshots):
            return found
        return {
            path: names
            for path, names in found.items()
            if path in stated or self._follows_a_value(path)
        }

    def _follows_a_value(self, path: str) -> bool:
        """Whether the tests of a file have new values in place of old ones just as the product has,
        and the PRD says that what they belong to becomes so."""
        pairs = exchanged_values(*self._both(path), language_of(path) or "")
        gone, come = self._wanted_values.gone, self._wanted_values.come
        return bool(pairs) and all(
            was in gone and now in come and says_it_becomes(self.wanted, subject, now)
            for subject, was, now in pairs or ()
        )

    @cached_property
    def _wanted_values(self) -> WantedValues:
        tests = {one.path for one in self.judged if one.input.kind == "test"}
        regions = {one.path for one in self.judged if one.input.region}
        gone, come = set[str](), set[str]()
        for path in sorted(self.total.modified - (tests - regions))[:MOST_COMPARED]:
            texts = (text.decode("utf-8", "replace") for text in self._both(path))
            was, now = (Counter(VALUE.findall(text)) for text in texts)
            gone |= (was - now).keys()
            come |= (now - was).keys()
        stems = {posixpath.splitext(posixpath.basename(one))[0] for one in self.total.added}
        return WantedValues(outside_of_checks(self.wanted), gone, come, stems)

    def expected_data(self) -> set[str]:
        """Changed data that tests compare with, of a kind that the PRD wants changed."""
        kinds = {one.path: one.input.kind for one in self.judged if one.path in self.total.modified}
        data = [path for path, kind in kinds.items() if kind == "fixture" and not family_of(path)]
        found = asked_by_kind(self.wanted, data)
        if wants_snapshots(self.wanted):
            found |= {
                path
                for path, kind in kinds.items()
                if kind == "test" and differs_by_snapshots(*self._both(path))
            }
        return found
