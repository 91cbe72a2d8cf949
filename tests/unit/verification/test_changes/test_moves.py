"""Tests that stand somewhere else now, word for word."""

import pytest

from agentrunner.verification.inputs.wanted_moves import moves_in, renames_in
from agentrunner.verification.results.model import Results, TestOutcomeKind, TestResult
from agentrunner.verification.test_changes.moved_imports import imports_follow
from agentrunner.verification.test_changes.moves import (
    asked_moves,
    not_moved,
    renamed_modules,
    says_the_same,
)
from agentrunner.verification.test_changes.renamed_names import names_follow

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
    return not_moved([OLD], results(OLD), now, cwd, (old_tree.get, new_tree.get))


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
    assert not_moved([OLD], before, now, ".", (tree.get, tree.get)) == [OLD]


def test_what_cannot_be_read_has_not_moved() -> None:
    now = results("tests/test_b.py::test_total")
    assert not_moved([OLD], results(OLD), now, ".", (lambda _: None, lambda _: None)) == [OLD]


IN_PYTHON = b"""from ..shop import total
from tests.helper import same


def test_total():
    assert same(total([1, 2]), 3)


def test_nothing():
    assert total([]) == 0
"""
IN_SCRIPT = b"""const { total } = require('../src/shop');
test('total', () => { expect(total([1])).toBe(1); });
"""
IN_PHP = b"""<?php
require_once __DIR__ . '/../src/Cart.php';
class CartTest extends TestCase {
    public function testTotal() { $this->assertSame(3, Cart::total([1, 2])); }
}
"""
DATA = b"1,2\n"


@pytest.mark.parametrize(
    ("path", "before", "other", "change", "same"),
    [
        ("a/tests/t.py", IN_PYTHON, "a/tests/cart/t.py", (b"..shop", b"...shop"), True),
        ("a/tests/t.py", IN_PYTHON, "a/tests/cart/t.py", (b"..shop", b"..fake"), False),
        ("a/tests/t.py", IN_PYTHON, "a/tests/u.py", (b"total([]) == 0", b"not total([])"), False),
        ("a/tests/t.py", IN_PYTHON, "a/tests/u.py", (b"def test_nothing", b"def nothing"), False),
        ("a/tests/t.py", IN_PYTHON, "a/tests/u.py", (b"tests.helper", b"shop.helper"), False),
        ("test/t.js", IN_SCRIPT, "test/cart/t.js", (b"../src", b"../../src"), True),
        ("test/t.js", IN_SCRIPT, "test/cart/t.js", (b"toBe(1)", b"toBeTruthy()"), False),
        ("tests/T.php", IN_PHP, "tests/Cart/T.php", (b"/../src", b"/../../src"), True),
        ("tests/T.php", IN_PHP, "tests/Cart/T.php", (b"/../src", b"/../../fake"), False),
        ("tests/T.php", IN_PHP, "tests/U.php", (b"assertSame(3", b"assertSame(2"), False),
        ("data/a.csv", DATA, "tests/data/a.csv", (b"", b""), True),
        ("data/a.csv", DATA, "tests/data/a.csv", (b"1", b"2"), False),
    ],
)
def test_a_moved_file_keeps_what_it_says(
    path: str, before: bytes, other: str, change: tuple[bytes, bytes], same: bool
) -> None:
    moved = before.replace(*change, 1) if change[0] else before
    assert says_the_same(path, before, {other: moved, "unrelated.md": b"x"}) is same


@pytest.mark.parametrize(
    ("text", "old", "new", "pair"),
    [
        ("Move package count to internal/count.", "count/a.go", "internal/count/a.go",
         ("count", "internal/count")),
        ("Move `ledger.money` to `ledger.core.money`.", "src/ledger/money.py",
         "src/ledger/core/money.py", ("ledger.money", "ledger.core.money")),
        ("`src/` becomes `lib/`.", "src/index.js", "lib/index.js", ("src", "lib")),
        ("Rename money.py to amounts.py.", "src/money.py", "src/amounts.py", ("money", "amounts")),
        ("Move cart.py to shop/.", "cart.py", "shop/cart.py", ("cart", "shop.cart")),
    ],
)  # fmt: skip
def test_a_module_that_moves_as_wanted(
    text: str, old: str, new: str, pair: tuple[str, str]
) -> None:
    assert pair in asked_moves(moves_in(text), text, [old], [new])


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("Move package count to internal/count.", "count/a.go", "internal/count/right/a.go"),
        ("Move package count to internal/count.", "total/a.go", "internal/count/a.go"),
        ("Move cart.py to shop/cart.py.", "cart.py", "shop/right/cart.py"),
        ("Do not move cart.py to shop/cart.py.", "cart.py", "shop/cart.py"),
        ("`src/` becomes `lib/`.", "src/a/index.js", "lib/b/index.js"),
    ],
)
def test_a_module_that_comes_elsewhere(text: str, old: str, new: str) -> None:
    assert not asked_moves(moves_in(text), text, [old], [new])


