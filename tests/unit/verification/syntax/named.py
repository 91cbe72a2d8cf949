"""The test of a source that a name refers to."""

from agentrunner.verification.syntax.test_finder import find_test
from agentrunner.verification.syntax.test_spans import Found


def named(source: bytes, language: str, name: str) -> Found:
    """The test; there has to be one."""
    found = find_test(source, language, name)
    assert found is not None, name
    return found
