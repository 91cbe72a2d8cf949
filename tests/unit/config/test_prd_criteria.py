"""Criteria read off a PRD: the grammar of docs/reference/task-file.md."""

from __future__ import annotations

import pytest

from agentrunner.config.markdown import detect_language
from agentrunner.config.prd import describe_check, read_criteria, read_item
from agentrunner.config.spec import Check, CriterionSpec
from agentrunner.errors import UsageError

ENGLISH = """\
# Register users over HTTP
POST /users creates a user. E-mail addresses are unique.

## Acceptance criteria
- [ ] A valid POST returns 201 and the id (check: `pytest -q tests/test_users.py::test_create`)
- [ ] A taken e-mail returns 409
      check: `pytest -q tests/test_users.py -k duplicate`
- [ ] The README documents the endpoint (check: file README.md contains "## Users")
- [ ] Error texts are friendly
- [ ] (optional) At most 5 requests a second per client
"""
JAPANESE = """\
# ユーザー登録 API
POST /users でユーザーを作成する。メールアドレスは一意とする。

## 受け入れ条件
- [ ] AC-1：正しい入力なら 201 と ID を返す（確認：`pytest -q tests/test_users.py::test_create`）
- [ ] AC-2：登録済みのメールアドレスなら 409 を返す
      確認：`pytest -q tests/test_users.py -k duplicate`
- [ ] AC-3：エラーメッセージが利用者に分かりやすい
- [ ] （任意）1 クライアントにつき毎秒 5 回までに制限する
"""

Row = tuple[str, bool, int | None, str, str]


def table(criteria: list[CriterionSpec]) -> list[Row]:
    return [(c.id, c.critical, c.line, c.description, describe_check(c.check)) for c in criteria]


def one(item: str) -> CriterionSpec:
    (criterion,) = read_criteria(f"## Done when\n{item}", "prd.md")
    return criterion


