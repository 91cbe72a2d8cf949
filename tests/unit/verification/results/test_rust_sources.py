"""Where a Rust test stands."""

import pytest

from agentrunner.verification.results.tools.cargo import file_of

TREE = {"api/src/lib.rs", "api/src/total.rs", "api/src/shop/mod.rs", "api/src/shop/cart.rs"}


@pytest.mark.parametrize(
    ("test", "file"),
    [
        ("tests::adds", "src/lib.rs"),
        ("adds", "src/lib.rs"),
        ("total::tests::adds", "src/total.rs"),
        ("shop::tests::adds", "src/shop/mod.rs"),
        ("shop::cart::tests::adds", "src/shop/cart.rs"),
        ("lib::tests::adds", "src/lib.rs"),
    ],
)
def test_a_test_stands_in_the_file_of_its_module(test: str, file: str) -> None:
    assert file_of("src/lib.rs", test, "api", TREE) == file
