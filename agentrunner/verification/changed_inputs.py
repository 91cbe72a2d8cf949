"""Finds which inputs of the proof changed, and which of them the task or the PRD lets change."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from msgspec import Struct, field

from agentrunner.config.spec import TaskSpec, TestSpec
from agentrunner.git.snapshots import LINK, Snapshots, folders_of
from agentrunner.verification.evidence.target import Target, in_repo
from agentrunner.verification.file_names import has_word
from agentrunner.verification.inputs.changes import LOCK_OF_VENDOR, ProofChanges, judge_changes
from agentrunner.verification.inputs.executed_files import asks_for_paths, only_reads
from agentrunner.verification.inputs.finder import find_inputs
from agentrunner.verification.inputs.globs import literal, matches
from agentrunner.verification.inputs.kept_part import with_old_commands
from agentrunner.verification.inputs.model import Input, Inputs
from agentrunner.verification.inputs.references import family_of
from agentrunner.verification.inputs.shell import steps_of
from agentrunner.verification.inputs.wanted_changes import (
    asked_in,
    data_asked_in,
    only_gets_more,
    wanted_new,
)
from agentrunner.verification.inputs.wanted_moves import moved_in
from agentrunner.verification.inputs.wanted_tests import asks_to_add
from agentrunner.verification.inputs.words_of_change import wanted_gone
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.results.names import PARAMETERS, own_name, parts_of
from agentrunner.verification.rewritten_data import has_all_of
from agentrunner.verification.syntax.asserts import asserts_of
from agentrunner.verification.syntax.calls import asks_nothing, names_called
from agentrunner.verification.syntax.context import NAMES
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.languages import language_of, walk
from agentrunner.verification.syntax.regions import regions_of_tests
from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.syntax.test_spans import Found
from agentrunner.verification.test_changes.follow_ups import FollowUps
from agentrunner.verification.test_changes.moves import renamed_modules, says_the_same
from agentrunner.verification.test_changes.removed_tests import (
    asks_to_remove,
    lost_as_asked,
    removed_code,
    tests_gone_with,
)
from agentrunner.verification.trees import Changes, changes_between
from agentrunner.verification.world import InputChange, SnapshotTrees


class ChangedInputs(Struct):
    """The changed inputs of the proof, between the tree before the run and one after. Blocks."""

    snapshots: Snapshots
    spec: TaskSpec
    subjects: frozenset[str] = frozenset()
    """Programs that checks run as what they are about: they count as product."""
    _inputs: dict[tuple[str, tuple[tuple[str, str], ...], frozenset[str]], Inputs] = field(
        default_factory=dict
    )
    """Cache of `inputs`, by tree, commands and subjects."""
    _old: str = ""
    """The trees of the latest `changes`, before and after; the next attributes are its results."""
    _new: str = ""
    _total: Changes = field(default_factory=Changes)
    _judged: ProofChanges = field(default_factory=ProofChanges)
    """The changed inputs, also those that may change."""
    _settled: frozenset[str] = frozenset()
    """Changed paths that the task, the PRD or a person allows to change."""
    _adapted: frozenset[str] = frozenset()
    """Old and new paths of tests that the PRD wants moved and whose text differs after the move."""
    freed_by_kind: frozenset[str] = frozenset()
    """Expected data whose kind the PRD wants changed, without naming the file."""
    adapted_by_words: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Tests that the PRD asks to adapt without naming their file, by this file."""
    _helpers: frozenset[str] = frozenset()
    """New files that only tests use."""
    _without_new_tests: Mapping[str, bytes] = field(default_factory=dict)
    """Files of tests that follow the work, without the new tests in them."""
    _added_to: frozenset[str] = frozenset()
    """Files to which the PRD wants tests added, and which only got tests."""
    _gone_with_code: frozenset[tuple[str, str]] = frozenset()
    """Paths and names of tests that are gone with the code that they were tests of."""

    @property
    def _test(self) -> TestSpec | None:
        return self.spec.task.test

    @property
    def _was(self) -> ReadFile:
        return self.snapshots.reader(self._old)

    @property
    def _now(self) -> ReadFile:
        return self.snapshots.reader(self._new)

    @property
    def _may_change(self) -> Sequence[str]:
        return self._test.may_change if self._test else []

    def inputs(self, tree: str, targets: Sequence[Target], files: Collection[str] = ()) -> Inputs:
        """The inputs of the proof on a tree, for these commands."""
        shells = tuple((target.shell, target.cwd) for target in targets)
        key = (tree, shells, self.subjects)
        if key not in self._inputs:
            read = self.snapshots.reader(tree)
            found = find_inputs(
                shells,
                list(self.snapshots.list(tree)),
                read,
                declared_tests=self._test.paths if self._test else (),
                declared_product=(
                    *(self._test.product if self._test else ()),
                    *sorted(self.subjects),
                ),
                results_files=[path for path in files if not _is_product_too(path, read)],
                read_many=lambda paths: self.snapshots.read_many(tree, paths),
                wanted=self.spec.wanted,
            )
            self._inputs[key] = with_links(found, tree, self.snapshots)
        return self._inputs[key]

    def changes(
        self,
        old: str,
        new: str,
        targets: Sequence[Target],
        files: Collection[str],
        allowed: Collection[str],
    ) -> tuple[InputChange, ...]:
        """Changed inputs of the proof, without those that a person, the task or the PRD allows.

        Also sets the attributes above, which most other methods read.
        """
        self._old, self._new = old, new
        was, now = self._was, self._now
        total = self._total = changes_between(self.snapshots, old, new)
        inputs = self._with_new_regions(targets, files)
        before, after = self.snapshots.list(old), self.snapshots.list(new)
        self._judged = judge_changes(inputs, before, was, after, now, total.all)
        self._helpers = self._new_helpers(inputs)
        self._added_to = frozenset(self._with_wanted_tests())
        self._adapted = frozenset(self._changed_while_moving())
        asked = self._asked(total.all, self._freeable_data())
        permitted = (asked | (total.deleted & self._gone_by_checks())) - self._adapted
        permitted -= self._altered_where_more_was_asked_for(permitted)
        as_they_are = permitted.union(allowed)
        follow_ups = FollowUps(self.spec.wanted, self._judged.changes, was, now, total)
        self.freed_by_kind = frozenset(follow_ups.expected_data() - permitted)
        moved = follow_ups.of_moves() | follow_ups.of_signatures()
        permitted |= moved | self.freed_by_kind
        self.adapted_by_words = {
            path: names
            for path, names in follow_ups.adapted_tests(files).items()
            if path not in permitted and path not in allowed
        }
        permitted |= self.adapted_by_words.keys()
        self._settled = frozenset(permitted) | frozenset(allowed)
        permitted -= self._keep_old_commands(targets, permitted.difference(allowed, moved), inputs)
        removed = self._with_wanted_removals()
        permitted |= removed
        followed = ((moved | removed) & total.modified) - as_they_are
        self._without_new_tests = follow_ups.without_new_tests(followed)
        helpers = sorted(self._helpers.difference(allowed, permitted, self._judged_paths()))
        return tuple(
            InputChange(path, "it is new among the tests, which use it", "added", test=True)
            for path in helpers
        ) + tuple(
            InputChange(one.path, one.input.why, one.kind, one.understood, one.input.kind == "test")
            for one in self._judged.changes
            if one.path not in allowed and one.path not in permitted
        )

    def _with_new_regions(self, targets: Sequence[Target], files: Collection[str]) -> Inputs:
        """The inputs before, and product files that have tests inside only since the run.

        Where nothing decided before, as in a project that was begun in it, those of after.
        """
        inputs, now = (self.inputs(tree, targets, files) for tree in (self._old, self._new))
        if not inputs.deciding:
            return now
        changed = {path for path in self._total.modified if not inputs.input_at(path)}
        added = [one for one in now.deciding if one.region and one.path in changed]
        return replace(inputs, deciding=[*inputs.deciding, *added]) if added else inputs

    def _keep_old_commands(
        self, targets: Sequence[Target], permitted: Collection[str], inputs: Inputs
    ) -> set[str]:
        """Put commands that decide back in files that the PRD wants changed; return these files.

        The rest of such a file stays as the worker left it.
        """
        was, now = self._was, self._now
        shells = [target.shell for target in targets]
        replacements: dict[str, bytes] = {}
        for path in sorted(self._judged_paths().intersection(permitted)):
            before, after = was(path), now(path)
            if before is None or after is None or matches(path, self._may_change):
                continue
            kept = with_old_commands(path, before, after, shells, inputs.scripts, self.spec.wanted)
            if kept is not None:
                replacements[path] = kept
        self._judged = ProofChanges(
            [
                replace(one, old=replacements[one.path], understood="", partly=True)
                if one.path in replacements
                else one
                for one in self._judged.changes
            ],
            self._judged.unsure,
        )
        return set(replacements)

    def _freeable_data(self) -> set[str]:
        """Changed inputs that a passive sentence may free: tests, settings, golden files."""
        return {
            one.path
            for one in self._judged.changes
            if (one.input.kind in ("test", "config") and not one.input.region)
            or (one.input.kind == "fixture" and not family_of(one.path))
        }

    def wanted_paths(self, paths: Collection[str]) -> set[str]:
        """Those of these changed paths that the task allows, or that the PRD asks to change."""
        return self._asked(paths, [path for path in paths if not family_of(path)])

    def _asked(self, paths: Collection[str], data: Collection[str]) -> set[str]:
        """The same; `data` are the paths that a sentence in the passive voice frees as well."""
        text, may, paths = self.spec.wanted, self._may_change, [*paths]
        found = {path for path in paths if matches(path, may) or asked_in(text, path, paths)}
        return found | {path for path in data if data_asked_in(text, path, paths)}

    def _altered_where_more_was_asked_for(self, permitted: Collection[str]) -> set[str]:
        """Data into which the PRD wants more put, and which says something else besides."""
        text, paths = self.spec.wanted, self._total.all
        return {
            one.path
            for one in self._judged.changes
            if one.path in permitted
            and one.input.kind == "fixture"
            and not matches(one.path, self._may_change)
            and only_gets_more(text, one.path, paths)
            and not has_all_of(self._was(one.path) or b"", self._now(one.path) or b"")
        }

    def _changed_while_moving(self) -> set[str]:
        """Old and new paths of inputs that were only to be moved, but whose text differs now.

        Product code is not among them: what it says is the work, also where it moves.
        """
        text, total, paths = self.spec.wanted, self._total, self._total.all
        moved = {path for path in paths if moved_in(text, path, paths)}
        old_paths = sorted(moved & total.deleted & self._judged_paths())
        new_paths = sorted(moved & total.added)
        if not old_paths:
            return set()
        was, now = self._was, self._now
        others = {path: now(path) or b"" for path in sorted(total.added)}
        renames = renamed_modules(sorted(total.deleted), sorted(total.added))
        if all(says_the_same(path, was(path) or b"", others, renames) for path in old_paths):
            return set()
        return {*old_paths, *new_paths}

    def _gone_by_checks(self) -> set[str]:
        """Paths that a person's check wants gone: it is red as long as one of them exists."""
        found: set[str] = set()
        for check in filter(None, (criterion.check for criterion in self.spec.criteria)):
            if check.kind == "file" and check.exists is False:
                found.add(posixpath.normpath(check.path))
            elif check.kind == "command" and check.expect_exit == 0:
                names = wanted_gone(check.run)
                found |= {in_repo(name, check.cwd) for name in names}
        return found

    def permitted(self, allowed: Collection[str]) -> frozenset[str]:
        """Changed inputs of the latest `changes` that the task or the PRD permits to change.

        Those that a person allowed after looking (`allowed`) are not among them.
        """
        return frozenset(self._judged_paths() & self._settled).difference(allowed)

    def adapted(self, allowed: Collection[str]) -> frozenset[str]:
        """Changed inputs that the PRD names and that may be adapted, but may not ask for less."""
        return (self.permitted(allowed) | self._adapted).difference(allowed)

    def rewritten_data(
        self, world: SnapshotTrees, target: Target, *, person: bool = False
    ) -> list[str]:
        """Data that the PRD or the task permits to change and that exists in both trees.

        With `person`, so is what a person allowed after looking.
        """
        inputs = self.inputs(world.old, [target])
        there = world.old_paths & self.snapshots.list(world.new).keys()
        permitted = self.permitted(() if person else world.allowed)
        data = [path for path in sorted(permitted) if not family_of(path)]
        return [path for path in data if path in there and inputs.input_at(path)]

    def changed_beside(self, world: SnapshotTrees, target: Target) -> list[str]:
        """Changed code that only tests use, where the task names other code as the work.

        So are files that may be tests, unless the task names them.
        """
        inputs = self.inputs(world.old, [target])
        changed = {path for path in world.product if path in inputs.beside}
        if unsure := {path for path in world.product if inputs.is_unsure(path)} - changed:
            code = (path for path in world.old_paths - unsure if family_of(path))
            named = {path for path in (*code, *unsure) if self._is_named(path)}
            if any(inputs.input_at(path) is None for path in named - unsure):
                changed |= unsure - named
        return sorted(changed - set(world.allowed) - self._settled)

    def _is_named(self, path: str) -> bool:
        return has_word(posixpath.basename(path), self.spec.wanted)

    def unsure(self) -> tuple[str, ...]:
        """Changed paths of the latest `changes` that are taken as product but may decide."""
        return tuple(path for path, _ in self._judged.unsure)

    def _judged_paths(self) -> set[str]:
        return {one.path for one in self._judged.changes}

    def _with_wanted_removals(self) -> set[str]:
        """Test files that only lost tests that the PRD wants removed.

        It names the tests, or wants code removed that they use.
        """
        found: set[str] = set()
        gone: set[tuple[str, str]] = set()
        was, now = self._was, self._now
        tests = {one.path for one in self._judged.changes if not one.input.region} | self._helpers
        code, alive = removed_code(self.spec.wanted, self._total, tests, was, now)
        for path in sorted(self._judged_paths() - self._total.added):
            before, after = was(path), now(path)
            if before is None:
                continue
            if names := tests_gone_with(path, code, before, after, alive):
                gone |= {(path, own_name(name)) for name in names}
                found.add(path)
            elif after is not None and lost_as_asked(self.spec.wanted, path, before, after):
                found.add(path)
        self._gone_with_code = frozenset(gone)
        return found

    def followed_files(self) -> Collection[str]:
        """Files of tests that follow the work, and that have new tests or imports besides."""
        return self._without_new_tests.keys()

    def _new_helpers(self, before: Inputs) -> frozenset[str]:
        """New files in folders that held tests and nothing else: helpers, fixtures, doubles.

        So is what lies beside new expected data in a folder that is new: the rest of a case.
        """
        of_tests: set[str] = set()
        of_product: set[str] = set()
        for path in self.snapshots.list(self._old):
            if path.endswith(LOCK_OF_VENDOR):
                continue  # it lies above modules of product and tests alike
            counted = before.input_at(path)
            folders = of_tests if counted is not None and not counted.region else of_product
            folders.add(posixpath.dirname(path))
        test_folders = of_tests - of_product - {""}
        cases = {
            posixpath.dirname(path)
            for path in self._total.added
            if (found := before.input_at(path)) and found.kind == "fixture"
        }
        test_folders |= cases - of_tests - of_product - {""}
        return frozenset(
            path
            for path in self._total.added
            if any(str(above) in test_folders for above in PurePosixPath(path).parents)
        )

    def product(self) -> tuple[str, ...]:
        """Changed paths that are no inputs of the proof, or of which only a region is one."""
        whole = {one.path for one in self._judged.changes if not one.input.region} | self._helpers
        return tuple(path for path in self._total.all if path not in whole)

    def counts(self, path: str, target: Target) -> bool:
        """Whether a path was an input of the proof before, for this command."""
        return self.inputs(self._old, [target]).input_at(path) is not None

    def runs_old_files(self, target: Target) -> bool:
        """Whether a command could decide something before: a test or program of it exists."""
        inputs = self.inputs(self._old, [target])
        return any(one.exists and one.kind in ("test", "runner") for one in inputs.deciding)

    def may_be_gone(self) -> frozenset[str]:
        """Paths that the PRD, a check or a person wants gone, moved or changed."""
        return self._settled | self._gone_by_checks()

    def looked_at_and_gone(self, target: Target) -> list[str]:
        """Paths that a command names, that existed before, and that are gone but not wanted so."""
        wanted = self.may_be_gone()
        before, after = (
            {*tree, *folders_of(tree)} for tree in map(self.snapshots.list, (self._old, self._new))
        )
        named = {
            posixpath.normpath(posixpath.join(target.cwd, step.folder, word))
            for step in steps_of(target.shell)
            for word in step.words[1:]
            if not word.startswith("-")
        }
        return sorted((named & before).difference(after, wanted))

    def is_of_the_worker(self, target: Target, red_with_old: bool) -> bool:
        """Whether what decides for this command did not exist before the run and does now.

        A command that only asks which files exist, or what they contain, is its author's.
        """
        if self.runs_old_files(target):
            return False
        if self.new_programs(target):
            return True
        if not red_with_old or asks_for_paths(target.shell):
            return False
        return not only_reads(target.shell) or self._has_unwanted_tests()

    def _has_unwanted_tests(self) -> bool:
        """Whether there are changed tests that nobody asked for."""
        return any(
            one.input.kind == "test"
            and one.path not in self._settled
            and one.path not in self._added_to
            and not self.is_wanted_new(one.path)
            for one in self._judged.changes
        )

    def _with_wanted_tests(self) -> Iterator[str]:
        """Files to which the PRD wants tests added, and which only got tests that ask something."""
        was, now = self._was, self._now
        for one in self._judged.changes:
            language, before, after = language_of(one.path), was(one.path), now(one.path)
            if one.input.kind != "test" or language is None or before is None or after is None:
                continue
            old_tests, new_tests = definitions(before, language), definitions(after, language)
            added = [find_test(after, language, name) for name in new_tests.keys() - old_tests]
            if (
                added
                and all(new_tests.get(name) == text for name, text in old_tests.items())
                and all(found is not None and _asks_something(found) for found in added)
                and asks_to_add(self.spec.wanted, one.path)
            ):
                yield one.path

    def steered_as_wanted(self) -> bool:
        """Whether the PRD asks for every input that changed in the latest `changes`."""
        unsettled = self._judged_paths() - self._settled
        return all(map(self.is_wanted_new, unsettled))

    def is_wanted_new(self, path: str) -> bool:
        """Whether the PRD asks by name for a file to be added, or moved to this path."""
        text = self.spec.wanted
        return wanted_new(text, path) or asked_in(text, path)

    def new_programs(self, target: Target) -> list[str]:
        """New files that decide for a command: tests, programs, recipes, expected data."""
        now = self.inputs(self._new, [target])
        return sorted(
            path
            for path in self._total.added
            if (one := now.input_at(path)) and one.kind in ("test", "runner", "recipe", "fixture")
        )

    def decided_by_the_worker(self, target: Target) -> list[str]:
        """New programs of a command, and changed inputs that nobody asked for."""
        unsettled = self._judged_paths() - self._settled
        return sorted({*self.new_programs(target), *unsettled})

    def may_go(self, name: str, file: str, *, passed: bool = False) -> bool:
        """Whether a test may be gone: its file may change, or the PRD names the test or its case.

        A test that `passed` before the run may also go with the code that it was a test of, and one
        that asks nothing may go. The case of `test_price[JPY]` is "JPY".
        """
        parts = parts_of(PARAMETERS.sub("", name))
        parts += [word for part in parts for word in re.split(r"[./\s]", part)]
        if passed and any(
            test in parts and (not file or file == path) for path, test in self._gone_with_code
        ):
            return True
        if file and (file in self._settled or matches(file, self._may_change)):
            return True
        if asks_to_remove(self.spec.wanted, name) or (passed and self._is_placeholder(name, file)):
            return True
        case = re.search(r"\[([^\[\]]+)\]$", name)
        if not case:
            return False
        words = [word for word in re.split(r"[-_,\s]+", case[1]) if len(word) > 1]
        return any(has_word(word, self.spec.wanted) for word in words)

    def _is_placeholder(self, name: str, file: str) -> bool:
        """Whether a test asked nothing before the run."""
        language, before = language_of(file), self._was(file) if file else None
        found = find_test(before, language, name) if language and before is not None else None
        return found is not None and asks_nothing(found)


