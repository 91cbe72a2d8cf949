"""Old inputs on the new product, and new tests on the old code. Everything here blocks."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from agentrunner.config.spec import TaskSpec, TestSpec
from agentrunner.git.restore import Entry
from agentrunner.git.snapshots import Snapshots, folders_of
from agentrunner.verification.checks import ReadFile
from agentrunner.verification.follow_ups import FollowUps
from agentrunner.verification.inputs.asked import (
    asked_in,
    data_asked_in,
    moved_in,
    wanted_gone,
    wanted_new,
)
from agentrunner.verification.inputs.changes import (
    LOCK_OF_VENDOR,
    ProofChanges,
    judge_changes,
    put_back,
)
from agentrunner.verification.inputs.find import find_inputs
from agentrunner.verification.inputs.follow import asks_for_paths, only_reads
from agentrunner.verification.inputs.idle_recipes import MAKEFILE, idle, is_wanted, targets_of
from agentrunner.verification.inputs.kept_commands import with_old_commands
from agentrunner.verification.inputs.leads import family_of
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.inputs.shell import steps_of
from agentrunner.verification.inputs.steering import matches
from agentrunner.verification.linked_inputs import with_links
from agentrunner.verification.moves import (
    renamed_modules,
    says_the_same,
)
from agentrunner.verification.results.names import own_name
from agentrunner.verification.rewritten_data import single_changes
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.regions import regions_of_tests, with_regions_of
from agentrunner.verification.target import Target
from agentrunner.verification.trees import Changes, changes_between
from agentrunner.verification.world import InputChange, SnapshotTrees

REMOVES = re.compile(r"(?i)\b(remov|delet|drop|obsolete|get rid)|削除|取り除|廃止")
KEEPS = re.compile(r"(?i)\b(do not|don't|never|without|must not|keep)\b|しない|せず|ないで")


@dataclass
class Differential:
    """Works out which changes decide, and makes the trees that tell them from the work."""

    snapshots: Snapshots
    spec: TaskSpec
    _inputs: dict[tuple[str, tuple[tuple[str, str], ...]], Inputs] = field(default_factory=dict)
    """By tree and commands."""
    _judged: ProofChanges | None = None
    """Of the latest `changes`."""
    _settled: frozenset[str] = frozenset()
    """Changed paths that the task, the PRD or a person allows."""
    _adapted: frozenset[str] = frozenset()
    """Tests that the PRD wants moved, and that say something else now: where they were and are."""
    freed_by_kind: frozenset[str] = frozenset()
    """Expected data of the latest `changes` that the PRD wants changed and does not name."""
    _helpers: frozenset[str] = frozenset()
    """New files of the latest `changes` that only tests use."""

    @property
    def _test(self) -> TestSpec | None:
        return self.spec.task.test

    @property
    def _may_change(self) -> Sequence[str]:
        return self._test.may_change if self._test else []

    def inputs(self, tree: str, targets: Sequence[Target], files: Collection[str] = ()) -> Inputs:
        """What decides what these commands say on a tree."""
        shells = tuple((target.shell, target.cwd) for target in targets)
        key = (tree, shells)
        if key not in self._inputs:
            found = find_inputs(
                shells,
                list(self.snapshots.list(tree)),
                self.snapshots.reader(tree),
                declared_tests=self._test.paths if self._test else (),
                declared_product=self._test.product if self._test else (),
                results_files=self._whole(tree, files),
                read_many=lambda paths: self.snapshots.read_many(tree, paths),
                wanted=self.spec.wanted,
            )
            self._inputs[key] = with_links(found, tree, self.snapshots)
        return self._inputs[key]

    def _whole(self, tree: str, files: Collection[str]) -> list[str]:
        """Those of the files with tests that are not product with tests inside."""
        read = self.snapshots.reader(tree)
        return [path for path in files if not _is_product_too(path, read)]

    def changes(
        self,
        old: str,
        new: str,
        targets: Sequence[Target],
        files: Collection[str],
        allowed: Collection[str],
    ) -> tuple[InputChange, ...]:
        """Changed inputs of the proof, without those that a person, the task or the PRD allows."""
        total = changes_between(self.snapshots, old, new)
        inputs = self.inputs(old, targets, files)
        before, after = self.snapshots.list(old), self.snapshots.list(new)
        self._judged = judge_changes(
            inputs,
            list(before),
            self.snapshots.reader(old),
            list(after),
            self.snapshots.reader(new),
            total,
        )
        self._helpers = self._new_helpers(old, total, inputs)
        self._adapted = frozenset(self._changed_on_the_way(old, new, total))
        wished = self._wished(total, self._data()) - self._adapted
        follow_ups = FollowUps(
            self.spec.wanted, self._judged.changes, self.snapshots.reader(old),
            self.snapshots.reader(new), total,
        )  # fmt: skip
        self.freed_by_kind = frozenset(follow_ups.expected_data() - wished)
        wished |= follow_ups.of_moves() | self.freed_by_kind
        self._settled = frozenset(wished) | frozenset(allowed)
        wished -= self._keep_commands(old, new, targets, wished.difference(allowed), inputs)
        wished |= self._removals(old, new, total)
        helpers = sorted(self._helpers.difference(allowed, wished, self._judged_paths()))
        return tuple(
            InputChange(path, "it is new among the tests, which use it", "added", test=True)
            for path in helpers
        ) + tuple(
            InputChange(one.path, one.input.why, one.kind, one.understood, one.input.kind == "test")
            for one in self._judged.changes
            if one.path not in allowed and one.path not in wished
        )

    def _keep_commands(
        self,
        old: str,
        new: str,
        targets: Sequence[Target],
        wished: Collection[str],
        inputs: Inputs,
    ) -> set[str]:
        """Files that the PRD wants changed, of which the commands that decide go back alone."""
        was, now = self.snapshots.reader(old), self.snapshots.reader(new)
        shells = [target.shell for target in targets]
        made: dict[str, bytes] = {}
        judged = self._judged.changes if self._judged else []
        for path in sorted({one.path for one in judged} & set(wished)):
            before, after = was(path), now(path)
            if before is None or after is None or matches(path, self._may_change):
                continue
            kept = with_old_commands(path, before, after, shells, inputs.scripts, self.spec.wanted)
            if kept is not None:
                made[path] = kept
        self._judged = ProofChanges(
            [
                replace(one, old=made[one.path], understood="", partly=True)
                if one.path in made
                else one
                for one in judged
            ],
            self._judged.unsure if self._judged else [],
        )
        return set(made)

    def _data(self) -> set[str]:
        """Of the latest `changes` tests, settings, and data that is read: golden files, tables."""
        judged = self._judged.changes if self._judged else []
        return {
            one.path
            for one in judged
            if (one.input.kind in ("test", "config") and not one.input.region)
            or (one.input.kind == "fixture" and not family_of(one.path))
        }

    def _wished(self, total: Changes, data: Collection[str]) -> set[str]:
        """Changed paths that the task allows or the PRD asks to change, move or remove."""
        return self._asked(total.all, data) | (total.deleted & self._gone_by_checks())

    def wished(self, paths: Collection[str]) -> set[str]:
        """Those of some changed paths that the task allows or the PRD asks to change."""
        return self._asked(paths, [path for path in paths if not family_of(path)])

    def _asked(self, paths: Collection[str], data: Collection[str]) -> set[str]:
        """The same; `data` are those that a sentence in the passive voice frees as well."""
        text, may, paths = self.spec.wanted, self._may_change, [*paths]
        found = {path for path in paths if matches(path, may) or asked_in(text, path, paths)}
        return found | {path for path in data if data_asked_in(text, path, paths)}

    def _changed_on_the_way(self, old: str, new: str, total: Changes) -> set[str]:
        """Inputs that were only to be moved, but say something else now: where they were and are.

        What the product says is the work, also where it moves.
        """
        text, paths = self.spec.wanted, [*total.all]
        moved = {path for path in total.all if moved_in(text, path, paths)}
        left = sorted(moved & total.deleted & self._judged_paths())
        reached = sorted(moved & total.added)
        if not left:
            return set()
        was, now = self.snapshots.reader(old), self.snapshots.reader(new)
        others = {path: now(path) or b"" for path in sorted(total.added)}
        renames = renamed_modules(sorted(total.deleted), sorted(total.added))
        if all(says_the_same(path, was(path) or b"", others, renames) for path in left):
            return set()
        return {*left, *reached}

    def _gone_by_checks(self) -> set[str]:
        """Paths that a person's check wants to be gone: it is red as long as one is there."""
        found: set[str] = set()
        for check in filter(None, (criterion.check for criterion in self.spec.criteria)):
            if check.kind == "file" and check.exists is False:
                found.add(posixpath.normpath(check.path))
            elif check.kind == "command" and check.expect_exit == 0:
                names = wanted_gone(check.run)
                found |= {posixpath.normpath(posixpath.join(check.cwd, name)) for name in names}
        return found

    def permitted(self, allowed: Collection[str]) -> frozenset[str]:
        """Changed inputs of the latest `changes` that the task or the PRD lets change.

        Those that a person allowed after looking (`allowed`) are not among them.
        """
        return frozenset(self._judged_paths() & self._settled).difference(allowed)

    def adapted(self, allowed: Collection[str]) -> frozenset[str]:
        """Changed inputs that the PRD names and that may be adapted, and no more than that."""
        return (self.permitted(allowed) | self._adapted).difference(allowed)

    def single_changes_of_data(
        self, world: SnapshotTrees, target: Target
    ) -> list[tuple[str, list[str]]]:
        """For data that the PRD or the task let change: its old text with some of the changes."""
        return self.single_changes(world, self.rewritten_data(world, target))

    def rewritten_data(self, world: SnapshotTrees, target: Target) -> list[str]:
        """Data that the PRD or the task let change, that was there before and is there now."""
        inputs = self.inputs(world.old, [target])
        there = world.old_paths & self.snapshots.list(world.new).keys()
        data = [path for path in sorted(self.permitted(world.allowed)) if not family_of(path)]
        return [path for path in data if path in there and inputs.counts(path)]

    def changed_beside(self, world: SnapshotTrees, target: Target) -> list[str]:
        """Changed code that only tests use, where what was asked for names other code."""
        beside = self.inputs(world.old, [target]).beside
        changed = [path for path in world.product if path in beside]
        return sorted(set(changed) - set(world.allowed) - self._settled)

    def single_changes(
        self, world: SnapshotTrees, paths: Sequence[str]
    ) -> list[tuple[str, list[str]]]:
        """The same for any changed files."""
        was, now = self.snapshots.reader(world.old), self.snapshots.reader(world.new)
        found = []
        for path in paths:
            before, after = was(path), now(path)
            if before is None or after is None:
                continue
            try:
                found.append((path, single_changes(before.decode(), after.decode())))
            except UnicodeDecodeError:
                continue
        return found

    def with_text(self, tree: str, path: str, text: str) -> str:
        """A tree in which a file says something else."""
        mode = self.snapshots.list(tree)[path][0]
        return self.snapshots.combine(
            tree, {path: (mode, self.snapshots.write_blob(text.encode()))}
        )

    def unsure(self) -> tuple[str, ...]:
        """Changed paths of the latest `changes` that are taken as product and may decide."""
        return tuple(path for path, _ in self._judged.unsure) if self._judged else ()

    def with_old_inputs(self, old: str, new: str, changes: Sequence[InputChange]) -> str:
        """`new` with these inputs as they were in `old`.

        Understood additions stay, but for tests: those that run in one process could mend the
        product for the others.
        """
        wanted = {change.path for change in changes if not change.understood or change.test}
        if not wanted or self._judged is None:
            return new
        helpers: dict[str, bytes | None] = dict.fromkeys(self._helpers & wanted)
        made = {**helpers, **put_back(self._judged, wanted, understood=True)}
        return self._with(new, made, self.snapshots.list(old))

    def _judged_paths(self) -> set[str]:
        return {one.path for one in self._judged.changes} if self._judged else set()

    def _removals(self, old: str, new: str, total: Changes) -> set[str]:
        """Test files that lost what the PRD wants to be gone, and are the same otherwise."""
        found = set()
        was, now = self.snapshots.reader(old), self.snapshots.reader(new)
        for path in total.modified:
            language = language_of(path)
            before, after = was(path), now(path)
            if language is None or before is None or after is None:
                continue
            one, two = definitions(before, language), definitions(after, language)
            lost = one.keys() - two.keys()
            same = all(text == two.get(name, text) for name, text in one.items())
            if lost and same and all(self._is_to_go(name) for name in lost):
                found.add(path)
        return found

    def _is_to_go(self, name: str) -> bool:
        """Whether a sentence of the PRD asks for a test of this name to be removed."""
        last = re.escape(own_name(name))
        for sentence in re.split(r"(?<=[.!?。])\s|\n{2,}", self.spec.wanted):
            if re.search(rf"(?<!\w){last}(?!\w)", sentence) and REMOVES.search(sentence):
                return not KEEPS.search(sentence)
        return False

    def with_new_tests(self, old: str, new: str) -> str:
        """`old` with all changed inputs as the worker left them.

        Of a product file with tests inside only these are new: its code is the work.
        """
        after = self.snapshots.list(new)
        judged = self._judged.changes if self._judged else []
        names = {one.path for one in judged} | self._helpers
        made: dict[str, Entry | None] = {path: after.get(path) for path in sorted(names)}
        was, now = self.snapshots.reader(old), self.snapshots.reader(new)
        for path in sorted(one.path for one in judged if one.input.region):
            language, before, text = language_of(path), was(path), now(path)
            if language is None or before is None or text is None or path not in after:
                continue
            blob = self.snapshots.write_blob(with_regions_of(before, text, language))
            made[path] = (after[path][0], blob)
        return self.snapshots.combine(old, made)

    def _new_helpers(self, old: str, total: Changes, before: Inputs) -> frozenset[str]:
        """New files in folders that had tests and nothing else: helpers, fixtures, doubles."""
        of_tests: set[str] = set()
        of_product: set[str] = set()
        for path in self.snapshots.list(old):
            if path.endswith(LOCK_OF_VENDOR):
                continue  # it lies above modules of product and tests alike
            one = before.counts(path)
            home = of_tests if one is not None and not one.region else of_product
            home.add(posixpath.dirname(path))
        homes = of_tests - of_product - {""}
        return frozenset(
            path
            for path in total.added
            if any(str(above) in homes for above in PurePosixPath(path).parents)
        )

    def with_emptied_files(self, old: str, new: str, target: Target) -> str | None:
        """`old` with every added file, but empty; None where none was added.

        The programs of the command itself are as the worker left them.
        """
        programs = {*self.new_programs(old, new, target), *self._judged_paths()}
        added = changes_between(self.snapshots, old, new).added.difference(programs)
        if not added:
            return None
        blob = self.snapshots.write_blob(b"")
        hollow: dict[str, Entry | None] = dict.fromkeys(added, ("100644", blob))
        return self.snapshots.combine(self.with_new_programs(old, new, target), hollow)

    def with_idle_recipes(self, old: str, new: str, target: Target) -> str | None:
        """`new` with new lines of make's recipes doing nothing, where the PRD wants its targets."""
        if not is_wanted(self.spec.wanted, targets_of(target.shell)):
            return None
        total = changes_between(self.snapshots, old, new)
        was, now = self.snapshots.reader(old), self.snapshots.reader(new)
        tree = None
        for path in filter(MAKEFILE.fullmatch, sorted(total.added | total.modified)):
            try:
                text = idle((was(path) or b"").decode(), (now(path) or b"").decode())
            except UnicodeDecodeError:
                continue
            if text is not None:
                tree = self.with_text(tree or new, path, text)
        return tree

    def product(self, old: str, new: str) -> tuple[str, ...]:
        """Changed paths that are no inputs, or of which only a region is."""
        total = changes_between(self.snapshots, old, new)
        judged = self._judged.changes if self._judged else []
        whole = {one.path for one in judged if not one.input.region} | self._helpers
        return tuple(path for path in total.all if path not in whole)

    def counts(self, path: str, tree: str, targets: Sequence[Target]) -> bool:
        """Whether a path of a tree decides."""
        return self.inputs(tree, targets).counts(path) is not None

    def runs_old_files(self, target: Target, tree: str) -> bool:
        """Whether a command could decide something on a tree: what it runs is there."""
        inputs = self.inputs(tree, [target])
        return any(one.exists and one.kind in ("test", "runner") for one in inputs.tests)

    def may_be_gone(self) -> frozenset[str]:
        """Paths that the PRD, a check or a person wants gone, moved or changed."""
        return self._settled | self._gone_by_checks()

    def looked_at_and_gone(self, target: Target, old: str, new: str) -> list[str]:
        """Paths in a command's own words that were there and are gone, and nobody wants gone."""
        wanted = self.may_be_gone()
        before, after = (
            {*tree, *folders_of(tree)} for tree in map(self.snapshots.list, (old, new))
        )
        named = {
            posixpath.normpath(posixpath.join(target.cwd, step.folder, word))
            for step in steps_of(target.shell)
            for word in step.words[1:]
            if not word.startswith("-")
        }
        return sorted((named & before).difference(after, wanted))

    def is_of_the_worker(self, target: Target, old: str, new: str, red_with_old: bool) -> bool:
        """Whether what decides for this command was not there before the run and is there now.

        A command that only asks which files are there, or what they say, is what its author wrote.
        """
        if self.runs_old_files(target, old):
            return False
        if self.new_programs(old, new, target):
            return True
        if not red_with_old or asks_for_paths(target.shell):
            return False
        return not only_reads(target.shell) or self._has_unwanted_tests()

    def _has_unwanted_tests(self) -> bool:
        """Whether tests are among the changes that nobody asked for."""
        judged = self._judged.changes if self._judged else []
        return any(
            one.input.kind == "test"
            and one.path not in self._settled
            and not self.is_wanted_new(one.path)
            for one in judged
        )

    def steered_as_wanted(self) -> bool:
        """Whether the PRD asks for all changes of the latest `changes` that decide."""
        unsettled = self._judged_paths() - self._settled
        return all(map(self.is_wanted_new, unsettled))

    def is_wanted_new(self, path: str) -> bool:
        """Whether the PRD asks by name for a file that is to be added, or moved there."""
        text = self.spec.wanted
        return wanted_new(text, path) or asked_in(text, path)

    def new_programs(self, old: str, new: str, target: Target) -> list[str]:
        """New files that decide for a command: tests, programs, recipes, expected data."""
        added = changes_between(self.snapshots, old, new).added
        now = self.inputs(new, [target])
        return sorted(
            path
            for path in added
            if (one := now.counts(path)) and one.kind in ("test", "runner", "recipe", "fixture")
        )

    def decided_by_the_worker(self, old: str, new: str, target: Target) -> list[str]:
        """New programs of a command, and changed inputs that nobody asked for."""
        unsettled = self._judged_paths() - self._settled
        return sorted({*self.new_programs(old, new, target), *unsettled})

    def with_new_programs(self, old: str, new: str, target: Target) -> str:
        """`old` with the programs and tests of this command as the worker left them."""
        return self.with_paths(
            self.with_new_tests(old, new), new, self.new_programs(old, new, target)
        )

    def with_paths(self, old: str, new: str, paths: Sequence[str]) -> str:
        """`old` with these files of `new`."""
        after = self.snapshots.list(new)
        return self.snapshots.combine(old, {path: after.get(path) for path in paths})

    def may_go(self, name: str, file: str) -> bool:
        """Whether a test that is gone is settled: by its file, or as the PRD names its case.

        Of `test_price[JPY]` the case is "JPY".
        """
        if file and (file in self._settled or matches(file, self._may_change)):
            return True
        if self._is_to_go(name):
            return True
        case = re.search(r"\[([^\[\]]+)\]$", name)
        if not case:
            return False
        words = [word for word in re.split(r"[-_,\s]+", case[1]) if len(word) > 1]
        return bool(words) and any(
            re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.spec.wanted) for word in words
        )

    def _with(self, tree: str, made: Mapping[str, bytes | None], old: Mapping[str, Entry]) -> str:
        now = self.snapshots.list(tree)
        changed: dict[str, Entry | None] = {}
        for path, content in made.items():
            if content is None:
                changed[path] = None
                continue
            mode = old.get(path, now.get(path, ("100644", "")))[0]
            changed[path] = (mode, self.snapshots.write_blob(content))
        return self.snapshots.combine(tree, changed)


def _is_product_too(path: str, read: ReadFile) -> bool:
    """Whether only a region of a file is tests: a module of Rust's, examples in docstrings."""
    language, source = language_of(path), read(path)
    if language is None or source is None:
        return False
    return any(region.kind != "main" for region in regions_of_tests(source, language))


def in_repo(file: str, cwd: str) -> str:
    """A test's file, relative to the repository; "" where it is not known."""
    return posixpath.normpath(posixpath.join(cwd, file)) if file else ""


def in_tree(file: str, cwd: str, paths: Collection[str]) -> bool:
    """Whether a test's file, relative to its command's folder, is in a tree."""
    return bool(file) and posixpath.normpath(posixpath.join(cwd, file)) in paths
