"""Code between a test and what was asked for."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.called_code import (
    asserted_calls,
    assigned_names,
    called_as_statements,
)
from agentrunner.verification.inputs.executed_files import only_reads
from agentrunner.verification.inputs.finder import find_inputs
from agentrunner.verification.inputs.helper_code import Asked
from agentrunner.verification.syntax.stated_literals import functions_of_two

CART = b"def total(items):\n    return 0\n"
TEST = b"from cart import total\nfrom matchers import same\n\n\ndef test_it():\n    %s\n"
WANTED = "total multiplies price by count."


def inputs(files: dict[str, bytes], wanted: str = WANTED) -> set[str]:
    found = find_inputs([("pytest", ".")], files, files.get, wanted=wanted)
    return {path for path in files if found.input_at(path)}


def test_a_helper_that_nobody_speaks_of_is_an_input_and_so_is_what_it_uses() -> None:
    files = {
        "cart.py": CART,
        "matchers/__init__.py": b"from matchers.equal import same\n",
        "matchers/equal.py": b"def same(got, want):\n    return want.matches(got)\n",
        "test_cart.py": TEST % b"assert same(total([1]), 2)",
    }
    assert inputs(files) == {"test_cart.py", "matchers/__init__.py", "matchers/equal.py"}
    named = "same() compares without regard to case."
    assert "matchers/equal.py" not in inputs(files, named)


def test_what_product_code_uses_is_product_though_nobody_speaks_of_it() -> None:
    files = {
        "cart.py": b"from money import cents\n" + CART,
        "money.py": b"def cents(amount):\n    return amount\n",
        "test_cart.py": b"from cart import total\nfrom money import cents\n\n\n"
        b"def test_it():\n    assert total([1]) == cents(2)\n",
    }
    assert inputs(files) == {"test_cart.py"}


def test_a_package_that_hands_on_product_code_is_product() -> None:
    files = {
        "shop/__init__.py": b"from shop.cart import total\nfrom shop.rates import RATE\n",
        "shop/cart.py": CART,
        "shop/rates.py": b"RATE = 1\n",
        "test_it.py": b"from shop import RATE, total\n\n\ndef test():\n    assert total([]) == 0\n",
    }
    assert inputs(files) == {"test_it.py"}


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("total", True),
        ("count_items", False),
        ("price_count", True),
        ("cart_of", False),
        ("COUNT", False),
    ],
)
def test_a_name_of_code_in_a_text(name: str, named: bool) -> None:
    assert Asked(WANTED).names_code(name) is named


def test_what_a_test_asserts_of_another_functions_answer() -> None:
    assert asserted_calls("    assert same(total([5]), 15)\n") == {"same"}
    assert asserted_calls("  expect(same(total(5), 15)).toBe(true)\n") == {"same"}
    assert asserted_calls("assert!(near(shop::total(5, 3), 15));\n}\n") == {"near"}
    assert asserted_calls("if got := Total(5, 3); !equal(got, 15) {\n\tt.Fatal()\n}") == {"equal"}
    assert asserted_calls("    assert total([5]) == 15\n") == set()
    assert asserted_calls("  expect(same(a, b)).toBe(true)\n") == set()
    named = "  const got = total(5)\n  expect(same(got, 15)).toBe(true)\n"
    assert asserted_calls(named) == {"same"}
    assert asserted_calls("    got = total([5])\n    assert same(got, 15)\n") == {"same"}
    assert asserted_calls("    got = total([5])\n    self.assertTrue(same('a', got))\n") == {"same"}
    assert asserted_calls("    a = point(1)\n    b = point(1)\n    assert same(a, b)\n") == set()
    assert asserted_calls("  expect(same(total(')'), 15)).toBe(true)\n") == {"same"}
    assert asserted_calls("  expect(same(it's(5), 15)).toBe(true)\n") == {"same"}
    assert functions_of_two("def same(a, b):\n    return a == b\n") == {"same"}
    assert functions_of_two("func equal(got, want int) bool { return got == want }") == {"equal"}
    assert functions_of_two("def has(user, role):\n    return user.role == role\n") == set()
    one = "def test_a():\n    same(total([5]), 15)\n\n\ndef test_b():\n    assert total([]) == 0\n"
    assert called_as_statements(one) == {"same"}


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("! grep -rn 'print(' shop && test -f README.md", True),
        ("head -1 a.csv | cut -d, -f2", True),
        ("test \"$(python3 cart.py 5 3)\" -eq \"$(head -1 want.txt)\"", False),
        ("ls | xargs python3 check.py", False),
        ("cmp out.txt want.txt", False),
        ("md5sum -c want.md5", False),
        ("[ $(ls *.txt | wc -l) -lt 4 ]", True),
    ],
)  # fmt: skip
def test_commands_whose_files_are_what_they_are_about(command: str, reads: bool) -> None:
    assert only_reads(command) is reads


@pytest.mark.parametrize(
    "read",
    [
        b'(Path(__file__).parent / "golden" / "client.py").read_text()',
        b'open(os.path.join(HERE, "golden", "client.py")).read()',
        b'runpy.run_path(str(HERE / "golden" / "client.py"))["TEXT"]',
    ],
)
def test_golden_code_is_found_by_the_parts_of_its_path(read: bytes) -> None:
    files = {
        "cart.py": CART,
        "golden/client.py": b"def get():\n    return 1\n",
        "test_cart.py": b"from cart import total\n\n\ndef test_it():\n    assert total([]) == "
        + read,
    }
    assert inputs(files) == {"test_cart.py", "golden/client.py"}
    assert "golden/client.py" not in inputs(files, "total: the client gets it.")


def test_a_program_behind_the_code_in_a_pipe_is_an_input_where_nobody_speaks_of_it() -> None:
    files = {
        "report.py": b"print(1)\n",
        "strip.sh": b"sed s/a//\n",
        "want.txt": b"1\n",
        "in.txt": b"1\n",
    }

    def found(command: str, wanted: str = WANTED) -> set[str]:
        inputs = find_inputs([(command, ".")], files, files.get, wanted=wanted)
        return {path for path in files if inputs.input_at(path)}

    command = "python3 report.py | sh strip.sh | diff - want.txt"
    assert found(command) == {"strip.sh", "want.txt"}
    assert found(command, f"{WANTED} (check: `{command}`)") == {"strip.sh", "want.txt"}
    assert found(command, "strip.sh takes dates away.") == {"want.txt"}
    assert found("cat in.txt | python3 report.py | diff - want.txt") == {"want.txt"}


def test_a_file_that_compares_for_a_program_counts_though_it_is_built_into_that() -> None:
    files = {
        "Makefile": b"test: check\n\t./check\n\ncheck: calc.c near.c check.c\n\tcc -o $@ $^\n",
        "calc.c": b"int total(int price) { return price; }\n",
        "near.c": b"int near(int got, int want) { return got == want; }\n",
        "check.c": b"#include <assert.h>\nint total(int);\nint near(int, int);\nint main(void) {\n"
        b"    assert(near(total(5), 15));\n    return 0;\n}\n",
    }
    inputs = find_inputs([("make test", ".")], files, files.get, wanted=WANTED)
    assert {path for path in files if inputs.input_at(path)} == {"Makefile", "near.c"}


DECORATOR = b"""\
def cached(size, info=False):
    if info == 2:
        raise ValueError(info)

    def decorator(function):
        return function

    return decorator
