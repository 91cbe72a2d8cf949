"""Slips in a PRD: what would lose a check or a criterion is an error with its line."""

from __future__ import annotations

import pytest

from agentrunner.config.prd import HEADINGS, read_criteria
from agentrunner.errors import UsageError


def refused(text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_criteria(text, "p.md")
    return caught.value


@pytest.mark.parametrize(
    "item",
    [
        "- a (chekc: `pytest -q`)",
        "- a (checks: `pytest -q`)",
        "- a (Checked: `pytest -q`).",
        "- a (test: `pytest -q`)",
        "- a (tests: pytest -q)",
        "- a (verify: `pytest -q`)",
        "- a (verified by: `pytest -q`)",
        "- a (run: `pytest -q`)",
        "- a （chekc： `pytest -q`）",
        "- a（確認方法：`pytest -q`）",
        "- a (check `pytest -q`)",
        "- a (test `test_a`)",
        "- a (verified by `pytest -q`).",
        "- a\n  chekc: `pytest -q`",
        "- a\n  verify: `pytest -q`",
        "- a\n  - tests: `pytest -q`",
    ],
)
def test_a_near_miss_of_check_is_an_error_with_its_line(item: str) -> None:
    error = refused(f"# T\n\n## Acceptance criteria\n- first\n{item}\n")
    assert error.code == "bad-check"
    assert error.path == f"p.md:{5 + item.count(chr(10))}"
    assert "check: `COMMAND`" in error.remedy


@pytest.mark.parametrize(
    "item",
    [
        "- a (see: `docs/api.md`)",
        "- a (see `docs/api.md`)",
        "- a (check `a` first)",
        "- a (as in test `test_a`)",
        "- a (option)",
        "- a (e.g. by `make`)",
        "- a (default: `5`)",
        "- a (checkout: `main`)",
        "- a (checklist: see the wiki)",
        "- a (run: by hand)",
        "- a (確認者：田中)",
        "- a test: it holds",
        "- it says `(chekc: x)`",
        "- a\n  Note: `x` is left alone",
        "- a\n  test: on a phone as well",
        "- a\n  ```\n  verify: `x`\n  ```",
    ],
)
def test_other_words_are_left_alone(item: str) -> None:
    (criterion,) = read_criteria(f"## Acceptance criteria\n{item}\n", "p.md")
    assert criterion.check is None


@pytest.mark.parametrize("item", ["- (optinal) a", "- [ ] a (Optioanl)", "- a (optionnal)."])
def test_a_near_miss_of_optional_is_an_error(item: str) -> None:
    error = refused(f"## Acceptance criteria\n{item}\n")
    assert (error.code, error.path, error.remedy) == ("bad-check", "p.md:2", "write (optional)")


@pytest.mark.parametrize(
    "heading",
    ["Requirements", "Criteria", "Success criteria", "Goals", "要件", "成功条件"],
)
def test_a_list_with_checks_under_another_heading_is_an_error(heading: str) -> None:
    error = refused(f"# T\n\n## {heading}\n- one\n- two (check: `pytest -q`)\n\n## Notes\n- x\n")
    assert (error.code, error.path) == ("lost-criteria", "p.md:5")
    read = ('"Acceptance criteria"', '"Definition of done"', '"Done when"')
    if not heading.isascii():
        read = ("「受け入れ条件」", "「受入基準」", "「完了の定義」")
    assert heading in error.message and all(one in error.remedy for one in read)
    error = refused(f"# T\n\n## {heading}\n- one\n  check: `pytest -q`\n")
    assert (error.code, error.path) == ("lost-criteria", "p.md:5")


@pytest.mark.parametrize("heading", ["# T\n", "# T\n## Tasks\n", ""])
def test_open_boxes_with_checks_are_criteria_whatever_stands_above_them(heading: str) -> None:
    found = read_criteria(f"{heading}\n- [ ] one (check: `true`)\n- [ ] two\n", "p.md")
    assert [(one.id, one.check is not None) for one in found] == [("AC-1", True), ("AC-2", False)]
    lost = refused(f"{heading}\n- [ ] one (check: `true`)\n- two (check: `true`)\n")
    assert lost.code == "lost-criteria" and "two" in (lost.source_line or "")
    lost = refused(f"{heading}\n- [ ] one (check: `true`)\n\n## Done when\n- two\n")
    assert lost.code == "lost-criteria"  # there is a section, so boxes elsewhere are not read


def test_checks_under_no_heading_are_an_error_too() -> None:
    assert refused("- one (check: `true`)\n").path == "p.md:1"


@pytest.mark.parametrize(
    ("heading", "read"),
    [
        ("Acceptance criterias", "Acceptance criteria"),
        ("Aceptance Criteria", "Acceptance criteria"),
        ("2. Definition of  Donne:", "Definition of done"),
    ],
)
def test_a_heading_that_is_nearly_one_is_an_error(heading: str, read: str) -> None:
    error = refused(f"# T\n\n## {heading}\n- one\n")
    assert (error.code, error.path) == ("lost-criteria", "p.md:3")
    assert read in error.remedy


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\n## Requirements\n- one\n- two\n",
        "# T\n\n## Checks\nWrite (check: `x`) behind an item.\n",
        "# T\n\n## Syntax\n```\n- one (check: `x`)\n```\n",
        "# T\n\n## Notes\n- write `(check: x)` behind it\n",
        "# Acceptance criteria of a good PRD and other thoughts\n- one\n",
    ],
)
def test_prose_code_and_lists_without_checks_are_left_alone(text: str) -> None:
    assert read_criteria(text, "p.md") == []


def test_every_heading_is_documented() -> None:
    from pathlib import Path

    root = Path(__file__).parents[3] / "docs"
    for page in ("reference/task-file.md", "how-to/prd.md"):
        told = (root / page).read_text("utf-8").casefold()
        assert [heading for heading in HEADINGS if heading not in told] == []
