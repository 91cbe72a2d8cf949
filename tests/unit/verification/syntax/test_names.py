"""Names, definitions and assertions of tests, and tests that could never fail."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.calls import names_called, names_changed, users_of
from agentrunner.verification.syntax.definitions import definition, definitions
from agentrunner.verification.syntax.test_finder import all_tests
from agentrunner.verification.syntax.words import identifiers


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`total()` must add `MAX_ITEMS`.", {"total", "MAX_ITEMS"}),
        (
            "shop.Cart.add adds; see README.md, a/b_c.py, users.json and https://a.b/c_d?e_f=1",
            {"shop", "Cart", "add"},
        ),
        (
            "Call createUser(name) or snake_case, e.g. for GitHub over HTTP on macOS 10.15.",
            {"createUser", "snake_case"},
        ),
        (
            "関数total_priceは`Cart.sum`を返すこと。createUser()を呼ぶ。",
            {"total_price", "Cart", "sum", "createUser"},
        ),
        ("`pytest -q tests/test_users.py::test_create` passes", set()),
        ("`None`, `true` and `null` stay; `x` and --dry_run too", set()),
        ("`Cart#total` and `shop::price`", {"Cart", "total", "shop", "price"}),
        ("A plain sentence, with words (and more). It ends.", set()),
        ("", set()),
    ],
)
def test_names_of_code_in_a_sentence(text: str, names: set[str]) -> None:
    assert identifiers(text) == names


PYTHON = b'''
import pytest
from shop import total as t, other
RATE = 5
@pytest.fixture
def cart(db): return make_cart(db)
def helper(x): return deep(x)
def deep(x): return very_deep(x)
@deco
class TestT(Base):
    """doc"""
    z = 1
    def setUp(self): self.z = prepare()
    @pytest.mark.parametrize("a", [1])
    def test_x(self, cart, a):
        "doc"
        y = t(cart.items, RATE)  # c
        assert helper(y) == 5
    def test_y(self): pass
'''
SCRIPT = b"""
import { total as t, other } from "./a";
const { q: r } = require("./b");
describe("s", () => {
  let x;
  beforeEach(() => { x = prepare(); });
  it("y", async () => { const z = await t(x); expect(z.size).toBe(helper()); });
  describe("o", () => { beforeEach(() => nope()); it("p", () => {}) });
});
function helper() { return r(1) }
"""


def test_names_that_a_test_uses() -> None:
    names = names_called(all_tests(PYTHON, "python")[0])
    assert names >= {"total", "helper", "deep", "make_cart", "items", "RATE", "prepare"}
    assert not names & {"y", "a", "other", "very_deep", "test_y", "x"}
    names = names_called(all_tests(SCRIPT, "typescript")[0])
    assert names >= {"total", "helper", "q", "prepare", "size"}
    assert not names & {"other", "nope"}
    go = b"package a\nfunc TestA(t *testing.T) { got := shop.Total(1); help(t, got) }\n"
    go += b"func help(t *testing.T, x int) { check(x) }\n"
    names = names_called(all_tests(go, "go")[0])
    assert names >= {"shop", "Total", "help", "check"}
    assert "got" not in names


@pytest.mark.parametrize(
    ("language", "before", "after", "names"),
    [
        (
            "python",
            "X = 1\nY = 1\nclass A:\n    z = 1\n    def f(self): return 1\n    def g(self): pass\n",
            "X = 1\nY = 2\nclass A:\n    z = 1\n    def f(self): return 2\n"
            "    def g(self):\n        pass\ndef h(): pass\n",
            {"Y", "f", "h"},
        ),
        (
            "typescript",
            "const a = 1;\nclass A { x() { return 1 } }\n",
            "const a = 1, b = 2;\nclass A { x() { return 2 } }\n"
            "export const f = () => 1;\ntype T = string;\n",
            {"b", "x", "f", "T"},
        ),
        ("javascript", "app.get('/x', () => {});\n", "app.get('/x', () => { f() });\n", {"app"}),
        (
            "go",
            "package a\n",
            "package a\nconst X = 1\ntype T struct { A int }\nfunc (t *T) F() { g() }\n",
            {"X", "T", "F"},
        ),
        (
            "rust",
            "",
            "const X: u8 = 1;\npub struct T { a: u8 }\nimpl T { fn f(&self) { g() } }\n",
            {"X", "T", "f"},
        ),
        ("java", "class A { int f() { return 1; } }", "class A { int f() { return 2; } }", {"f"}),
        ("python", "def f(): return 1\n", "# new\ndef f():\n    return 1\n", set()),
    ],
)
def test_names_that_a_change_touches(
    language: str, before: str, after: str, names: set[str]
) -> None:
    assert names_changed(before.encode(), after.encode(), language) == names


@pytest.mark.parametrize(
    ("language", "source"),
    [
        (
            "python",
            "STEPS = [1]\ndef color(n): return STEPS[n]\ndef other(STEPS_): return STEPS_\n",
        ),
        ("javascript", "const STEPS = [1];\nconst color = (n) => STEPS[n];\nfunction other() {}\n"),
        ("go", "package a\nvar STEPS = 1\nfunc color() int { return STEPS }\nfunc other() {}\n"),
    ],
    ids=["python", "javascript", "go"],
)
def test_functions_that_use_a_name(language: str, source: str) -> None:
    assert users_of(source.encode(), language, {"STEPS"}) == {"color"}


def test_a_definition_holds_all_that_a_test_rests_on() -> None:
    name = "tests/test_a.py::TestT::test_x[1]"
    text = definition(PYTHON, "python", name)
    assert text is not None
    same = PYTHON.replace(b"  # c", b"").replace(b'"doc"', b'"d"').replace(b", other", b"")
    assert definition(same.replace(b"(x): return", b"(x):\n    return"), "python", name) == text
    assert definition(PYTHON.replace(b"def test_y(self): pass", b""), "python", name) == text
    for old, new in (
        (b"RATE = 5", b"RATE = 6"),
        (b"very_deep(x)", b"1"),
        (b"make_cart(db)", b"None"),
        (b"from shop", b"from fake"),
        (b"@deco", b"@skip"),
        (b"prepare()", b"2"),
        (b"[1])", b"[])"),
        (b"== 5", b"== 6"),
        (b"def test_y(self): pass", b"def test_x(self): pass"),
    ):
        assert definition(PYTHON.replace(old, new), "python", name) != text, old
    assert definition(PYTHON, "python", "test_gone") is None
    assert definitions(PYTHON, "python")["TestT::test_x"] == text
    assert len(definitions(PYTHON, "python")) == 2


def test_a_definition_of_a_suite_holds_its_hooks() -> None:
    text = definition(SCRIPT, "typescript", "a.js > s > y")
    assert text is not None
    assert definition(SCRIPT.replace(b"nope", b"other"), "typescript", "s > y") == text
    for old, new in (
        (b'describe("s"', b'describe.skip("s"'),
        (b"prepare()", b"1"),
        (b"r(1)", b"r(2)"),
        (b'"./a"', b'"./c"'),
        (b'"./b"', b'"./c"'),
    ):
        assert definition(SCRIPT.replace(old, new), "typescript", "s > y") != text, old


def test_attributes_are_part_of_a_definition() -> None:
    rust = b"mod tests {\n    #[test]\n    fn t() { f(); }\n}\n"
    text = definition(rust, "rust", "tests::t")
    assert text is not None
    assert definition(rust.replace(b"#[test]", b"#[test]\n    #[ignore]"), "rust", "t") != text
    java = b"class A { @Before void b() { x(); } @Test void t() { f(); } }"
    text = definition(java, "java", "A.t")
    assert definition(java.replace(b"x()", b"y()"), "java", "A.t") != text
    assert definition(java.replace(b"@Test", b"@Disabled @Test"), "java", "A.t") != text
