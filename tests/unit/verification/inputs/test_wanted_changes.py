import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrunner.verification.inputs.wanted_changes import asked_in, data_asked_in
from agentrunner.verification.inputs.words_of_change import wanted_gone


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Rename tests/test_a.py to tests/test_b.py.", "tests/test_a.py"),
        ("Rename `tests/test_a.py` to `tests/test_b.py`.", "tests/test_b.py"),
        ("Please rename test_a.py to test_b.py", "tests/test_a.py"),
        ("Update the expected output in golden/a.txt.", "golden/a.txt"),
        ("- Change the greeting, and update golden/a.txt and golden/b.txt", "golden/b.txt"),
        ("Remove the test for discounts.", "tests/test_discounts.py"),
        ("Remove the tests for gift cards, since they are gone", "spec/gift_cards_spec.rb"),
        ("Delete tests/old/ altogether", "tests/old/test_x.py"),
        ("Move `tests/**` to checks/", "tests/test_x.py"),
        ("Regenerate the snapshots in src/__snapshots__/", "src/__snapshots__/a.snap"),
        ("Port tests/test_a.py to pytest", "tests/test_a.py"),
        ("tests/test_a.py を tests/test_b.py に改名する。", "tests/test_a.py"),
        ("tests/test_a.py を tests/test_b.py に改名する。", "tests/test_b.py"),
        ("golden/a.txt の期待値を更新してください", "golden/a.txt"),
        ("`tests/test_old.py` を削除する", "tests/test_old.py"),
        ("discount のテストを削除する", "tests/test_discount.py"),
        ("Delete shop.py and its tests tests/test_shop.py.", "tests/test_shop.py"),
        ("Remove it, shop.py, and the tests of both (tests/test_shop.py)", "tests/test_shop.py"),
        ("Remove shop.py and its tests in tests/test_shop.py", "tests/test_shop.py"),
        ("Delete shop.py and its tests (tests/test_shop.py).", "tests/test_shop.py"),
        ("Delete shop.py together with tests/test_shop.py.", "tests/test_shop.py"),
        ("Remove shop.py along with its test file tests/test_shop.py", "tests/test_shop.py"),
        ("Remove shop.py with its tests in tests/test_shop.py", "tests/test_shop.py"),
        ("Remove shop.py and the tests in `tests/test_shop.py`.", "tests/test_shop.py"),
        ("Modify tests/test_shop.py to expect 409.", "tests/test_shop.py"),
        ("Get rid of tests/test_shop.py.", "tests/test_shop.py"),
        ("Update __tests__/a.test.js to the new name", "__tests__/a.test.js"),
        ("Update **`__snapshots__/a.test.js.snap`**", "__snapshots__/a.test.js.snap"),
        ("Update __tests/test_a.py__ for that", "tests/test_a.py"),
        ("shop.py とそのテスト tests/test_shop.py を削除する。", "tests/test_shop.py"),
        ("shop.py と、対応するテスト（tests/test_shop.py）を削除する。", "tests/test_shop.py"),
        ("tests/test_shop.py と tests/test_cart.py を削除する。", "tests/test_shop.py"),
        ("Rewrite a.csv in lower case (check: `! grep -q '[A-Z]' a.csv`)", "a.csv"),
        ("Update tests/test_a.py: the count.", "tests/test_a.py"),
        ("Change tests/helper.rb so that it sets UTC.", "tests/helper.rb"),
        ("Adapt the tests to the new import in tests/test_a.py.", "tests/test_a.py"),
        ("Change the greeting to `Hello` in golden/a.txt", "golden/a.txt"),
        ("Update cart.py, tests/test_a.py and README.md.", "tests/test_a.py"),
        ("Move the tests to tests/test_b.py", "tests/test_b.py"),
        ("Update tests/test_a.py, cart.py must stay as it is", "tests/test_a.py"),
        ("Rewrite a.csv (check: `cp a.csv /tmp/b && ./migrate && diff a.csv /tmp/b`)", "a.csv"),
    ],
)
def test_asked_for(text: str, path: str) -> None:
    assert asked_in(text, path)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Make tests/test_shop.py pass.", "tests/test_shop.py"),
        ("make `tests/test_shop.py` pass", "tests/test_shop.py"),
        ("Change the prices so that tests/test_shop.py passes", "tests/test_shop.py"),
        ("Update shop.py until tests/test_shop.py is green", "tests/test_shop.py"),
        ("Update shop.py as in tests/test_shop.py", "tests/test_shop.py"),
        ("tests/test_shop.py must pass again. Update tests/test_shop.py", "tests/test_shop.py"),
        ("Fix tests/test_shop.py", "tests/test_shop.py"),
        ("Do not change tests/test_shop.py", "tests/test_shop.py"),
        ("Rename the function without changing tests/test_shop.py", "tests/test_shop.py"),
        ("Don't ever delete tests/test_shop.py.", "tests/test_shop.py"),
        ("Rename greet to hello. tests/test_shop.py covers it.", "tests/test_shop.py"),
        ("Remove the class. See tests/test_shop.py", "tests/test_shop.py"),
        ("- A user is renamed (check: `pytest tests/test_shop.py`)", "tests/test_shop.py"),
        ("Rename tests/test_a.py to tests/test_b.py", "tests/test_c.py"),
        ("Rename tests/test_a.py to tests/test_b.py", "other/test_a.py"),
        ("Remove the test for discounts", "tests/test_prices.py"),
        ("Do not remove the test for discounts", "tests/test_discounts.py"),
        ("Update a.txt", "golden/a.txt.bak"),
        ("The tests are moved later", "tests/test_shop.py"),
        ("tests/test_shop.py が通るように shop.py を変更する", "tests/test_shop.py"),
        ("tests/test_shop.py を通す", "tests/test_shop.py"),
        ("tests/test_shop.py を変更しないでください", "tests/test_shop.py"),
        ("tests/test_shop.py を変更せずに shop.py を更新する", "tests/test_shop.py"),
        ("", "tests/test_shop.py"),
        ("Delete shop.py and the tests in tests/test_shop.py pass", "tests/test_shop.py"),
        ("Delete shop.py and the test tests/test_cart.py shows it", "tests/test_cart.py"),
        ("Delete shop.py; its tests tests/test_shop.py stay as they are", "tests/test_shop.py"),
        ("Delete shop.py and run its tests tests/test_shop.py", "tests/test_shop.py"),
        ("Update a.txt. (check: `./run | diff - a.txt`)", "a.txt"),
        ("Update a.txt. (check: `grep -q -f a.txt out`)", "a.txt"),
        ("Update a.txt. (check: `sh a.txt && grep b a.txt`)", "a.txt"),
        ("shop.py を削除し、tests/test_shop.py は通ること。", "tests/test_shop.py"),
        ("Change nothing in tests/a.py.", "tests/a.py"),
        ("Update `total`, not tests/a.py.", "tests/a.py"),
        ("Update cart.py, tests/a.py must stay as it is.", "tests/a.py"),
        ("Update cart.py, tests/a.py and the README must stay as they are.", "tests/a.py"),
        ("Change only cart.py, tests/a.py stays.", "tests/a.py"),
        ("Remove what breaks tests/a.py.", "tests/a.py"),
        ("Delete the output that tests/a.py complains about.", "tests/a.py"),
        ("Edit cart.py, tests/a.py shows how.", "tests/a.py"),
        ("Adjust total to tests/a.py.", "tests/a.py"),
        ("Replace cart.py by one that works with tests/a.py.", "tests/a.py"),
        ("Convert the report of tests/a.py to JSON", "tests/a.py"),
        ("The output is adapted to tests/a.py", "tests/a.py"),
    ],
)
def test_not_asked_for(text: str, path: str) -> None:
    assert not asked_in(text, path)


