"""Code that only tests use, where what was asked for names other code."""

from __future__ import annotations

from agentrunner.verification.inputs.finder import find_inputs

CART = b"def total(items):\n    return 0\n"
DRIVER = b"from shop.cart import total\n\n\ndef drive(text):\n    return total(text.split())\n"
FILES = {
    "shop/__init__.py": b"",
    "shop/cart.py": CART,
    "shop/driver.py": DRIVER,
    "test_shop.py": b"from shop.driver import drive\ndef test_it():\n    assert drive('5') == 5\n",
}
WALKS = b"""from pathlib import Path
for path in Path("examples").glob("*.py"):
    exec(path.read_text())
def test_it():
    assert path
"""


def beside(files: dict[str, bytes], wanted: str = "total counts every piece.") -> set[str]:
    return set(find_inputs([("pytest", ".")], files, files.get, wanted=wanted).beside)


def test_a_driver_that_nothing_speaks_of() -> None:
    assert beside(FILES) == {"shop/driver.py"}
    assert beside(FILES, "The driver counts every total.") == set()
    assert beside(FILES, "It counts every piece.") == set()


def test_a_driver_that_the_product_uses_or_that_is_a_program_is_product() -> None:
    used = {**FILES, "shop/__init__.py": b"from shop.driver import drive\n"}
    assert "shop/driver.py" not in beside(used, "total counts. shop is a package.")
    program = {
        **FILES,
        "shop/driver.py": DRIVER + b'\n\nif __name__ == "__main__":\n    drive("")\n',
    }
    assert beside(program) == set()


def test_examples_that_a_test_finds_by_a_pattern() -> None:
    example = b"from shop.cart import total\nassert total([1]) == 1\n"
    files = {**FILES, "examples/piece.py": example, "test_examples.py": WALKS}
    assert "examples/piece.py" in beside(files)
    assert "examples/piece.py" not in beside(files, "total counts. Each example shows it.")
    assert "examples/piece.py" not in beside(files, "total counts, and piece.py shows it.")


def test_go_files_of_one_package_are_told_apart() -> None:
    files = {
        "go.mod": b"module a\n",
        "cart.go": b"package a\n\nfunc Total(n int) int { return n }\n",
        "same.go": b"package a\n\nfunc differs(a, b int) bool { return a != b }\n",
        "cart_test.go": b'package a\n\nimport "testing"\n\nfunc TestIt(t *testing.T) {\n'
        b"\tif differs(Total(1), 2) {\n\t\tt.Fatal()\n\t}\n}\n",
    }
    found = find_inputs([("go test ./...", ".")], files, files.get, wanted="Total counts.")
    assert found.input_at("same.go") and not found.input_at("cart.go")
