"""Counts how often a file defines a test, of which some tools run only the last definition."""

from __future__ import annotations

from agentrunner.verification.syntax.languages import language_of, parse
from agentrunner.verification.syntax.test_finder import fitting
from agentrunner.verification.syntax.word_tests import tests_by_words


def number_of_definitions(source: bytes, path: str, name: str) -> int:
    """How many tests in a file can be the one with this reported name."""
    language = language_of(path)
    if language is None:
        return len(tests_by_words(source, path, name, None))
    parsed = parse(source, language)
    return 0 if parsed is None else sum(one.is_test for one in fitting(parsed, name))
