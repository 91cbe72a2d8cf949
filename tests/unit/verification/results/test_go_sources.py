"""Go says which test of which package; the tree says in which file that stands."""

import pytest

from agentrunner.verification.results.tools.go import GoSources

TREE = {
    "go.mod": b"module example.invalid/shop\n\ngo 1.19\n",
    "shop_test.go": b"package shop\n\nfunc TestSum(t *testing.T) {\n}\n",
    "cart/cart_test.go": b"package cart\nfunc  TestSum (t *testing.T) {}\nfunc FuzzIt(f *F) {}",
    "cart/cart.go": b"package cart\nfunc TestNot() {}\n",
    "tools/go.mod": b'// a nested module\nmodule "example.invalid/shop/tools" // x\n',
    "tools/lint/lint_test.go": b"func TestLint(t *testing.T) {\r\n}\r\n",
}


@pytest.mark.parametrize(
    ("package", "test", "file"),
    [
        ("example.invalid/shop", "TestSum", "shop_test.go"),
        ("example.invalid/shop/cart", "TestSum/two of them", "cart/cart_test.go"),
        ("example.invalid/shop/cart", "FuzzIt", "cart/cart_test.go"),
        ("example.invalid/shop/cart", "TestNot", ""),
        ("example.invalid/shop/tools/lint", "TestLint", "tools/lint/lint_test.go"),
        ("example.invalid/shopping", "TestSum", ""),
        ("elsewhere", "TestSum", ""),
        ("example.invalid/shop", "", ""),
    ],
)
def test_a_test_is_found_in_its_package(package: str, test: str, file: str) -> None:
    assert GoSources(TREE, TREE.get).file_of(package, test) == file
