import pytest

from agentrunner.verification.evidence import checks
from agentrunner.verification.evidence.checks import PatternError, search


def test_a_pattern_is_found_where_it_first_matches() -> None:
    assert search(r"^b+$", "a\nbb\nb\n") == 2
    assert search("x", "abc") == -1


def test_what_is_no_pattern_says_so() -> None:
    with pytest.raises(PatternError, match="cannot be read"):
        search("(", "a")


def test_a_pattern_that_takes_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "LIMIT_SEC", 0.5)
    with pytest.raises(PatternError, match="takes longer"):
        search(r"(a+)+$", "a" * 60 + "b")
