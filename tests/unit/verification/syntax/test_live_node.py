"""JavaScript: canaries fail under their own names, emptied functions turn honest tests red."""

from __future__ import annotations

from pathlib import Path

from agentrunner.verification.syntax.emptied_functions import empty_functions
from agentrunner.verification.syntax.mutants import mutants
from tests.unit.verification.syntax.live import (
    canaries,
    combined,
    halves,
    need,
    node_results,
    ran,
    red,
)

PRODUCT = b"""const RATE = 2;
function total(items, twice = false) {
  let found = 0;
  for (const item of items) if (item > 0 && item < 100) found += item;
  return twice ? found * RATE : found;
}
const names = () => ["a", "b"];
async function later(x) { return { x, y: [null, true] }; }
function called(x, back) { setImmediate(() => back(null, x + 1)); }
class Base { constructor(items) { this.items = items } }
class Cart extends Base {
  constructor(items) { super(items); this.open = true }
  get size() { return this.items.length }
  check() { if (!this.items.length) throw new Error("the cart is empty") }
}
module.exports = { total, names, later, called, Cart };
"""

TESTS = b"""const test = require("node:test");
const { describe, it, beforeEach } = test;
const assert = require("node:assert");
const { total, names, later, called, Cart } = require("./shop");

test("plain", () => { assert.strictEqual(total([1, 2]), 3) });
test("expression", () => assert.equal(total([5]), 5));
test("early", () => {
  if (total([1]) === 1) {
    assert.deepStrictEqual(names(), ["a", "b"]);
    return;
  }
  throw new Error("never");
});
test("promise", () => {
  return later(1).then((got) => { assert.deepEqual(got, { x: 1, y: [null, true] }) });
});
test("awaited", async () => {
  assert.equal((await later(2)).x, 2)
  // the end
});
test("callback", (t, done) => {
  called(1, (error, got) => {
    if (error) return done(error);
    assert.equal(got, 2);
    done();
  });
});
test("handed over", (t, done) => { assert.ok(total([1])); called(1, done); });
test("thrown", () => { if (total([7]) !== 7) throw new Error("seven"); });
describe("a cart", () => {
  let cart;
  beforeEach(() => { cart = new Cart([1]); });
  it("has a size", () => { const want = 1; assert.equal(cart.size, want); });
  it(`is ${"checked"}`, function () {
    assert.throws(() => new Cart([]).check(), /is empty|none/);
  });
});
for (const [items, want] of [[[1], 1], [[1, 2], 3]]) {
  test(`row ${want}`, () => { assert.equal(total(items), want); });
}
"""


def prepared(folder: Path, product: bytes = PRODUCT, tests: bytes = TESTS) -> Path:
    (folder / "shop.js").write_bytes(product)
    (folder / "shop.test.js").write_bytes(tests)
    return folder


def titles(name: str) -> set[str]:
    own = name.rpartition(" > ")[2]
    return {"is …": {"is checked"}, "row …": {"row 1", "row 3"}}.get(own, {own})


def reds(results: dict[str, str]) -> set[str]:
    return {one for one in red(results) if one != "a cart" and not one.endswith(".js")}


def test_each_canary_fails_under_its_own_name_and_changes_no_other(tmp_path: Path) -> None:
    need("node")
    before = node_results(prepared(tmp_path), "shop.test.js")
    assert set(before.values()) == {"passed"}
    made = canaries(TESTS, "javascript")
    assert len(made) == 22
    for half in halves(made):
        after = node_results(prepared(tmp_path, tests=combined(TESTS, half)), "shop.test.js")
        assert after.keys() == before.keys()
        assert reds(after) == set().union(*(titles(canary.name) for canary in half))


def test_emptied_functions_turn_honest_tests_red(tmp_path: Path) -> None:
    need("node")
    emptied = empty_functions(None, PRODUCT, "javascript")
    assert emptied is not None
    prepared(tmp_path, product=emptied.source)
    assert ran(tmp_path, "node", "-e", "new (require('./shop').Cart)([])").returncode == 0
    old = PRODUCT.replace(b"twice ? found * RATE : found", b"found")
    emptied = empty_functions(old, PRODUCT, "javascript")
    assert emptied is not None
    assert emptied.functions == ("total",)
    after = node_results(prepared(tmp_path, product=emptied.source), "shop.test.js")
    assert {after["plain"], after["early"]} == {"failed"}
    assert {after["promise"], after["callback"], after["has a size"]} == {"passed"}


def test_mutants_load_and_most_turn_a_test_red(tmp_path: Path) -> None:
    need("node")
    made = mutants(None, PRODUCT, "javascript", 8)
    seen = 0
    for mutant in made:
        prepared(tmp_path, product=mutant.source)
        seen += bool(reds(node_results(tmp_path, "shop.test.js")))
        said = ran(tmp_path, "node", "--check", "shop.js")
        assert said.returncode == 0, mutant.description
    assert seen >= 4
