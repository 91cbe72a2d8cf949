"""JUnit's reports say which class; the tree says in which file that stands."""

import pytest

from agentrunner.verification.results.tools.java import JavaSources

TREE = [
    "core/src/test/java/shop/CartTest.java", "web/src/test/java/shop/CartTest.java",
    "web/src/test/kotlin/shop/PageTest.kt", "web/src/test/java/shop/PageTest.txt",
    "MainTest.java",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "cwd", "module", "file"),
    [
        ("shop.CartTest", ".", "core", "core/src/test/java/shop/CartTest.java"),
        ("shop.CartTest", "web", "", "src/test/java/shop/CartTest.java"),
        ("shop.CartTest", ".", "", ""),
        ("shop.PageTest$Inner", ".", "", "web/src/test/kotlin/shop/PageTest.kt"),
        ("other.PageTest", ".", "", ""),
        ("MainTest", "", "", "MainTest.java"),
        ("", ".", "", ""),
    ],
)
def test_a_class_is_found_in_its_module(name: str, cwd: str, module: str, file: str) -> None:
    assert JavaSources(TREE, cwd).file_of(name, module) == file