def _asks_something(found: Found) -> bool:
    """Whether a test asserts more than constants, or has helpers that may."""
    asserts = asserts_of(found)
    operands = [part for one in asserts for side in one.operands for part in walk(side)]
    return any(one.type in NAMES for one in operands) or bool(not asserts and names_called(found))


def _is_product_too(path: str, read: ReadFile) -> bool:
    """Whether only a region of a file is tests: a test module in Rust, examples in docstrings."""
    language, source = language_of(path), read(path)
    if language is None or source is None:
        return False
    return any(region.kind != "main" for region in regions_of_tests(source, language))


def with_links(inputs: Inputs, tree: str, snapshots: Snapshots) -> Inputs:
    """The same inputs, with the files and folders of the tree to which links among them lead."""
    listed = snapshots.list(tree)
    links = [path for path, (mode, _) in listed.items() if mode == LINK]
    folders = folders_of(listed) if links else set()
    found: list[Input] = []
    for path in links:
        counted, target = inputs.input_at(path), snapshots.leads_to(tree, path)
        if counted is None or target is None:
            continue
        why = f"{path} leads to it; {counted.why}"
        if target in listed:
            found.append(Input(target, why, counted.kind))
        elif target in folders:
            found.append(Input(f"{literal(target)}/**", why, counted.kind, old_only=True))
    return replace(inputs, deciding=[*inputs.deciding, *found]) if found else inputs