"""
USED = {
    "decorates": b"@cached(2)\ndef double(n):\n    ...\n\n\n@cached(3)\ndef half(n):\n    ...\n",
    "assigned": b"decorate = cached(2)\nother = cached(3)\n",
    "called at once": b"half = cached(2)(lambda n: n / 2)\n\n\ndef make():\n    return cached(1)\n",
}


@pytest.mark.parametrize("use", USED.values(), ids=USED)
def test_a_function_whose_answer_tests_use_is_product_though_one_only_calls_it(use: bytes) -> None:
    test = b"from caching import cached\n\n\ndef test():\n    cached(max([1]), 2)\n"
    files = {"caching.py": DECORATOR, "test_it.py": test}
    assert "caching.py" in inputs(files, "Caches can be cleared.")
    assert "caching.py" not in inputs({**files, "test_use.py": use}, "Caches can be cleared.")


def test_a_constructor_of_a_base_class_is_no_comparison() -> None:
    files = {
        "cache.py": b"class Cache:\n    def __init__(self, size, get=None):\n"
        b"        if get is not None:\n            raise ValueError(get)\n",
        "test_it.py": b"from cache import Cache\n\n\nclass Mine(Cache):\n"
        b"    def __init__(self, size):\n        Cache.__init__(self, max(size, 1), 2)\n",
    }
    assert inputs(files) == {"test_it.py"}


COMPARING = (
    b"class Comparing:\n    def same(self, a, b):\n        return abs(a - b) < 0.01\n\n\n"
    b"class Cart(Comparing):\n    def total(self):\n        return 0\n"
)
HEIR = (
    b"import unittest\n\nfrom cart import Cart, Comparing\n\n\n"
    b"class CartTest(%s):\n    def test_it(self):\n"
    b"        self.assertTrue(self.same(Cart().total(), 5))\n"
)


def test_a_comparing_method_that_a_test_inherits_counts_in_its_namesake_too() -> None:
    files = {"cart.py": COMPARING, "test_cart.py": HEIR % b"Comparing, unittest.TestCase"}
    assert inputs(files) == {"cart.py", "test_cart.py"}
    further = {
        "cart.py": COMPARING,
        "tests/base.py": b"import unittest\n\nfrom cart import Comparing\n\n\n"
        b"class Case(Comparing, unittest.TestCase):\n    ...\n",
        "tests/test_cart.py": b"from tests.base import Case\n" + HEIR % b"Case",
    }
    assert "cart.py" in inputs(further)
    found = find_inputs([("pytest", ".")], files, files.get, wanted=WANTED)
    assert [one.compares for one in found.deciding if one.path == "cart.py"] == [("same",)]


def test_a_method_of_that_name_that_a_test_does_not_inherit_is_product() -> None:
    files = {"cart.py": COMPARING, "test_cart.py": HEIR % b"Case"}
    assert inputs(files) == {"test_cart.py"}
    named = "same() compares amounts but for rounding."
    files = {"cart.py": COMPARING, "test_cart.py": HEIR % b"Comparing, unittest.TestCase"}
    assert inputs(files, named) == {"test_cart.py"}


def test_a_name_that_a_test_assigns_is_no_function_of_another_file() -> None:
    files = {
        "caching.py": b"def cached(size, info=0):\n    return size == info\n",
        "test_it.py": b"from caching import make\n\n\ndef test():\n"
        b"    cached = make(2)\n    assert cached(max([1]), 2)\n",
    }
    assert inputs(files, "Caches can be cleared.") == {"test_it.py"}
    files["test_it.py"] = files["test_it.py"].replace(b"    cached = make(2)\n", b"")
    assert "caching.py" in inputs(files, "Caches can be cleared.")


@pytest.mark.parametrize(
    "line",
    [
        b"const same = require('./same');",
        b"const same = wrap(require('./same').same);",
        b"const same = limited(kit.same);",
    ],
)
def test_a_helper_under_its_own_name_stays_a_helper(line: bytes) -> None:
    assert assigned_names(line.decode()) == set()


def test_an_answer_has_a_name_of_its_own() -> None:
    assert assigned_names("    cached = self.decorate(2)(f)\n") == {"cached"}
