"""What the requirements want removed and is still there."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.left_as_it_was import still_there
from tests.kit.text_trees import both_trees


def _left(old: dict[str, str], new: dict[str, str], asked: str) -> str:
    return still_there(both_trees(old, new), asked)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("Move `price` to money.py and delete `utils.py`.", True),
        ("Update all imports and remove utils.py, as nothing needs it.", True),
        ("Remove `utils.py` entries that are stale.", False),
        ("Do not delete `utils.py`.", False),
        ("Delete `gone.py`.", False),
    ],
)
def test_a_file_that_has_to_go(asked: str, told: bool) -> None:
    old = {"utils.py": "def price(): pass\n", "use.py": "import utils\n"}
    new = old | {"utils.py": "from money import price\n", "money.py": "def price(): pass\n"}
    found = _left(old, new, asked)
    assert found.startswith("utils.py is still there") is told
    assert not _left(old, {"use.py": "import money\n"}, asked)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("The option `--verbose` is no longer wanted. Remove it.", True),
        ("Remove the CLI option `--verbose`.", True),
        ("Do not remove `--verbose`.", False),
        ("`--verbose` says more.", False),
    ],
)
def test_an_option_that_has_to_go(asked: str, told: bool) -> None:
    old = {"app.py": 'p.add_argument("--verbose")\np.add_argument("--verbose-log")\n'}
    more = {"app.py": old["app.py"] + 'p.add_argument("--level")\n'}
    assert _left(old, more, asked).startswith("`--verbose` is still there") is told
    assert not _left(old, {"app.py": 'p.add_argument("--verbose-log")\n'}, asked)


@pytest.mark.parametrize(
    ("asked", "now", "told"),
    [
        ("Use logging. Remove the `print` calls.", "log()\nprint(2)\n", True),
        ("Use logging. Remove all `print` statements.", "log()\nlog()\n", False),
        ("Use logging. Remove the `print` calls.", "log()\n# print(2)\npprint(2)\n", False),
        ("Remove the first `print` call.", "log()\nprint(2)\n", False),
    ],
)
def test_calls_that_have_to_go(asked: str, now: str, told: bool) -> None:
    found = _left({"rows.py": "print(1)\nprint(2)\n"}, {"rows.py": now}, asked)
    assert found.startswith("rows.py still calls `print`") is told