def test_only_what_moved_may_change_in_an_import() -> None:
    before = b"from cart import total\n\n\ndef test_a():\n    assert total([1]) == 1\n"
    moves = [("cart", "shop/cart"), ("cart", "shop.cart")]
    moved = before.replace(b"from cart", b"from shop.cart")
    assert imports_follow("tests/test_a.py", before, moved, moves)
    assert not imports_follow("tests/test_a.py", before, moved.replace(b"== 1", b"== 2"), moves)
    other = moved.replace(b"shop.cart", b"shop.right.cart")
    assert not imports_follow("tests/test_a.py", before, other, moves)
    assert not imports_follow("tests/test_a.py", before, b"from pytest import *\n" + moved, moves)


def test_only_what_is_called_otherwise_may_change_as_a_name() -> None:
    before = b"from a import render\n\n\ndef test_a():\n    assert render([]) == 'render'\n"
    names = renames_in("Rename `a.render` to `render_text`, no alias.")
    after = before.replace(b"import render", b"import render_text").replace(
        b"render(", b"render_text("
    )
    assert names_follow("tests/test_a.py", before, after, names)
    assert not names_follow(
        "tests/test_a.py", before, after.replace(b"'render'", b"'render_text'"), names
    )
    assert not names_follow("tests/test_a.py", before, after.replace(b"[]", b"[1]"), names)
    assert not renames_in("Do not rename `render` to `draw`.")


GO = b"""package cart
func TestTotal(t *testing.T) {
	if got := Total(nil); got != 0 {
		t.Errorf("Total() = %d", got)
	}
}
"""


@pytest.mark.parametrize(
    ("old", "new", "follows"),
    [
        (b"", b"", True),
        (b"TestSum", b"TestTotal", True),
        (b'"Sum() = %d"', b'"Total() = %d"', True),
        (b'"Sum() = %d"', b'"Sum = %d"', False),
        (b"!= 0", b"!= 1", False),
        (b"TestSum", b"helperSum", False),
    ],
)
def test_names_of_tests_and_quoted_calls_follow_a_name(
    old: bytes, new: bytes, follows: bool
) -> None:
    after = GO.replace(b"Total", b"Sum").replace(old, new)
    assert names_follow("cart_test.go", GO, after, {"Total": "Sum"}) is follows


def test_a_test_may_not_take_the_name_of_another_one() -> None:
    more = GO + b"func TestSum(t *testing.T) {\n\tt.Fatal()\n}\n"
    after = more.replace(b"Total", b"Sum")
    assert not names_follow("cart_test.go", more, after, {"Total": "Sum"})


def test_names_of_code_are_renamed_without_back_quotes_as_well() -> None:
    assert renames_in("# Rename byTag to sumByTag") == {"byTag": "sumByTag"}
    assert renames_in("Rename the function by_tag() to sum_by_tag.") == {"by_tag": "sum_by_tag"}
    assert renames_in("Rename the method total to sum_up.") == {"total": "sum_up"}
    assert renames_in("Rename calc.plus to calc.add.") == {"plus": "add"}
    assert renames_in("Rename `Stock#put` to `Stock#add`.") == {"put": "add"}
    for text in (
        "Rename utils.py to helpers.py.",
        "Don't rename byTag to sumByTag.",
        "Rename foo to bar.",
        "Rename byTag to src/by.js",
    ):
        assert not renames_in(text)


@pytest.mark.parametrize(
    ("required", "gone"),
    [
        ("{ displayName, userName }", False),
        ("{ displayName = () => 'Ann', userName }", True),
    ],
    ids=["as an alias", "with a value of its own"],
)
def test_a_renamed_test_may_require_the_old_name_as_well(required: str, gone: bool) -> None:
    old, new = "a.test.js > userName", "a.test.js > displayName"
    asks = "test('{0}', () => {{ equal({0}(1), 'Ann'); }});\n"
    before = "const { userName } = require('./user');\n" + asks.format("userName")
    after = f"const {required} = require('./user');\n" + asks.format("displayName")
    was = Results("node", (TestResult(old, "passed", file="a.test.js"),))
    now = Results("node", (TestResult(new, "passed", file="a.test.js"),))
    trees = {"a.test.js": before.encode()}, {"a.test.js": after.encode()}
    names = [("userName", "displayName")]
    lost = not_moved([old], was, now, ".", (trees[0].get, trees[1].get), names)
    assert bool(lost) is gone


def test_a_module_in_a_folder_is_known_by_its_whole_path_as_imports_write_it() -> None:
    found = renamed_modules(["util.py"], ["lists/chunks.py", "lists/__init__.py"])
    assert found[0] == ("util", "chunks")
    assert {("util", "lists.chunks"), ("util", "lists/chunks")} <= set(found)
    found = renamed_modules(["src/A.php", "t/ATest.php"], ["src/B.php", "t/BTest.php"])
    assert found[:2] == [("ATest", "BTest"), ("A", "B")]
    assert renamed_modules(["a/cart.py"], ["b/cart.py"]) == [
        ("a/cart", "b/cart"),
        ("a.cart", "b.cart"),
    ]


