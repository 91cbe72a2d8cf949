"""Small sources with tests and functions of many forms, by language."""

from __future__ import annotations

PYTHON = b'''"""A module."""
from __future__ import annotations

import asyncio
import unittest

import pytest
from shop import total as t, other
import shop.cart as sc

RATE = 5


@pytest.fixture(autouse=True)
def cart(db):
    """doc"""
    yield make_cart(db)


def helper(x): return x + 1


@pytest.mark.parametrize(("a", "b"), [(1, 2), (3, 4)])
async def test_x(a: int, b: int = 3, *args, **kw) -> None:
    """doc

    >>> 1 + 1
    2
    """
    with a:
        if b: return
    for x in b:
        assert t(a) == {"a": 1, "b": ["x", -5]}, "message"  # why
    try:
        return (await c(
            1))
    finally:
        pass


def test_one_line(): assert helper(1) == 2


def test_last():
    with pytest.raises(ValueError, match="nope"):
        other()
    # the end


class TestX(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.z = 1

    def test_y(self):
\t\tself.assertEqual(t(1), [1, "x"])

    @unittest.expectedFailure
    def test_z(self): self.assertTrue(other()); self.assertIsNone(None)

    def test_yield(self):
        yield 5


class Outer:
    class Inner:
        def test_deep(self):
            assert 0 < len(sc.items) <= 0x1F and not sc.empty
            return None


lam = lambda q: q * 2
if __name__ == "__main__":
    unittest.main()
'''

SCRIPT = b"""import { total as t } from "./a";
const assert = require("node:assert");
describe("suite", () => {
  let x;
  beforeEach(async () => { x = prepare(); });
  it("block", () => { foo() });
  it("promise", () => expect(f()).resolves.toBe(5));
  it('callback', done => { x.on('y', () => { if (z) return done(z); done() }) });
  it('handed over', function (done) { request(app).get('/').expect(200).end(done); });
  it.each([[1, 2]])(`row %s of ${x}`, async (a, b) => {
    if (a) return;
    expect(t(a)).not.toBe(b)
    // end
  });
  describe.each`a|b`('inner', function () {
    test("a" + x, async (t) => { await t.test("sub", () => {}); return assert.equal(t(1), 2), 3 });
  });
});
test('top', { skip: false }, (t) => { assert.deepStrictEqual(g(), { a: [1, "x", null] }); });
it("chai", () => { expect(f()).to.be.true; f().should.equal(/a|b/) });
it("named", named);
function named() { const want = 'x'; assert.strictEqual(f(), want); }
class A extends B {
  constructor(x) { super(x); this.y = 1 }
  get z() { return "a" }
  async *w() { yield 1 }
  h = () => 5;
}
app.get("/users", (q, r) => { r.send(1) });
module.exports = function () { return [1].map(x => x + 1); };
const arrow = a => ({ b: a ? 1 : 2 }), n = 0x10 + 1_000;
"""

TYPED = (
    SCRIPT
    + b"""
interface I { a: number; b(): string }
type T = 'x' | 'y';
enum E { A = 1, B }
export const typed = <Q,>(a: Q, b?: string): Q | undefined => a as any;
export function isX(a: unknown): a is string { return typeof a === 'string'; }
abstract class C<T> { abstract q(): void; private r(): Promise<void> { return Promise.resolve(); } }
it('typed', (): void => expect<number>(typed(5)).toBe(5));
if (import.meta.vitest) { const { it, expect } = import.meta.vitest; it("x", () => {}) }
"""
)

GO = b"""package a

import (
	"strings"
	"testing"
)

const X = 1

type T struct{ A int }

func (t *T) Up(x string) (string, error) {
	if x == "" || len(x) > 10 {
		return "", nil
	}
	return strings.ToUpper(x), nil
}

func Named() (n int, err error) { n = 1; return }

func Two(a, b int) int { for i := 0; i < a; i++ { b += 1 }; return a + b }

func TestTable(t *testing.T) {
	tests := []struct {
		name string
		want int
	}{{"a", 1}, {name: "b c", want: 2}}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := f(tc.name); got != tc.want {
				t.Errorf("got %d", got)
			}
		})
	}
	t.Run("sub", func(t *testing.T) { assert.Equal(t, "a", x) })
}

func TestNone(*testing.T) { f() }

func TestEarly(t *testing.T) {
	if x {
		return
	}
	want := []int{1, 2}
	if !reflect.DeepEqual(f(), want) {
		t.Fatal("no")
	}
}

func (s *Suite) TestSuite() { s.Equal('x', f()) }
"""

RUST = b"""//! Module.
use std::{fmt, io::Read as R};

pub const LIMIT: u8 = 5;

/// Adds.
///
/// ```
/// assert_eq!(a::add(1, 2), 3);
/// ```
pub fn add(a: u8, b: u8) -> u8 {
    if a < LIMIT && b >= 1 {
        log(a);
        return a + b;
    }
    a - b
}

impl Shop {
    pub fn names(&self) -> impl Iterator<Item = String> + '_ { self.x.iter().map(|x| x + 1) }
    fn none(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// doc
    #[tokio::test]
    async fn result() -> Result<(), String> {
        if x { return Ok(()); }
        assert_eq!(add(2, 2), 4, "message {}", 5);
        Ok(())
    }
    #[test]
    fn early() { if x { return; } assert_eq!(vec!["a".to_string()], f("b")) }
    #[test]
    fn branches() -> Result<(), String> { if x { Ok(()) } else { Err("x".into()) } }
    #[test]
    #[should_panic(expected = "x")]
    fn panics() { f(); }
    #[test]
    fn matches() { match x { A => return, _ => {} } assert!(f(5) == -6.5f32); assert!(g()); }
}
"""

JAVA = b"""package a;

import static org.junit.Assert.assertEquals;
import org.junit.Test;

public class ShopTest extends Base {
    private static final int LIMIT = 5;
    @Before public void setUp() { x = new Shop(); }
    @Test public void early() { if (x) return; assertEquals("msg", 5L, f(1)); }
    @Test(expected = IllegalStateException.class) public void throwsIt() { f(); }
    @org.junit.Test
    public void deep() throws Exception {
        for (int i = 0; i < 3; i++) { f(i); }
        assertThat(f()).isEqualTo("a");
    }
    @ParameterizedTest @ValueSource(ints = {1, 2}) void rows(int a) { assertTrue(f(a) == 'x'); }
    @Nested class Inner { @Test void loop() { while (f()) {} throw new Error(); } }
    @TestFactory Stream<DynamicTest> made() { return f().map(x -> { return x; }); }
    int number() { return 5 + 1; }
    boolean[] flags() { return null; }
    <T extends Foo<T>> T most(List<T> x) { if (x.size() < 1 && !y) { log(x); } return null; }
}
"""

SOURCES: dict[str, list[bytes]] = {
    "python": [PYTHON, PYTHON.replace(b"\n", b"\r\n")],
    "javascript": [SCRIPT, SCRIPT.replace(b"\n", b"\r\n")],
    "typescript": [TYPED],
    "tsx": [TYPED + b"const el = <A b={1}>x {f()}</A>;\n"],
    "go": [GO],
    "rust": [RUST],
    "java": [JAVA],
}