def refused(text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_criteria(text, "prd.md")
    return caught.value


def test_the_english_sample_gives_the_table_that_validate_prints() -> None:
    assert table(read_criteria(ENGLISH, "users-api.md", 5)) == [
        (
            "AC-1",
            True,
            9,
            "A valid POST returns 201 and the id",
            "pytest -q tests/test_users.py::test_create",
        ),
        (
            "AC-2",
            True,
            10,
            "A taken e-mail returns 409",
            "pytest -q tests/test_users.py -k duplicate",
        ),
        ("AC-3", True, 12, "The README documents the endpoint", 'README.md contains "## Users"'),
        ("AC-4", True, 13, "Error texts are friendly", "nothing to execute"),
        ("AC-5", False, 14, "At most 5 requests a second per client", "nothing to execute"),
    ]


def test_the_japanese_sample_gives_the_table_that_validate_prints() -> None:
    assert table(read_criteria(JAPANESE, "登録.md")) == [
        (
            "AC-1",
            True,
            5,
            "正しい入力なら 201 と ID を返す",
            "pytest -q tests/test_users.py::test_create",
        ),
        (
            "AC-2",
            True,
            6,
            "登録済みのメールアドレスなら 409 を返す",
            "pytest -q tests/test_users.py -k duplicate",
        ),
        ("AC-3", True, 8, "エラーメッセージが利用者に分かりやすい", "nothing to execute"),
        ("AC-4", False, 9, "1 クライアントにつき毎秒 5 回までに制限する", "nothing to execute"),
    ]


@pytest.mark.parametrize(
    "heading",
    [
        "# Acceptance Criteria",
        "###### acceptance criteria ##",
        "## 3. Acceptance Criteria",
        "## 3.2 Acceptance Criteria:",
        "## **Acceptance Criteria**",
        "## Definition of Done",
        "## Done when",
        "## 受け入れ条件",
        "## 受入条件",
        "## 受け入れ基準",
        "## 受入基準",
        "## 完了条件",
        "## 完了の定義",
        "## ３．受け入れ条件：",
        "## 受け入れ条件（Acceptance Criteria）",
        "Acceptance criteria\n===================",
        "Acceptance criteria\n---",
    ],
)
def test_a_heading_is_known(heading: str) -> None:
    assert [c.id for c in read_criteria(f"{heading}\n- one\n", "prd.md")] == ["AC-1"]


@pytest.mark.parametrize(
    "text",
    [
        "# Something\n- one\n",
        "```\n## Acceptance criteria\n- one\n```\n",
        "~~~~\n## Done when\n~~~\n- one\n~~~~\n",
        "<!--\n## Done when\n-->\n",
        "Acceptance criteria are nice\n- one\n",
        "    ## Done when\n",
    ],
)
def test_what_is_no_such_heading_gives_no_criteria(text: str) -> None:
    assert read_criteria(text, "prd.md") == []


def test_a_section_ends_with_the_next_heading_as_high_and_several_sections_add_up() -> None:
    text = "## Done when\n- a\n### Must\n- b\n## Notes\n- c\n# Definition of done\n1. d\n2) e\n"
    assert [c.description for c in read_criteria(text, "prd.md")] == ["a", "b", "d", "e"]


def test_continuation_lines_and_sub_items_are_detail() -> None:
    criterion = one("- [x] First\n  goes on\n  - sub\n    - deeper\n\n  later\n")
    assert criterion.description == "First"
    assert criterion.detail == "goes on\n- sub\n  - deeper\n\nlater"


def test_code_in_an_item_is_detail_and_a_paragraph_after_it_is_not() -> None:
    text = "## Done when\nAll of:\n- a\n  ```\n  - no item\n  ```\n\nAnd more text.\n- b\n"
    first, second = read_criteria(text, "prd.md")
    assert first.detail == "```\n- no item\n```"
    assert (second.description, second.detail) == ("b", "")


@pytest.mark.parametrize(
    ("item", "id_", "critical", "description"),
    [
        ("- [ ] AC-3: x", "AC-3", True, "x"),
        ("- [x] AC-3: x", "AC-3", True, "x"),
        ("- [X] ac-3：x", "AC-3", True, "x"),
        ("* **AC-3**: x", "AC-3", True, "x"),
        ("+ **AC-3:** x", "AC-3", True, "x"),
        ("1. AC-３： x", "AC-3", True, "x"),
        ("- [\u3000] x", "AC-1", True, "x"),
        ("- (optional) AC-3: x", "AC-3", False, "x"),
        ("- AC-3: (Optional) x", "AC-3", False, "x"),
        ("- x (optional)", "AC-1", False, "x"),
        ("- x（任意）", "AC-1", False, "x"),
        ("- x (optional) (check: `t`)", "AC-1", False, "x"),
        ("- x (check: `t`) (optional)", "AC-1", False, "x"),
        ("- HTTP-404: is returned", "AC-1", True, "HTTP-404: is returned"),
        ("- the `(optional)` mark is read", "AC-1", True, "the `(optional)` mark is read"),
        ("- ２つの（重要な）項目", "AC-1", True, "２つの（重要な）項目"),
    ],
)
def test_the_head_of_an_item(item: str, id_: str, critical: bool, description: str) -> None:
    criterion = one(item)
    assert (criterion.id, criterion.critical) == (id_, critical)
    assert criterion.description == description


@pytest.mark.parametrize(
    ("item", "check"),
    [
        ("- x (check: `a (b) c`)", Check(kind="command", run="a (b) c")),
        ("- x (check: ``echo `date` ``).", Check(kind="command", run="echo `date`")),
        ("- x（検証：｀npm test｀）", Check(kind="command", run="npm test")),
        ("- x（確認: `echo （全角）１`）。", Check(kind="command", run="echo （全角）１")),
        ("- x (CHECK: `a`)", Check(kind="command", run="a")),
        ("- x\n  check: `a`", Check(kind="command", run="a")),
        ("- x\n  - check: `a`", Check(kind="command", run="a")),
        ("- x\n  more (check: `a`)", Check(kind="command", run="a")),
        ("- x\n  確認：test `test_taken`", Check(kind="test", name="test_taken")),
        ("- x (check: test `a::b`)", Check(kind="test", name="a::b")),
        (
            '- x (check: file `docs/a b.md` contains "y")',
            Check(kind="file", path="docs/a b.md", contains="y"),
        ),
        (
            '- x (check: file R.md contains "say "hi" (１)")',
            Check(kind="file", path="R.md", contains='say "hi" (１)'),
        ),
        (
            "- x（確認：file README.md contains 「使い方」）",
            Check(kind="file", path="README.md", contains="使い方"),
        ),
        ("- x, and `check: y` is prose", None),
        ("- 動作確認: `make run` で動く", None),
        ("- spell-check: `aspell` is used", None),
        ("- Please check: this and that", None),
    ],
)
def test_a_check(item: str, check: Check | None) -> None:
    assert one(item).check == check


def test_a_check_line_is_not_detail() -> None:
    assert one("- x\n  before\n  check: `a`\n  after").detail == "before\nafter"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("# A\n\n## Done when\n- a\n  check: pytest -q -k duplicate\n", "bad-check", 5),
        ("## Done when\n- a (check: pytest)\n", "bad-check", 2),
        ("## Done when\n- a (check: )\n", "bad-check", 2),
        ("## Done when\n- a (check: ` `)\n", "bad-check", 2),
        ("## Done when\n- a (check: `x` and `y`)\n", "bad-check", 2),
        ("## Done when\n- a (check: test)\n", "bad-check", 2),
        ("## Done when\n- a (check: file x has `y`)\n", "bad-check", 2),
        ("## Done when\n- a (check: `x`) and more\n", "bad-check", 2),
        ("## Done when\n- a check: `x`\n", "bad-check", 2),
        ("## Done when\n- a (optional, check: `x`)\n", "bad-check", 2),
        ("## Done when\n- a (check: `x`)\n  check: `y`\n", "bad-check", 3),
        ("## 完了条件\n- a（確認：pytest）\n", "bad-check", 2),
        ("## Done when\n- AC-1: a\n- ac-1: b\n", "duplicate-id", 3),
        ("# A\n## Done when\n\nnothing\n", "empty-criteria", 2),
        ("## Done when\n- a\n## Definition of done\n", "empty-criteria", 3),
        ("## Done when\n- [ ] \n", "empty-criteria", 2),
        ("## Done when\n- [ ] AC-1: (check: `x`)\n", "empty-criteria", 2),
        (f"## Done when\n- {'x' * 5000}\n", "too-large", 2),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, code: str, line: int) -> None:
    error = refused(text)
    assert (error.code, error.path) == (code, f"prd.md:{line}")
    assert error.exit_code == 2


