"""Tests that stood and ask for less now."""

from __future__ import annotations

from agentrunner.verification.inspection.weaker_tests import weaker_test

ASKED = "`total` ignores the count of a line. Fix that and add tests."
OLD = "def test_save():\n    save(1)\n    assert load() == 1\n    assert count() == 2\n"


def _weaker(new: str, asked: str = ASKED, path: str = "test_a.py", old: str = OLD) -> str:
    was, now = {path: old.encode()}, {path: new.encode()}
    return weaker_test([path], was.get, now.get, asked)


def test_an_assertion_that_is_gone_or_compares_no_more() -> None:
    assert "`test_save` of test_a.py does not ask for `assert load() == 1`" in _weaker(
        OLD.replace("    assert load() == 1\n", "")
    )
    assert "assert count() == 2" in _weaker(OLD.replace("count() == 2", "count()"))
    guard = "\tif got := f(); got != 7 {\n\t\tt.Fatal(got)\n\t}\n"
    go = f"package a\n\nfunc TestA(t *testing.T) {{\n{guard}}}\n"
    assert "`TestA`" in _weaker(go.replace(guard, "\tf()\n"), path="a_test.go", old=go)


def test_what_moved_grew_or_was_asked_for() -> None:
    moved = OLD.replace("    assert load() == 1\n", "")
    assert _weaker(f"{moved}\ndef test_load():\n    assert load() == 1\n") == ""
    assert _weaker(f"{OLD}    assert more()\n") == ""
    assert _weaker(OLD.replace("== 1", "== 1.0")) == ""
    assert _weaker(moved, "Simplify the tests of save.") == ""


def test_the_rows_of_a_table_ask_what_assertions_asked() -> None:
    old = "def test_f():\n    assert f(2) == 4\n    assert f(3) == 9\n"
    table = (
        '@pytest.mark.parametrize(("a", "b"), [(2, 4), (3, 9)])\n'
        "def test_f(a, b):\n    assert f(a) == b\n"
    )
    assert _weaker(table, old=old) == ""
    assert _weaker(table.replace(", (3, 9)", ""), old=old)
    assert _weaker(table.replace(" == b", ""), old=old)
