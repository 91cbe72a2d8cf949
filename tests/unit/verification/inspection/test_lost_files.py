"""What the work took away may not be imported by its own product any more."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.lost_files import lost_file
from tests.kit.text_trees import both_trees


def told(old: dict[str, str], new: dict[str, str]) -> str:
    return lost_file(both_trees(old, new))


SHOP = {"shop/__init__.py": "", "shop/utils.py": "def price(): pass\n"}
MONEY = {"shop/__init__.py": "", "shop/money.py": "def price(): pass\n"}


@pytest.mark.parametrize(
    "importing",
    ["from shop import utils\n", "import shop.utils\n", "from shop.utils import price\n",
     "from . import utils\n", "from .utils import price\n"],
)  # fmt: skip
def test_a_file_that_is_gone_may_not_be_imported(importing: str) -> None:
    use = {"shop/importer.py": importing}
    found = told(SHOP | use, MONEY | use)
    assert found == "shop/importer.py still imports shop/utils.py, which the work took away"
    assert not told(SHOP | use, SHOP | MONEY | use)
    assert not told(SHOP | use, MONEY | {"shop/importer.py": "from shop import money\n"})


def test_a_new_file_may_not_either() -> None:
    assert told(SHOP, MONEY | {"shop/cart.py": "from shop.utils import price\n"})


def test_a_test_that_is_left_behind_is_not_the_product() -> None:
    use = {"tests/test_utils.py": "from shop.utils import price\n"}
    assert not told(SHOP | use, MONEY | use)


@pytest.mark.parametrize(
    "new",
    [
        {"shop/__init__.py": "", "shop/utils/__init__.py": ""},
        {"src/shop/__init__.py": "", "src/shop/utils.py": ""},
        {"shop/__init__.py": "from shop import money as utils\n", "shop/money.py": ""},
    ],
    ids=["a package instead", "in another folder", "another one by its name"],
)
def test_what_stands_in_its_place_is_imported(new: dict[str, str]) -> None:
    use = {"main.py": "from shop import utils\n"}
    assert not told(SHOP | use, new | use)


def test_a_file_of_javascript() -> None:
    old = {"src/util.js": "", "src/index.js": "import { pad } from './util.js';\n"}
    new = {"src/text.js": "", "src/index.js": old["src/index.js"]}
    assert told(old, new).startswith("src/index.js still imports src/util.js")
    assert not told(old, {"src/util.ts": "", "src/index.js": old["src/index.js"]})


def test_a_file_of_go_is_no_module() -> None:
    old = {"go.mod": "module a\n", "a.go": "package a\n", "b.go": "package a\n"}
    assert not told(old, {"go.mod": "module a\n", "b.go": "package a\n"})
