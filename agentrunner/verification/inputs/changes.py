"""Find the changed inputs of the proof, and what is put back to verify with. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from msgspec import Struct, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs import kept_compiled, kept_packages
from agentrunner.verification.inputs.kept_part import Keep, KeptPart, Surrounding, keep_lists
from agentrunner.verification.inputs.kept_tests import NEW_TESTS, keep_region, keep_tests
from agentrunner.verification.inputs.model import Input, Inputs
from agentrunner.verification.results.model import ReadFile
from agentrunner.verification.syntax.change_beside import is_beside
from agentrunner.verification.syntax.emptied_text_functions import C_ENDINGS, offered_in_c
from agentrunner.verification.syntax.languages import language_of

HOW: Sequence[tuple[re.Pattern[str], Keep]] = [
    (lazy_regex(pattern), keep)
    for pattern, keep in (
        (r"package\.json", kept_packages.keep_package_json),
        (r"package-lock\.json|npm-shrinkwrap\.json", kept_packages.keep_package_lock),
        (r"yarn\.lock|pnpm-lock\.yaml|bun\.lock", kept_packages.keep_text_lock),
        (r"pyproject\.toml", kept_packages.keep_pyproject),
        (r"(.*requirements.*|constraints.*)\.txt", kept_packages.keep_requirements),
        (r"(poetry|uv|pdm|Cargo)\.lock", kept_packages.keep_toml_lock),
        (r"go\.mod", kept_compiled.keep_go_mod),
        (r"go\.work", kept_compiled.keep_go_work),
        (r"go(\.work)?\.sum", kept_compiled.keep_go_sum),
        (r"modules\.txt", kept_compiled.keep_go_vendored),
        (r"Cargo\.toml", kept_compiled.keep_cargo),
        (r"pom\.xml", kept_packages.keep_pom),
        (r"Gemfile", kept_packages.keep_gemfile),
        (r"Gemfile\.lock", kept_packages.keep_gemfile_lock),
        (r"composer\.json", kept_packages.keep_composer),
        (r"composer\.lock", kept_packages.keep_composer_lock),
        (r"(GNU)?[mM]akefile|.*\.(mk|mak|make|am)|CMakeLists\.txt|.*\.cmake|meson\.build",
         keep_lists),
    )
]  # fmt: skip
"""Files of which only a part affects the proof, by name. All other files affect it as a whole."""

LOCK_OF_VENDOR = "vendor/modules.txt"
FIRST_LOCKS = ("go.sum", "Cargo.lock", "requirements.txt", "modules.txt")
"""Files whose first version is judged as an addition to an empty file."""

ChangeKind = Literal["added", "modified", "deleted"]


@dataclass(frozen=True)
class ProofChange:
    """One changed input of the proof."""

    path: str
    kind: ChangeKind
    input: Input
    """What it counts as, and why."""
    old: bytes | None
    """What replaces it when it is put back: the old file, or the new one with the deciding part as
    it was. None if the file is removed.
    """
    understood: str = ""
    """Why its change needs no question; "" if a run with the old tests has to tell."""
    partly: bool = False
    """Only a part of the file is an input. The rest is product, whose change `old` keeps."""


class ProofChanges(Struct, frozen=True):
    """What changed among the inputs of the proof."""

    changes: list[ProofChange] = field(default_factory=list)
    unsure: list[tuple[str, str]] = field(default_factory=list)
    """Changed paths that are taken as product but may decide, each with the reason."""

    @property
    def suspects(self) -> list[ProofChange]:
        """The changes that are put back before anybody is asked."""
        return [one for one in self.changes if not one.understood]

    @property
    def understood(self) -> list[ProofChange]:
        """The changes that need no question."""
        return [one for one in self.changes if one.understood]


def judge_changes(
    inputs: Inputs,
    before_paths: Collection[str],
    read_before: ReadFile,
    after_paths: Collection[str],
    read_after: ReadFile,
    changed: Collection[str],
) -> ProofChanges:
    """Return the changed inputs of the proof, each with why it counts and whether it is understood.

    Never raises. A file that cannot be parsed as what its name says is put back as a whole.
    """
    found: list[ProofChange] = []
    unsure: list[tuple[str, str]] = []
    kinds: dict[str, ChangeKind] = {
        path: "added" if path not in before_paths
        else "modified" if path in after_paths else "deleted"
        for path in changed
    }  # fmt: skip

    def takes_place(path: str) -> bool:
        """A program takes a function from its own sources before it looks into a library."""
        names = offered_in_c(read_after(path) or b"")
        others = (one for one in after_paths if one in before_paths and one.endswith(C_ENDINGS))
        return bool(names) and any(
            not names.isdisjoint(offered_in_c(read_after(one) or b""))
            for one in others
            if one != path and inputs.input_at(one) is None
        )

    def stood(folder: str) -> bool:
        below = [one for one in before_paths if one.startswith(f"{folder}/")]
        helps = any(
            entry.kind not in ("test", "config")
            for one in below
            if (entry := inputs.input_at(one)) is not None
        )
        return bool(below) and not helps and not any(one.startswith(f"{folder}/") for one in kinds)

    for path in sorted(kinds, key=lambda one: (get_args(ChangeKind).index(kinds[one]), one)):
        kind = kinds[path]
        if doubt := inputs.is_unsure(path):
            unsure.append((path, doubt.why))
        entry = inputs.input_at(path)
        if entry is None and kind == "modified" and read_before(path) == read_after(path):
            entry = doubt  # its text is no work where it may only be run no more
        if entry is None or _is_beside(entry, kind, path, read_before, read_after):
            continue
        around = Surrounding(
            path,
            inputs,
            entry,
            lambda one: one in after_paths,
            takes_place,
            stood,
            read_before,
            read_after,
        )
        found.append(_judged(around, kind, read_before, read_after, before_paths))
    return ProofChanges(_vendored_together(found), unsure)


def _is_beside(
    entry: Input, kind: ChangeKind, path: str, read_before: ReadFile, read_after: ReadFile
) -> bool:
    """Whether only functions of a file count, and the change leaves them as they were."""
    if kind != "modified" or not entry.compares or (language := language_of(path)) is None:
        return False
    before, after = read_before(path), read_after(path)
    if before is None or after is None:
        return False
    return is_beside(before, after, language, entry.compares)


def _vendored_together(found: list[ProofChange]) -> list[ProofChange]:
    """Treat Go's manifest, locks and vendored packages alike: all of a module are understood, or
    none.

    Go refuses a vendor/modules.txt that does not match go.mod.
    """
    for lock in [one for one in found if one.path.endswith(LOCK_OF_VENDOR)]:
        module = lock.path.removesuffix(LOCK_OF_VENDOR)
        if module and not module.endswith("/"):
            continue

        def belongs(one: ProofChange, module: str = module) -> bool:
            rest = one.path.removeprefix(module) if one.path.startswith(module) else ""
            return rest in ("go.mod", "go.sum") or rest.startswith("vendor/")

        if not all(one.understood for one in found if belongs(one)):
            found = [replace(one, understood="") if belongs(one) else one for one in found]
    return found


def _judged(
    around: Surrounding,
    kind: ChangeKind,
    read_before: ReadFile,
    read_after: ReadFile,
    before_paths: Collection[str],
) -> ProofChange:
    path, entry = around.path, around.entry
    before, after = read_before(path), read_after(path)
    if kind == "deleted" or after is None:
        return ProofChange(path, kind, entry, before)
    if kind == "added" or before is None:
        understood = _why_new_file_is_fine(around, after, before_paths)
        return ProofChange(path, kind, entry, None, understood)
    kept = kept_part(around, before, after)
    back = kept.content
    if kept.understood:
        back = before if kept.restored is None else kept.restored
    partly = entry.region or back not in (before, after)
    return ProofChange(path, kind, entry, back, kept.understood, partly)


def kept_part(around: Surrounding, before: bytes, after: bytes) -> KeptPart:
    """Return the new file with everything that affects the proof as it was."""
    keep = _keep_function(around)
    if keep is None:
        return KeptPart(before)
    try:
        return keep(before.decode("utf-8"), after.decode("utf-8"), around)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return KeptPart(before)


def _keep_function(around: Surrounding) -> Keep | None:
    if around.entry.region:
        return keep_region
    if around.entry.kind in ("config", "recipe") and (keep := _by_name(around.path)):
        return keep
    return keep_tests if around.entry.kind == "test" else None


def is_manifest(path: str) -> bool:
    """Whether a file is one of which a tool reads its part: dependencies, scripts, sources."""
    return _by_name(path) is not None


def _by_name(path: str) -> Keep | None:
    name = path.rpartition("/")[2]
    return next((keep for pattern, keep in HOW if pattern.fullmatch(name)), None)


def _why_new_file_is_fine(around: Surrounding, after: bytes, before_paths: Collection[str]) -> str:
    """Return why a new file needs no question: a test that replaces no file, a first lock file, a
    module in a folder of its own."""
    path, entry = around.path, around.entry
    if entry.kind == "test":
        stem = path.rpartition(".")[0]
        folder, _, name = path.rpartition("/")
        replaced = [f"{stem}/__init__.py", f"{stem}.py"]
        if name == "__init__.py":
            replaced = [f"{folder}.py"]
        replaces_other = any(one != path and one in before_paths for one in replaced)
        return "" if replaces_other or name == "__init__.py" else NEW_TESTS
    name = path.rpartition("/")[2]
    if name == "go.mod" and kept_compiled.is_new_module(path.rpartition("/")[0], around):
        return kept_compiled.OWN
    if entry.kind == "config" and name in FIRST_LOCKS:
        return kept_part(around, b"", after).understood
    return ""


def put_back(
    changes: ProofChanges, only: Collection[str] | None = None, *, understood: bool = False
) -> Mapping[str, bytes | None]:
    """Return the contents by path for "the new product with the old inputs"; None means remove.

    `only` limits it to some paths. Understood additions stay unless `understood` is set.
    """
    return {
        one.path: one.old
        for one in changes.changes
        if (only is None or one.path in only) and (understood or not one.understood)
    }
