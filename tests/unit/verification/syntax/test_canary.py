"""Expected values become others of their type, and each end of a test fails."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.canary import changed_literal, leaves_row
from agentrunner.verification.syntax.ends import failing_end
from agentrunner.verification.syntax.test_finder import all_tests
from tests.unit.verification.syntax.named import named


def python(statement: str) -> tuple[str, str, str]:
    return "python", "def test_a(b):\n    %s\n", statement


def script(statement: str) -> tuple[str, str, str]:
    return "typescript", "it('a', async (t) => { %s });\n", statement


def go(statement: str) -> tuple[str, str, str]:
    return "go", "package a\n\nfunc TestA(t *testing.T) { %s }\n", statement


def rust(statement: str) -> tuple[str, str, str]:
    return "rust", "#[test]\nfn a() { %s }\n", statement


def java(statement: str) -> tuple[str, str, str]:
    return "java", "class A { @Test void a() { %s } }\n", statement


@pytest.mark.parametrize(
    ("form", "after", "kind"),
    [
        (python("assert f() == 5"), "assert f() == 11", "literal"),
        (python("assert -5 == f()"), "assert -11 == f()", "literal"),
        (python("assert f() == 1_0, 7"), "assert f() == 21, 7", "literal"),
        (python("assert f() == 0x1F"), "assert f() == 63", "literal"),
        (python("assert f() is True"), "assert f() is False", "literal"),
        (python("assert f() is None"), "assert f() is ...", "literal"),
        (python("assert f() == []"), 'assert f() == ["changed"]', "literal"),
        (
            python('assert f() == {"a": [1, b"x"]}'),
            'assert f() == {"a": [1, b"x-changed"]}',
            "literal",
        ),
        (python('assert "x" in f() and g()'), 'assert "x-changed" in f() and g()', "literal"),
        (python("assert f() == 1.5 or g()"), "assert not (f() == 1.5 or g())", "outcome"),
        (python("assert f(b) == b"), "assert not (f(b) == b)", "outcome"),
        (python("assert f(b) != 5"), "assert not (f(b) != 5)", "outcome"),
        (python("assert not f()"), "assert f()", "outcome"),
        (python("x = 5; assert f() == x"), "x = 11; assert f() == x", "literal"),
        (python("x = 5; assert f(x) == x"), "x = 5; assert not (f(x) == x)", "outcome"),
        (python("assert f() == approx(2)"), "assert f() == approx(5)", "literal"),
        (python("self.assertEqual(f(), [1])"), "self.assertEqual(f(), [3])", "literal"),
        (python("self.assertTrue(f() == 1)"), "self.assertTrue(f() == 3)", "literal"),
        (python("self.assertIsNone(f())"), "self.assertIsNotNone(f())", "outcome"),
        (python("self.assertNotEqual(f(), 1)"), "self.assertEqual(f(), 1)", "outcome"),
        (python('self.assertNoLogs("x")'), 'self.assertLogs("x")', "outcome"),
        (python("m.assert_called_with(1)"), "m.assert_called_with(3)", "literal"),
        (
            python('with raises(X, match="y"): f()'),
            'with raises(X, match="y-changed"): f()',
            "literal",
        ),
        (script("expect(f()).toBe(5)"), "expect(f()).toBe(11)", "literal"),
        (script("expect(f()).not.toBe(5)"), "expect(f()).toBe(5)", "outcome"),
        (script("expect(f()).toBeGreaterThan(5)"), "expect(f()).not.toBeGreaterThan(5)", "outcome"),
        (
            script("await expect(f()).resolves.toEqual({ a: `x${1}` })"),
            "await expect(f()).resolves.toEqual({ a: `x${1}-changed` })",
            "literal",
        ),
        (script("expect(f()).toThrow(/a|b/g)"), "expect(f()).toThrow(/(?!)(?:a|b)/g)", "literal"),
        (
            script("expect(o).toHaveProperty('a', null)"),
            "expect(o).toHaveProperty('a', \"changed\")",
            "literal",
        ),
        (script("expect(f()).to.be.true;"), "expect(f()).to.be.not.true;", "outcome"),
        (script("f().should.equal(10n)"), "f().should.equal(21n)", "literal"),
        (
            script("assert.deepEqual(f(), [], 'm')"),
            "assert.deepEqual(f(), [\"changed\"], 'm')",
            "literal",
        ),
        (script("assert(f() === 'x')"), "assert(f() === 'x-changed')", "literal"),
        (script("assert.ok(f())"), "assert.ok(!(f()))", "outcome"),
        (script("t.is(f(), 1.5)"), "t.is(f(), 4.0)", "literal"),
        (script("if (f() !== 1) throw x"), "if (f() !== 3) throw x", "literal"),
        (
            script("request(app).get('/').expect(200)"),
            "request(app).get('/').expect(401)",
            "literal",
        ),
        (go('if f() != 5 { t.Error("x") }'), 'if f() != 4 { t.Error("x") }', "literal"),
        (go("if err != nil { t.Fatal(err) }"), "if !(err != nil) { t.Fatal(err) }", "outcome"),
        (
            go('w := "a"; if f() != w { t.Error(w) }'),
            'w := "a-changed"; if f() != w { t.Error(w) }',
            "literal",
        ),
        (
            go('switch g := f(); { case g == 1: t.Error("x"); case g != 5: t.Error("y") }'),
            'switch g := f(); { case g == 1: t.Error("x"); case g != 4: t.Error("y") }',
            "literal",
        ),
        (
            go('switch { case f() > 1: t.Error("x"); default: g() }'),
            'switch { case !(f() > 1): t.Error("x"); default: g() }',
            "outcome",
        ),
        (
            go('same := cmp.Equal(f(), 5); if !same { t.Error("x") }'),
            'same := cmp.Equal(f(), 5); if !(!same) { t.Error("x") }',
            "outcome",
        ),
        (go("s.Equal(5, f())"), "s.Equal(4, f())", "literal"),
        (go("require.Equal(t, 'x', f())"), "require.Equal(t, 'q', f())", "literal"),
        (go("assert.True(t, f())"), "assert.False(t, f())", "outcome"),
        (go("assert.Len(t, f(), 2)"), "assert.Len(t, f(), 1)", "literal"),
        (rust("assert_eq!(f(1), 255u8);"), "assert_eq!(f(1), 254u8);", "literal"),
        (
            rust('assert_eq!(f("x"), Some(vec![1, 0]))'),
            'assert_eq!(f("x"), Some(vec![1, 1]))',
            "literal",
        ),
        (rust('assert_eq!(f(), r#"x"#)'), 'assert_eq!(f(), r#"x-changed"#)', "literal"),
        (rust("assert!(f(), 1)"), "assert!(!(f()), 1)", "outcome"),
        (rust("assert_ne!(f(), 1)"), "assert_eq!(f(), 1)", "outcome"),
        (java("assertEquals(5L, f());"), "assertEquals(4L, f());", "literal"),
        (java('assertEquals("m", 5, f());'), 'assertEquals("m", 4, f());', "literal"),
        (java("assertEquals(1.5, f(), 0.1);"), "assertEquals(4.0, f(), 0.1);", "literal"),
        (
            java('assertThat(f()).isEqualTo("x");'),
            'assertThat(f()).isEqualTo("x-changed");',
            "literal",
        ),
        (java("assertThat(f(), is(5));"), "assertThat(f(), is(4));", "literal"),
        (java("assertFalse(f());"), "assertFalse(!(f()));", "outcome"),
    ],
)
def test_an_expected_value_is_another_one(
    form: tuple[str, str, str], after: str, kind: str
) -> None:
    language, frame, statement = form
    source = (frame % statement).encode()
    canary = changed_literal(all_tests(source, language)[0])
    assert canary is not None
    assert (canary.source.decode(), canary.kind) == (frame % after, kind)
    assert f"line {canary.line}" in canary.description


def test_what_a_macro_makes_gets_another_last_value_and_no_end() -> None:
    source = b'test!(first, "<a>", End(1..3));\ntest!(second, "<b>", Error("x"));\nfn f() {}\n'
    for name, after in (("x tests/a.rs first", b"End(1..2)"), ("m::second", b'Error("x-changed")')):
        found = named(source, "rust", name)
        canary = changed_literal(found)
        assert canary is not None
        assert canary.kind == "case" and after in canary.source
        assert failing_end(found) is None
    assert all_tests(source, "rust") == []


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", b"def test_a(): pass"),
        ("python", b"def test_a():\n    with pytest.raises(X): f()\n"),
        ("typescript", b"it('a', () => { f() })"),
        ("go", b"package a\nfunc TestA(t *testing.T) { f() }"),
        ("rust", b"#[test] fn a() { f() }"),
        ("java", b"class A { @Test void a() { f(); } }"),
    ],
)
def test_without_an_expected_value_nothing_is_changed(language: str, source: bytes) -> None:
    assert changed_literal(all_tests(source, language)[0]) is None


def test_what_is_reached_in_any_case_is_changed_first() -> None:
    source = b"def test_a():\n    assert f() == 1\n    if g():\n        assert f() == 2\n"
    canary = changed_literal(all_tests(source, "python")[0])
    assert canary is not None
    assert canary.line == 2


def test_tables_of_go_are_changed_in_the_wanted_column_only() -> None:
    source = b"""package a
