"""Works out the tree that a run hands over: what the worker left, without what git ignores."""

from __future__ import annotations

import re

from agentrunner.config.spec import TaskSpec
from agentrunner.git.snapshots import Snapshots
from agentrunner.registry import GRADLE_FILES
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.trees import Changes

MANIFEST = lazy_regex(
    r"(^|/)(package(-lock)?\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?"
    r"|pyproject\.toml|setup\.(py|cfg)|Pipfile(\.lock)?|poetry\.lock|uv\.lock|pdm\.lock"
    r"|[\w.-]*requirements[\w.-]*\.(txt|in)|requirements/[^/]+\.txt|environment\.ya?ml"
    r"|go\.(mod|sum|work)|Cargo\.(toml|lock)|pom\.xml|gradle\.lockfile"
    rf"|{'|'.join(map(re.escape, GRADLE_FILES))}"
    r"|Gemfile(\.lock)?|[^/]+\.gemspec|composer\.(json|lock)"
    r"|[^/]+\.(csproj|fsproj|sln)|mix\.(exs|lock)|CMakeLists\.txt|meson\.build|cpanfile)$"
)
"""Files in which package managers read what is to be installed."""
NATIVE = lazy_regex(r"\.(c|cc|cpp|cxx|h|hpp|pyx|pxd|rs|f90|f|m|swift)$")
"""Sources from which an installed package may have been compiled."""


def installs_anew(paths: list[str]) -> bool:
    """Whether a change of these paths requires the set-up to be run again."""
    return any(MANIFEST.search(path) or NATIVE.search(path) for path in paths)


class DeliveredTree:
    """Works out the tree to be verified. Everything here blocks."""

    def __init__(self, snapshots: Snapshots, spec: TaskSpec) -> None:
        self._snapshots = snapshots
        self._spec = spec

    def of(self, tree: str, before: str, total: Changes) -> tuple[str, list[str], list[str]]:
        """`tree` with ignored files as they were in `before`, and the paths put back so.

        An ignored file that the task names is part of the work, and stays. Those are returned last:
        they are handed over, and left out by `git add`.
        """
        ignored = self._ignored(tree, before, total)
        wanted = {path for path in ignored if self._is_named(path)}
        carried = sorted(wanted - total.deleted)
        put_back = sorted(ignored - wanted)
        if not put_back:
            return tree, [], carried
        old = self._snapshots.list(before)
        made = self._snapshots.combine(tree, {path: old.get(path) for path in put_back})
        return made, put_back, carried

    def _ignored(self, tree: str, before: str, total: Changes) -> set[str]:
        if not total.all:
            return set()
        hidden = self._hidden_by_worker(tree, before, total)
        return self._snapshots.ignored_paths(total.all) | hidden

    def _hidden_by_worker(self, tree: str, before: str, total: Changes) -> set[str]:
        """New files that the worker's own ignore rules keep out of what git would hand over."""
        rules = [path for path in total.all if path.rpartition("/")[2] == ".gitignore"]
        if not rules or not total.added:
            return set()
        return self._snapshots.ignored_by(tree, sorted(total.added)) - self._snapshots.ignored_by(
            before, sorted(total.added)
        )

    def _is_named(self, path: str) -> bool:
        text = self._spec.prd_text + "\n".join(
            f"{criterion.description} {criterion.check or ''}" for criterion in self._spec.criteria
        )
        name = re.escape(path)
        return bool(re.search(rf"(?<![\w./-]){name}(?![\w/-])", text))