def test_a_rename_may_say_it() -> None:
    assert renames_in("`money.Fmt` is a bad name. Rename it to `Format`.") == {"Fmt": "Format"}
    assert renames_in("get_usr() is misspelt, rename it to get_user") == {"get_usr": "get_user"}
    assert not renames_in("`a` and `b` are bad names. Rename it to `c`.")
    assert not renames_in("`show` is bad. Rename it to something better.")
    assert not renames_in("Nobody should rename it to `Format`.")


def test_a_name_that_no_text_of_the_product_has_is_one_of_code_in_quotes_as_well() -> None:
    before = b"""def test_page():
    with patch("shop.views.get_usr"), patch.object(api, "get_usr"):
        assert page(1)["name"] == "get it"
"""
    names = {"get_usr": "get_user"}
    after = before.replace(b"get_usr", b"get_user")
    assert names_follow("test_a.py", before, after, names, {"get_usr"})
    assert not names_follow("test_a.py", before, after, names)
    key = before.replace(b'["name"]', b'["get_usr"]')
    assert not names_follow(
        "test_a.py", key, key.replace(b"get_usr", b"get_user"), names, {"get_usr"}
    )


def test_a_test_says_the_same_with_other_imports_of_the_same() -> None:
    before = b"""from shop import utils


def test_slug():
    assert utils.slug("a utils.b") == "a"
"""
    after = b"""from shop.utils import slug


def test_slug():
    assert slug("a utils.b") == "a"
"""
    assert says_the_same("test_a.py", before, {"test_b.py": after})
    for old, new in (
        (b"shop.utils", b"shop.fakes"),
        (b'== "a"', b'== "b"'),
        (b"a utils.b", b"a b"),
    ):
        assert not says_the_same("test_a.py", before, {"test_b.py": after.replace(old, new)})


def test_a_mock_of_a_module_follows_it() -> None:
    before = b"""import { load } from "./userService";
vi.mock("./userService");
it("loads", () => expect(load(1)).toBe("./userService"));
"""
    after = before.replace(b"./userService", b"./user-service", 2)
    moves = [("src/userService", "src/user-service"), ("userService", "user-service")]
    path = "src/greet.test.ts"
    same = before.replace(b'toBe("./userService")', b"toBe(1)")
    assert imports_follow(path, same, same.replace(b"userService", b"user-service"), moves)
    assert not imports_follow(path, same, same.replace(b"userService", b"fakes"), moves)
    assert not imports_follow(path, same, after, moves)
    assert not imports_follow(path, before, before.replace(b"userService", b"user-service"), moves)


def test_names_follow_without_a_grammar() -> None:
    before = b"""<?php
final class CartTest extends TestCase {
    public function testGetTot(): void {
        $cart->method('getTot')->willReturn(9);
        $this->assertSame('Total: 9', $cart->getTot());
    }
}
"""
    names = renames_in("Rename Cart::getTot to getTotal everywhere.")
    assert names == {"getTot": "getTotal"}
    after = before.replace(b"etTot'", b"etTotal'").replace(b"etTot(", b"etTotal(")
    assert names_follow("tests/CartTest.php", before, after, names, {"getTot"})
    assert not names_follow("tests/CartTest.php", before, after, names)
    other = after.replace(b"Total: 9", b"Total: 8")
    assert not names_follow("tests/CartTest.php", before, other, names, {"getTot"})


@pytest.mark.parametrize(
    ("path", "before"),
    [
        ("tests/run.sh", b"out=$(./app total 2 3)\n"),
        ("tests/run.sh", b"[ $(./app help) = total ]\n"),
        ("test/test_cart.rb", b"assert_equal [:total], cart.keys\n"),
        ("test/test_cart.rb", b"assert_equal <<~TXT, cart.to_s\n  total: 5\nTXT\n"),
        ("test/test_cart.rb", b"assert_equal %w[total], names\n"),
    ],
)
def test_a_plain_word_without_a_grammar_may_be_data(path: str, before: bytes) -> None:
    after = before.replace(b"total", b"sum_of")
    assert not names_follow(path, before, after, {"total": "sum_of"}, {"total"})


def test_several_names_are_renamed_in_one_sentence() -> None:
    text = "Rename `Acct` to `Account` and its method `put()` to `add()`, `Line` to `Row`."
    assert renames_in(text) == {"Acct": "Account", "put": "add", "Line": "Row"}
    assert renames_in("Rename `a` to `b`, and not `c` to `d`.") == {"a": "b"}
    assert renames_in("Don't rename `a` to `b` and `c` to `d`.") == {}
