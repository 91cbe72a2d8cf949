"""New files that an import of a test leads to in the place of one that stays."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.lost_files import taken_place
from tests.kit.text_trees import both_trees


def taken(old: dict[str, str], new: dict[str, str]) -> str:
    """What is found where the files of `new` are added to, or replace, those of `old`."""
    now = {path: text for path, text in {**old, **new}.items() if text}
    return taken_place(both_trees(old, now))


JS = {
    "page/index.js": "exports.pages = 1;",
    "test/page.test.js": 'const { pages } = require("../page");',
}
TS = {"src/page.ts": "export const a = 1;", "src/page.test.ts": 'import { a } from "./page";'}
PYTHON = {"shop.py": "A = 1", "tests/test_shop.py": "import shop"}
PACKAGE = {"shop/__init__.py": "A = 1", "tests/test_shop.py": "from shop import A, cart"}
NAMESPACE = {"shop/cart.py": "A = 1", "tests/test_cart.py": "from shop.cart import A"}
VUE = {
    "src/page.js": "export const a = 1;",
    "src/Page.vue": '<script>import { a } from "./page";</script>',
    "src/page.test.js": 'import { a } from "./page.js";',
}


@pytest.mark.parametrize(
    ("old", "new"), [(JS, "page.js"), (TS, "src/page.js"), (PYTHON, "shop/__init__.py")]
)
def test_a_new_file_in_the_place_of_one_that_stays_is_named(old: dict[str, str], new: str) -> None:
    stays, test = old
    found = taken(old, {new: "x = 1"})
    assert found == f"{test} imports {new} now, and {stays}, which it imported, stays as it was"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (JS, {"page.js": "exports.pages = 1;", "page/index.js": ""}),
        (JS, {"page/other.js": "exports.other = 1;"}),
        (JS, {"page.js": "x", "test/page.test.js": 'const { pages } = require("../page.js");'}),
        (TS, {"src/pages.ts": "export const b = 1;"}),
        (JS, {"page/index.ts": "export const pages = 1;"}),
        (PYTHON, {"shop/cart.py": "B = 1"}),
        (PYTHON, {"shop/__init__.py": "A = 1", "shop.py": ""}),
        (PACKAGE, {"shop/cart.py": "B = 1"}),
        (NAMESPACE, {"shop/__init__.py": ""}),
        (NAMESPACE, {"shop/__init__.py": "B = 1"}),
        (VUE, {"src/page.ts": "export const b = 1;"}),
    ],
)
def test_files_that_move_or_stand_beside_are_nothing(
    old: dict[str, str], new: dict[str, str]
) -> None:
    assert taken(old, new) == ""


def test_machine_code_in_the_place_of_a_source() -> None:
    native = {"shop/cart.cpython-311-x86_64-linux-gnu.so": "\0"}
    assert "in the place of shop/cart.py, which stays as it was" in taken(NAMESPACE, native)
    assert taken(NAMESPACE, {**native, "shop/cart.py": "A = load()"}) == ""
    assert taken(NAMESPACE, {"shop/fast.so": "\0"}) == ""
