"""What the requirements want kept and is gone."""

from __future__ import annotations

from typing import cast

import pytest

from agentrunner.git.snapshots import Snapshots
from agentrunner.verification.inspection.both_trees import BothTrees
from agentrunner.verification.inspection.has_to_stay import gone_though_kept
from tests.kit.text_trees import TextTrees

OLD = {
    "names.py": "def snake(text):\n    return text.lower()\n",
    "cli.py": 'p.add_argument("--loud")\n',
    "notes.txt": "x\n",
}
RENAMED = {"names.py": "def to_snake(text):\n    # was: snake\n    return text.lower()\n"}
ALIAS = {"names.py": f"{RENAMED['names.py']}\n\nsnake = to_snake\n"}


def _gone(change: dict[str, str], asked: str, lost: str = "") -> str:
    new = {path: text for path, text in (OLD | change).items() if path != lost}
    trees = BothTrees.of(cast(Snapshots, TextTrees(OLD, new)), "old", "new", list(OLD))
    return gone_though_kept(trees, [path for path in change if path in new], asked)


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ("Rename `snake` to `to_snake`. The old name stays as an alias.", True),
        ("Rename `snake` to `to_snake`. The old name must keep working.", True),
        ("Rename `snake` to `to_snake`, and keep the old name as a deprecated alias.", True),
        ("Rename `snake` to `to_snake`; `snake()` still works.", True),
        ("Rename `snake` to `to_snake`. 旧名は別名として残す。", True),
        ("Rename `snake` to `to_snake`. `snake` must still be importable.", True),
        ("Rename `snake` to `to_snake`, without an alias.", False),
        ("Rename `snake` to `to_snake`. Do not keep the old name.", False),
        ("Rename `snake` to `to_snake`. The old name may stay.", False),
        ("Rename `snake` to `to_snake`.", False),
    ],
)
def test_an_old_name_that_has_to_stay(asked: str, refused: bool) -> None:
    assert _gone(RENAMED, asked).startswith("`snake` is gone") is refused
    assert not _gone(ALIAS, asked)
    assert not _gone(RENAMED | {"compat.py": "from names import to_snake as snake\n"}, asked)


def test_a_text_about_a_name_makes_none_and_a_table_of_old_names_does() -> None:
    asked = "Rename `snake` to `to_snake`. The old name stays as an alias."
    code = "def to_snake(text):\n    return text.lower()\n"
    for talk in ('"""Was `snake` before."""\n', 'HINT = "snake is to_snake now"\n'):
        assert _gone({"names.py": talk + code}, asked), talk
    for table in ('OLD = {"snake": to_snake}\n', "globals()['snake'] = to_snake\n"):
        assert not _gone({"names.py": code + table}, asked), table


def test_a_name_that_another_file_makes_is_there() -> None:
    asked = "`loud` stays."
    old = {"a.py": "loud = 1\n", "b.py": "def loud(): pass\n"}
    new = {"a.py": "quiet = 1\n", "b.py": old["b.py"]}
    trees = BothTrees.of(cast(Snapshots, TextTrees(old, new)), "old", "new", list(old))
    assert not gone_though_kept(trees, ["a.py"], asked)


def test_an_option_and_a_file_that_have_to_stay() -> None:
    asked = "Add `--noisy`; `--loud` keeps working. Keep `notes.txt` as it is."
    other = {"cli.py": 'p.add_argument("--noisy")\n'}
    assert _gone(other, asked).startswith("`--loud` is gone")
    both = {"cli.py": 'p.add_argument("--noisy", "--loud")\n'}
    assert not _gone(both, asked)
    assert _gone(both, asked, lost="notes.txt").startswith("notes.txt is gone")
