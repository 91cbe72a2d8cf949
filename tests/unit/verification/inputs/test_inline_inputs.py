"""Programs that stand in a command: what they import and read decides as well."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.finder import find_inputs

CART = "def total(items):\n    return sum(p for p, c in items)\n"


def _counted(shell: str, files: dict[str, str]) -> dict[str, str]:
    contents = {path: text.encode() for path, text in files.items()}
    found = find_inputs([(shell, ".")], list(contents), contents.get)
    return {one.path: one.why for one in found.deciding + found.unsure}


@pytest.mark.parametrize(
    ("code", "path", "text"),
    [
        ("import cart, json; assert cart.total([]) == json.load(open('spec/t.json'))",
         "spec/t.json", "0"),
        ("from cart import total; from tools.want import WANT; assert total([]) == WANT",
         "tools/want.py", "WANT = 0\n"),
    ],
)  # fmt: skip
def test_what_an_inline_program_compares_with_counts(code: str, path: str, text: str) -> None:
    found = _counted(f'python3 -c "{code}"', {"cart.py": CART, path: text})
    assert list(found) == [path]
    assert "by the command and by no product file" in found[path]


def test_what_an_inline_program_is_about_is_product() -> None:
    shell = "python3 -c \"import json; assert json.load(open('a.json'))['version'] == '2'\""
    assert _counted(shell, {"a.json": "{}", "cart.py": CART}) == {}


def test_a_document_of_node_is_read_too() -> None:
    shell = "node - <<'E'\nrequire('assert').equal(require('./cart'), require('./want.json'))\nE"
    found = _counted(shell, {"cart.js": "module.exports = 1\n", "want.json": "1"})
    assert list(found) == ["want.json"]


@pytest.mark.parametrize(
    ("shell", "itself"),
    [
        ("cp a.csv /tmp/b && python3 m.py && diff a.csv /tmp/b", True),
        ("cp -p a.csv /tmp/ && python3 m.py && diff a.csv /tmp/a.csv", True),
        ("cp a.csv /tmp/b && python3 m.py > out && diff out /tmp/b", False),
        ("cp a.csv /tmp/b; cmp a.csv /tmp/b; python3 m.py | diff - a.csv", False),
    ],
)
def test_a_file_that_is_compared_with_its_own_copy_is_known(shell: str, itself: bool) -> None:
    tree = {"a.csv": b"1", "m.py": b"print(1)\n"}
    found = find_inputs([(shell, ".")], list(tree), tree.get)
    assert [(one.kind, one.itself) for one in found.deciding if one.path == "a.csv"] == [
        ("fixture", itself)
    ]