def test_a_bare_name_frees_only_where_it_is_the_only_one() -> None:
    text = "Rename test_a.py to test_b.py"
    assert asked_in(text, "tests/test_a.py", ["tests/test_a.py", "a.py"])
    assert not asked_in(text, "tests/test_a.py", ["tests/test_a.py", "web/test_a.py"])


@given(st.text(max_size=300), st.text(max_size=40))
def test_it_never_raises(text: str, path: str) -> None:
    assert asked_in(text, path) in (True, False)


def test_long_texts_are_read_quickly() -> None:
    assert not asked_in("rename not " * 10_000 + "a/b " * 10_000, "tests/x.py")


def test_a_check_that_wants_a_path_gone_does_not_claim_it() -> None:
    said = "- Remove tests/test_v1.py. (check: `test ! -e tests/test_v1.py`)"
    assert asked_in(said, "tests/test_v1.py")
    assert not asked_in("- Remove tests/a.py. (check: `pytest tests/a.py`)", "tests/a.py")
    assert wanted_gone("! test -e ./a.py && [ ! -f b/c.py ] && test -e d") == {"a.py", "b/c.py"}


GOLDEN = "tests/golden.txt"


@pytest.mark.parametrize(
    "text",
    [
        "report.sh prints rows. The golden file tests/golden.txt is updated accordingly.",
        "The golden file\n`tests/golden.txt` has to be regenerated, as the output is another.",
        "- Make sure that tests/golden.txt gets updated",
        "The header is not printed any more, and tests/golden.txt is changed to match.",
        "tests/golden.txt and tests/in.csv are adapted.",
        "Files tests/in.csv and golden.txt should be updated by running gen.py",
        "golden.txt needs updating.",
        "The expected file tests/golden.txt gets the line `sum 650`.",
        "The output goes to tests/golden.txt, which has to be regenerated.",
        "tests/in.csv and its tests in tests/golden.txt are removed.",
        "出力が変わる。`tests/golden.txt` も更新される。",
        "tests/golden.txt は新しい出力に合わせて更新すること",
        "tests/golden.txt の内容が再生成されている。",
    ],
)
def test_data_that_is_to_be_changed_in_the_passive_voice(text: str) -> None:
    assert data_asked_in(text, GOLDEN)


