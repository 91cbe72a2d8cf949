"""Go: canaries fail under their own names, and everything made compiles."""

from __future__ import annotations

import re
from pathlib import Path

from agentrunner.verification.syntax.emptied_functions import empty_functions
from agentrunner.verification.syntax.ends import failing_end
from agentrunner.verification.syntax.mutants import mutants
from tests.unit.verification.syntax.live import canaries, combined, halves, need, ran, red
from tests.unit.verification.syntax.named import named

PRODUCT = b"""package shop

import (
	"errors"
	"fmt"
	"strings"
)

// Rate is fixed.
const Rate = 2

// Cart holds items.
type Cart struct{ Items []int }

// Total adds.
func Total(items []int, twice bool) (found int) {
	for _, item := range items {
		if item > 0 && item < 100 {
			found += item
		}
	}
	if twice {
		return found * Rate
	}
	return
}

// Name is upper case.
func Name(text string) (string, error) {
	if text == "" {
		return "", errors.New("no name")
	}
	return fmt.Sprint(strings.ToUpper(text)), nil
}

// Names is a list.
func Names() []string { return []string{"a", "b"} }

// Size counts.
func (c *Cart) Size() int { return len(c.Items) }
"""

TESTS = b"""package shop

import (
	"reflect"
	"testing"
)

func TestPlain(t *testing.T) {
	if got := Total([]int{1, 2}, false); got != 3 {
		t.Errorf("got %d", got)
	}
}

func TestEarly(t *testing.T) {
	if Total(nil, true) == 0 {
		got, err := Name("a")
		if err != nil || got != "A" {
			t.Fatal(got, err)
		}
		return
	}
	t.Fatal("never")
}

func TestWant(t *testing.T) {
	want := []string{"a", "b"}
	if got := Names(); !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestTable(t *testing.T) {
	for _, tc := range []struct {
		name  string
		items []int
		want  int
	}{{"one", []int{1}, 1}, {name: "two", items: []int{1, 2}, want: 3}} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Total(tc.items, false); got != tc.want {
				t.Errorf("got %d", got)
			}
		})
	}
}

func TestSub(t *testing.T) {
	t.Run("of a cart", func(t *testing.T) {
		c := &Cart{Items: []int{1}}
		if c.Size() != 1 {
			t.Error("size")
		}
	})
}
"""


def results(folder: Path, product: bytes = PRODUCT, tests: bytes = TESTS) -> dict[str, str]:
    """Outcome by name; the key "build" where it did not compile."""
    (folder / "go.mod").write_text("module example.com/shop\n\ngo 1.19\n")
    (folder / "shop.go").write_bytes(product)
    (folder / "shop_test.go").write_bytes(tests)
    said = ran(folder, "go", "test", "-v", "./...")
    found = re.findall(r"(?m)^\s*--- (PASS|FAIL): (\S+)", said.stdout)
    if not found:
        return {"build": said.stdout + said.stderr}
    return {name: "passed" if word == "PASS" else "failed" for word, name in found}


def test_each_canary_fails_under_its_own_name(tmp_path: Path) -> None:
    need("go")
    before = results(tmp_path)
    assert red(before) == set(), before
    made = canaries(TESTS, "go")
    assert len(made) == 10
    for half in halves(made):
        after = results(tmp_path, tests=combined(TESTS, half))
        assert after.keys() == before.keys(), after
        assert {name.partition("/")[0] for name in red(after)} == {one.name for one in half}


def test_a_sub_test_fails_under_its_own_name(tmp_path: Path) -> None:
    need("go")
    for name in ("example.com/shop.TestSub/of_a_cart", "TestTable/two"):
        canary = failing_end(named(TESTS, "go", name))
        assert canary is not None
        assert name.rpartition(".")[2] in red(results(tmp_path, tests=canary.source))


def test_emptied_functions_compile_and_turn_honest_tests_red(tmp_path: Path) -> None:
    need("go")
    emptied = empty_functions(None, PRODUCT, "go")
    assert emptied is not None
    assert emptied.functions == ("Total", "Name", "Names", "Cart.Size")
    after = results(tmp_path, product=emptied.source)
    assert red(after) >= {"TestPlain", "TestEarly", "TestWant", "TestTable", "TestSub"}
    assert "build" not in after


def test_mutants_compile_mostly(tmp_path: Path) -> None:
    need("go")
    made = mutants(None, PRODUCT, "go", 24)
    (tmp_path / "go.mod").write_text("module example.com/shop\n\ngo 1.19\n")
    for index, mutant in enumerate(made):
        folder = tmp_path / f"m{index}"
        folder.mkdir()
        (folder / "shop.go").write_bytes(mutant.source)
    said = ran(tmp_path, "go", "build", "./...")
    broken = set(re.findall(r"(?m)^m\d+/", said.stderr))
    assert len(broken) * 10 <= len(made), said.stderr
