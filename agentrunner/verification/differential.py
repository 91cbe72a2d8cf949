"""Builds mixed trees: old inputs of the proof with the new product, and the reverse. Blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentrunner.git.restore import Entry
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.changed_inputs import ChangedInputs
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.inputs.changes import put_back
from agentrunner.verification.inputs.recipes import MAKEFILE, idle, is_wanted, targets_of
from agentrunner.verification.rewritten_data import single_changes
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.regions import with_regions_of
from agentrunner.verification.world import InputChange, SnapshotTrees


class Differential(ChangedInputs):
    """Builds the trees that separate the changed inputs from the work."""

    def single_changes_of_data(
        self, world: SnapshotTrees, target: Target
    ) -> list[tuple[str, list[str]]]:
        """Old texts of data that the PRD or the task permits to change, each with a part of the
        changes: by path, as `single_changes` returns them."""
        return self.single_changes(world, self.rewritten_data(world, target))

    def single_changes(
        self, world: SnapshotTrees, paths: Sequence[str]
    ) -> list[tuple[str, list[str]]]:
        """For each changed file its path and its old text with a part of the changes applied."""
        found = []
        for path in paths:
            before, after = world.was(path), world.now(path)
            if before is None or after is None:
                continue
            try:
                found.append((path, single_changes(before.decode(), after.decode())))
            except UnicodeDecodeError:
                continue
        return found

    def with_text(self, tree: str, path: str, text: str) -> str:
        """The tree with another text in one file."""
        return self.snapshots.with_texts(tree, {path: to_bytes(text)})

    def with_old_inputs(self, changes: Sequence[InputChange]) -> str:
        """The new tree with these inputs as they were.

        Additions that are understood stay, except tests: those that run in one process could fix
        the product for the others.
        """
        wanted = {change.path for change in changes if not change.understood or change.test}
        if not wanted and not self._without_new_tests:
            return self._new
        helpers: dict[str, bytes | None] = dict.fromkeys(self._helpers & wanted)
        made = {
            **self._without_new_tests,
            **helpers,
            **put_back(self._judged, wanted, understood=True),
        }
        return self._with_contents(made)

    def with_new_tests(self) -> str:
        """The old tree with all changed inputs as the worker left them.

        Of a product file with tests inside only the tests are new: its code is the work.
        """
        after = self.snapshots.list(self._new)
        names = self._judged_paths() | self._helpers
        made: dict[str, Entry | None] = {path: after.get(path) for path in sorted(names)}
        was, now = self._was, self._now
        for path in sorted(one.path for one in self._judged.changes if one.input.region):
            language, before, text = language_of(path), was(path), now(path)
            if language is None or text is None or path not in after:
                continue
            blob = self.snapshots.write_blob(with_regions_of(before or b"", text, language))
            made[path] = (after[path][0], blob)
        return self.snapshots.combine(self._old, made)

    def with_emptied_files(self, target: Target) -> str | None:
        """The old tree with every added file, but empty; None where no file was added.

        Programs of the command itself are as the worker left them.
        """
        programs = {*self.new_programs(target), *self._judged_paths()}
        added = self._total.added - programs
        if not added:
            return None
        emptied = dict.fromkeys(added, b"")
        return self.snapshots.with_texts(self.with_new_programs(target), emptied)

    def with_idle_recipes(self, target: Target) -> str | None:
        """The new tree with new recipes of make doing nothing; None unless the PRD wants them.

        A target that was there is not wanted by being named: "`make test` fails now".
        """
        total, was, now = self._total, self._was, self._now
        makefiles = filter(MAKEFILE.fullmatch, self.snapshots.list(self._old))
        stood = [was(path) or b"" for path in makefiles]
        if not is_wanted(self.spec.wanted, targets_of(target.shell), stood):
            return None
        tree = None
        for path in filter(MAKEFILE.fullmatch, sorted(total.added | total.modified)):
            try:
                text = idle((was(path) or b"").decode(), (now(path) or b"").decode())
            except UnicodeDecodeError:
                continue
            if text is not None:
                tree = self.with_text(tree or self._new, path, text)
        return tree

    def with_new_programs(self, target: Target) -> str:
        """The old tree with the programs and tests of this command as the worker left them."""
        return self.with_paths(self.with_new_tests(), self._new, self.new_programs(target))

    def with_paths(self, old: str, new: str, paths: Sequence[str]) -> str:
        """`old` with these files as they are in `new`; a file that is not there is removed."""
        after = self.snapshots.list(new)
        return self.snapshots.combine(old, {path: after.get(path) for path in paths})

    def _with_contents(self, made: Mapping[str, bytes | None]) -> str:
        old, now = self.snapshots.list(self._old), self.snapshots.list(self._new)
        changed: dict[str, Entry | None] = {}
        for path, content in made.items():
            if content is None:
                changed[path] = None
                continue
            mode = old.get(path, now.get(path, ("100644", "")))[0]
            changed[path] = (mode, self.snapshots.write_blob(content))
        return self.snapshots.combine(self._new, changed)
