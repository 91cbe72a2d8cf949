"""The tree that a run hands over: what the worker left, without what git ignores."""

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


def delivered_tree(
    snapshots: Snapshots, spec: TaskSpec, tree: str, before: str, total: Changes
) -> tuple[str, list[str], list[str]]:
    """`tree` with ignored files as they were in `before`, and the paths put back so. Blocks.

    An ignored file that the task names is part of the work, and stays. Those are returned last:
    they are handed over, and left out by `git add`.
    """
    if not total.all:
        return tree, [], []
    ignored = snapshots.ignored_paths(total.all)
    added = sorted(total.added)
    if added and any(path.rpartition("/")[2] == ".gitignore" for path in total.all):
        # The worker's own ignore rules keep new files out of what git would hand over.
        hidden = snapshots.ignored_by(tree, added) - snapshots.ignored_by(before, added)
        ignored = ignored | hidden
    text = spec.prd_text + "\n".join(
        f"{one.description} {one.check or ''}" for one in spec.criteria
    )
    wanted = {
        path for path in ignored if re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", text)
    }
    put_back = sorted(ignored - wanted)
    old = snapshots.list(before) if put_back else {}
    made = snapshots.combine(tree, {path: old.get(path) for path in put_back}) if put_back else tree
    return made, put_back, sorted(wanted - total.deleted)
