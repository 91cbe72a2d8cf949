"""Tests inside product files: Rust's test modules, examples in docstrings and the like."""

from __future__ import annotations

from agentrunner.text.unicode import to_bytes
from agentrunner.verification.inputs.kept_part import Kept, Surrounding, old, whole
from agentrunner.verification.inputs.kept_tests import NEW_TESTS, keep_tests
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.regions import regions_of_tests, with_regions_of


def keep_region(before: str, after: str, around: Surrounding) -> Kept:
    """Return the new product with the old tests of the same file."""
    language = language_of(around.path)
    if language is None:
        return old(before)
    was, now = to_bytes(before), to_bytes(after)
    old_tests, new_tests = _tests_in(was, language), _tests_in(now, language)
    restored = with_regions_of(now, was, language)
    if old_tests == new_tests:
        return whole(after, "the tests inside stay as they were", restored)
    added = [text for text in new_tests if text not in old_tests]
    same = [text for text in new_tests if text in old_tests] == old_tests
    names = [name for _, name, _ in old_tests]
    if same and all(kind != "main" and name not in names for kind, name, _ in added):
        return whole(after, NEW_TESTS, restored)
    joined = ["\n".join(text.decode("utf-8", "replace") for _, _, text in part)
              for part in (old_tests, new_tests)]  # fmt: skip
    if keep_tests(joined[0], joined[1], around).understood:
        return whole(after, NEW_TESTS, restored)
    return Kept(restored)


def _tests_in(source: bytes, language: str) -> list[tuple[str, str, bytes]]:
    return [
        (one.kind, one.name, source[one.start : one.end])
        for one in regions_of_tests(source, language)
    ]