@pytest.mark.parametrize(
    "text",
    [
        "The golden file tests/golden.txt says what is printed.",
        "tests/golden.txt is compared with the output, which is updated.",
        "tests/golden.txt is not updated.",
        "Neither report.sh nor tests/golden.txt is changed.",
        "It is forbidden that tests/golden.txt is changed.",
        "When the input changes, tests/golden.txt is updated.",
        "tests/golden.txt is updated\nwhenever a person releases.",
        "tests/golden.txt is updated by release.sh.",
        "tests/golden.txt is extended in the next release.",
        "tests/golden.txt is updated. The output equals it (check: `diff tests/golden.txt out`)",
        "tests/golden.txt is unchanged. report.sh is updated.",
        "tests/golden.txt gets the total of all rows.",
        "other/golden.txt is updated.",
        "tests/golden.txt must pass and is updated",
        "tests/golden.txt は変更されない。",
        "tests/golden.txt は変更しない。report.sh を更新する。",
        "tests/golden.txt が古いので report.sh は変更する。",
        "tests/golden.txt は自動で更新される。",
        "実行するたびに tests/golden.txt が更新される。",
        "",
    ],
)
def test_data_that_is_only_spoken_of(text: str) -> None:
    assert not data_asked_in(text, GOLDEN)


def test_long_texts_about_data_are_read_quickly() -> None:
    assert not data_asked_in("tests/golden.txt, " * 10_000, GOLDEN)
    assert not data_asked_in("a is " + "tests/golden.txt is " * 10_000, GOLDEN)