func TestA(t *testing.T) {
	for _, c := range []struct{ in, out int; want string }{{1, 2, "a"}, {want: "b"}} {
		if f(c.in, c.out) != c.want { t.Error() }
	}
}
"""
    canary = changed_literal(all_tests(source, "go")[0])
    assert canary is not None
    assert b'{{1, 2, "a-changed"}, {want: "b-changed"}}' in canary.source


FAIL = "raise AssertionError"
THROW = 'throw new Error("this test was made to fail at its end");'


@pytest.mark.parametrize(
    ("form", "ways"),
    [
        (python("if b: return\n    f()"), 2),
        (python("return f(\n    1)"), 1),
        (python("def g():\n        return 1\n    f(g)"), 1),
        (python("with b:\n        return await f()"), 2),
        (python("yield 1"), 1),
        (script("f()"), 1),
        (script("return f().then(() => { return 1 })"), 1),
        (script("if (t) return; f()"), 2),
        (go("if x { return }; f()"), 1),
        (go("t.Run(n, func(t *testing.T) { return })"), 1),
        (rust("if x { return; } f();"), 1),
        (java("if (x) return; f();"), 2),
    ],
)
def test_each_way_out_of_a_test_fails(form: tuple[str, str, str], ways: int) -> None:
    language, frame, statement = form
    source = (frame % statement).encode()
    canary = failing_end(all_tests(source, language)[0])
    assert canary is not None
    assert canary.source.count(b"made to fail at its end") == ways


TABLE = b"""package shop

func TestPrice(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name string
		want int64
	}{
		{name: "as of now", want: now.Unix()},
		{"a past one", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := price(tt.name); got != tt.want {
				t.Errorf("%d", got)
			}
		})
	}
}
"""


@pytest.mark.parametrize(
    ("name", "is_left"), [("as_of_now", True), ("a_past_one", False), ("a_past_one#01", False)]
)
def test_the_row_of_a_table_that_has_no_literal_is_not_asked(name: str, is_left: bool) -> None:
    name = f"shop.TestPrice/{name}"
    found = named(TABLE, "go", name)
    canary = changed_literal(found)
    assert canary is not None and b'"a past one", 2' in canary.source
    assert leaves_row(found, name, canary) == is_left
