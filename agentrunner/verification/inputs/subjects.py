"""What tests are about: the code that each one imports, and which of it only helps."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from agentrunner.verification.inputs.references import References
from agentrunner.verification.inputs.tree import folder_of


class Subjects:
    """By source file: the tests that import it."""

    def __init__(self, references: References, tests: Collection[str]) -> None:
        self._references = references
        self._tests = tests
        self._of: dict[str, set[str]] = {}

    def read(self, tests: Collection[str]) -> None:
        """Record what these tests import."""
        for test in tests:
            for path in self._references.imports(test)[0]:
                self._of.setdefault(path, set()).add(test)

    def __contains__(self, path: str) -> bool:
        return path in self._of

    def tests_of(self, path: str) -> set[str]:
        """Return the tests that import a file."""
        return self._of.get(path, set())

    def namesakes_of(self, path: str) -> list[str]:
        """Return the tests that import a file and are named after it.

        A test named after two files (`check_list` uses both `check` and `list`) is about the one
        that does not lie beside it.
        """
        return [
            test
            for test in self.tests_of(path)
            if paired(path, test)
            and not (
                folder_of(path) == folder_of(test)
                and any(
                    paired(one, test) and folder_of(one) != folder_of(test)
                    for one in self._references.imports(test)[0] - {path}
                )
            )
        ]

    def helps_only(self, path: str, imported: Mapping[str, set[str]]) -> bool:
        """Whether a file is a tool of tests, even if it has a test of its own.

        That is so if a test of another name uses it, that test is about code elsewhere, and no
        product code elsewhere uses anything in its folder. `imported` maps a file to the product
        code that imports it.
        """
        folder = folder_of(path)
        inner = f"{folder}/" if folder else ""
        if not inner or self._folder_is_used(inner, imported):
            return False
        others = [test for test in self.tests_of(path) if not paired(path, test)]
        aims = [self._subjects_of(test) for test in others]
        return any(aim and not any(one.startswith(inner) for one in aim) for aim in aims)

    def _folder_is_used(self, inner: str, imported: Mapping[str, set[str]]) -> bool:
        return any(
            path.startswith(inner) and any(not user.startswith(inner) for user in users)
            for path, users in imported.items()
        )

    def _subjects_of(self, test: str) -> list[str]:
        """Return what a test is about: code it is named after, else code without an own test."""
        files = [path for path in self._references.imports(test)[0] if path not in self._tests]
        named = [path for path in files if paired(path, test)]
        return named or [path for path in files if not self.namesakes_of(path)]


def paired(path: str, test: str) -> bool:
    """Whether a test is named after a source file: `greet.test.js` and `greet.js`."""
    stem = path.rpartition("/")[2].partition(".")[0]
    name = test.rpartition("/")[2].partition(".")[0]
    parts = [part for part in re.split(r"[_\-.]", test.rpartition("/")[2]) if part]
    named = name in (stem, f"{stem}Test", f"{stem}Spec", f"Test{stem}")
    return len(stem) > 1 and (named or (stem in parts and len(parts) <= 3))
