"""Paths behind a folder that is computed."""

import pytest

from agentrunner.verification.inputs.finder import find_inputs


@pytest.mark.parametrize(
    ("test", "text", "shell"),
    [
        ("test/cart.test.js",
         "const c = require('../cart.js');\nconst top = `${__dirname}/../spec`;\n"
         "for (const n of fs.readdirSync(top)) test(n, () => assert.equal(c.total(n), 1));\n",
         "node --test test/"),
        ("tests/test_cart.py",
         "import cart\n\ndef test_a():\n    assert open(f'{ROOT}/spec/a.json') == cart.total()\n",
         "pytest"),
    ],
)  # fmt: skip
def test_a_table_behind_a_computed_folder_counts(test: str, text: str, shell: str) -> None:
    files = {"cart.js": b"exports.total = 1\n", "cart.py": b"def total(): ...\n",
             "spec/a.json": b"{}", test: text.encode()}  # fmt: skip
    found = find_inputs([(shell, ".")], list(files), files.get)
    assert found.input_at("spec/a.json") is not None
    assert found.input_at("cart.js") is None


@pytest.mark.parametrize("place", ["tests/", ""])
def test_what_pytest_loads_beside_tests_is_no_product(place: str) -> None:
    """A `conftest.py` is known by a pattern. What it reads counts, wherever it lies."""
    files = {
        "cart.py": b"def total(): ...\n",
        f"{place}test_cart.py": b"import cart\n\ndef test_a(golden):\n    golden(cart.total())\n",
        f"{place}conftest.py": (
            b"import helper\nfrom pathlib import Path\n\nHERE = Path(__file__).parent / 'golden'\n"
        ),
        f"{place}golden/test_a.txt": b"1\n",
    }
    found = find_inputs([("pytest", ".")], list(files), files.get)
    assert found.input_at(f"{place}golden/test_a.txt") is not None
    assert found.input_at("cart.py") is None