def test_a_check_without_backticks_says_how_to_write_it() -> None:
    error = refused("## Done when\n- AC-2: a\n  check: pytest -q -k duplicate\n")
    assert error.message == "the check of AC-2 has no command in backticks."
    assert error.source_line == "check: pytest -q -k duplicate"
    assert error.remedy == "check: `pytest -q -k duplicate`"


def test_ids_left_out_take_the_free_numbers_also_beside_the_task_file() -> None:
    written = [CriterionSpec(description="w"), CriterionSpec(id="AC-3", description="v")]
    text = "## Done when\n- a\n- AC-1: b\n- c\n"
    ids = [c.id for c in read_criteria(text, "prd.md", written=written)]
    assert ids == ["AC-2", "AC-3", "AC-4", "AC-1", "AC-5"]


def test_an_id_of_the_task_file_may_not_return_in_the_prd() -> None:
    with pytest.raises(UsageError, match="AC-3 is used twice"):
        read_criteria(
            "## Done when\n- AC-3: a\n",
            "prd.md",
            written=[CriterionSpec(id="AC-3", description="v")],
        )


def test_an_item_of_the_task_file_has_the_same_grammar() -> None:
    criterion = read_item("(optional) AC-9: x\nmore\ncheck: `a`", "task.yaml", 7)
    assert (criterion.id, criterion.critical, criterion.detail) == ("AC-9", False, "more")
    assert criterion.check == Check(kind="command", run="a")
    assert criterion.line == 7


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (None, "nothing to execute"),
        (Check(kind="vision"), "nothing to execute"),
        (Check(kind="command"), "nothing to execute"),
        (Check(kind="command", run="a", cwd="web", expect_exit=3), "a (in web) (exit code 3)"),
        (Check(kind="test"), "the test command"),
        (Check(kind="test", name="t"), "test t"),
        (Check(kind="file", path="a", exists=False), "a does not exist"),
        (Check(kind="file", path="a", exists=True), "a exists"),
        (Check(kind="file", path="a", matches="x+"), "a matches /x+/"),
        (Check(kind="pytest", file="t.py", test_name="a"), "pytest -q t.py::a"),
        (
            Check(kind="playwright", file="a.ts", test_name="logs in"),
            "playwright test a.ts logs in",
        ),
        (Check(kind="go-test", file="./x"), "go test ./x"),
        (Check(kind="npm-script", file="lint"), "npm run lint"),
        (
            Check(kind="diff", must_change=["a"], must_not_change=["b/**"]),
            "a changed, b/** unchanged",
        ),
    ],
)
def test_a_check_is_described(check: Check | None, said: str) -> None:
    assert describe_check(check) == said


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (JAPANESE, "ja"),
        ("", "en"),
        ("用户注册接口", "en"),
        ("Add a page called ユーザー to the English site, with all its many words.", "en"),
        ("```\nfor x in y: print(x) # long English code\n```\n直してください", "ja"),
    ],
)
def test_the_language_of_a_prd(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_open_boxes_are_criteria_where_no_heading_is_known_in_any_language() -> None:
    text = "# Korb\n\n## Akzeptanzkriterien\n- [ ] Die Summe zählt jedes Stück\n  je Zeile\n"
    text += "- [x] geplant\n- ohne Kasten\n\n## Später\n1. [ ] refund erstattet alles\n"
    read = read_criteria(text, "prd.md")
    assert [(c.id, c.description, c.detail, c.line) for c in read] == [
        ("AC-1", "Die Summe zählt jedes Stück", "je Zeile", 4),
        ("AC-2", "refund erstattet alles", "", 10),
    ]


def test_boxes_elsewhere_are_none_where_something_else_gives_criteria() -> None:
    text = "## Tasks\n- [ ] write it\n\n## Done when\n- it adds up\n"
    assert [c.description for c in read_criteria(text, "prd.md")] == ["it adds up"]
    written = [CriterionSpec(id="AC-1", description="it adds up")]
    assert read_criteria("## Tasks\n- [ ] write it\n", "prd.md", written=written) == written


def test_an_open_box_below_a_criterion_is_one_of_its_own() -> None:
    text = "## Done when\n- [ ] right (check: `true`)\n    - [ ] every piece\n      counts\n"
    text += "    - a remark\n- last\n"
    assert [(c.description, c.detail) for c in read_criteria(text, "prd.md")] == [
        ("right", ""),
        ("every piece", "  counts\n- a remark"),
        ("last", ""),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The tests pass", "All tests pass.", "All other tests still pass",
        "The test suite is green",
        "The existing unit tests continue to pass", "Alle Tests laufen durch", "Les tests passent",
        "Die übrigen Tests bleiben grün", "Todas las pruebas pasan", "既存のテストがすべて通る",
        "すべてのテストが成功すること。", "所有测试都通过",
    ],
)  # fmt: skip
def test_that_the_tests_pass_is_what_the_test_command_says(text: str) -> None:
    assert one(f"- [ ] {text}").check == Check(kind="test")


@pytest.mark.parametrize(
    "text",
    ["The tests for refunds pass", "Tests pass quickly", "Write tests", "The build is green"],
)
def test_what_says_more_than_that_the_tests_pass_is_left_to_the_planner(text: str) -> None:
    assert one(f"- [ ] {text}").check is None
