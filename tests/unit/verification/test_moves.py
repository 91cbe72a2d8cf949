"""Tests that stand somewhere else now, word for word."""

from agentrunner.verification.moves import not_moved
from agentrunner.verification.results.model import Results, TestOutcomeKind, TestResult

OLD = "tests/test_a.py::test_total"
TEXT = b"def test_total():\n    assert total([1, 2]) == 3\n"
IMPORTED = b"from shop import total\n\n\n"


def results(*names: str, outcome: TestOutcomeKind = "passed") -> Results:
    return Results(
        "pytest", tuple(TestResult(n, outcome, file=n.partition("::")[0]) for n in names)
    )


def left(
    new: str, content: bytes, outcome: TestOutcomeKind = "passed", cwd: str = "."
) -> list[str]:
    """What has not moved, where the test's file has become `new` with this content."""
    prefix = "" if cwd == "." else f"{cwd}/"
    old_tree = {f"{prefix}tests/test_a.py": IMPORTED + TEXT}
    new_tree = {f"{prefix}{new.partition('::')[0]}": content}
    now = results(new, outcome=outcome)
    return not_moved([OLD], results(OLD), now, cwd, old_tree.get, new_tree.get)


def test_a_test_in_another_file_is_not_gone() -> None:
    assert left("tests/test_b.py::test_total", IMPORTED + TEXT) == []
    assert left("tests/test_b.py::test_total", IMPORTED + TEXT, cwd="api") == []


def test_comments_and_white_space_are_no_difference() -> None:
    content = IMPORTED + b"def test_total():\n    # adds up\n    assert total([1,2]) == 3\n"
    assert left("tests/test_b.py::test_total", content) == []


def test_one_that_asks_for_less_is_another() -> None:
    weak = IMPORTED + b"def test_total():\n    assert total([1, 2])\n"
    assert left("tests/test_b.py::test_total", weak) == [OLD]


def test_one_that_imports_from_elsewhere_is_another() -> None:
    content = b"from fake import total\n\n\n" + TEXT
    assert left("tests/test_b.py::test_total", content) == [OLD]


def test_one_that_does_not_pass_there_is_gone() -> None:
    content = IMPORTED + TEXT
    assert left("tests/test_b.py::test_total", content, outcome="skipped") == [OLD]


def test_a_name_that_was_there_before_is_no_new_place() -> None:
    now = results("tests/test_c.py::test_other")
    tree = {"tests/test_a.py": TEXT, "tests/test_c.py": TEXT}
    before = results(OLD, "tests/test_c.py::test_other")
    assert not_moved([OLD], before, now, ".", tree.get, tree.get) == [OLD]


def test_what_cannot_be_read_has_not_moved() -> None:
    now = results("tests/test_b.py::test_total")
    assert not_moved([OLD], results(OLD), now, ".", lambda _: None, lambda _: None) == [OLD]
