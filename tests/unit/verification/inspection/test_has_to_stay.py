"""What the requirements want kept and is gone."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.has_to_stay import gone_though_kept
from tests.kit.text_trees import both_trees

OLD = {
    "names.py": "def snake(text):\n    return text.lower()\n",
    "cli.py": 'p.add_argument("--loud")\n',
    "notes.txt": "x\n",
}
RENAMED = {"names.py": "def to_snake(text):\n    # was: snake\n    return text.lower()\n"}
ALIAS = {"names.py": f"{RENAMED['names.py']}\n\nsnake = to_snake\n"}


def _gone(change: dict[str, str], asked: str, lost: str = "") -> str:
    new = {path: text for path, text in (OLD | change).items() if path != lost}
    return gone_though_kept(both_trees(OLD, new), asked)


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
    assert not gone_though_kept(both_trees(old, new), asked)


def test_an_option_and_a_file_that_have_to_stay() -> None:
    asked = "Add `--noisy`; `--loud` keeps working. Keep `notes.txt` as it is."
    other = {"cli.py": 'p.add_argument("--noisy")\n'}
    assert _gone(other, asked).startswith("`--loud` is gone")
    both = {"cli.py": 'p.add_argument("--noisy", "--loud")\n'}
    assert not _gone(both, asked)
    assert _gone(both, asked, lost="notes.txt").startswith("notes.txt is gone")


ASKED = "Rename `snake` to `to_snake`. The old name stays as an alias."
RENAMED_ALONE = "def to_snake(text):\n    return text.lower()\n"


@pytest.mark.parametrize(
    "more",
    [
        "def path(text):\n    snake = to_snake(text)\n    return snake\n",
        "def joined(snake, other):\n    return 1\n",
    ],
)
def test_a_name_within_a_function_is_offered_to_nobody(more: str) -> None:
    assert _gone({"names.py": RENAMED_ALONE + more}, ASKED)


def test_a_name_in_an_old_list_is_no_alias_and_one_that_is_made_when_asked_for_is() -> None:
    old = {"names.py": f'__all__ = ["snake"]\n{OLD["names.py"]}'}
    new = {"names.py": f'__all__ = ["snake"]\n{RENAMED_ALONE}'}
    lazy = 'def __getattr__(name):\n    if name == "snake":\n        return to_snake\n'
    for text, lost in ((new["names.py"], True), (new["names.py"] + lazy, False)):
        trees = both_trees(old, {"names.py": text})
        assert bool(gone_though_kept(trees, ASKED)) is lost


@pytest.mark.parametrize(
    "asked",
    [
        "Rename `snake` to `to_snake`. Do not remove `snake`.",
        "Rename `snake` to `to_snake` without removing the old `snake`.",
        "Rename `snake` to `to_snake`; `snake` must not go away.",
        "Rename `snake` to `to_snake`. `snake()` may never stop working.",
    ],
)
def test_a_name_that_may_not_go_has_to_stay(asked: str) -> None:
    assert _gone(RENAMED, asked).startswith("`snake` is gone")
    assert not _gone(ALIAS, asked)


def test_a_name_that_is_to_be_kept_out_may_go() -> None:
    assert not _gone(RENAMED, "Rename `snake` to `to_snake`. Keep `snake` out of names.py.")


def test_a_name_has_to_stay_where_the_text_wants_it() -> None:
    asked = "Move `snake` to words.py. `snake` stays importable from `names`."
    moved = {"words.py": OLD["names.py"], "names.py": "X = 1\n"}
    assert _gone(moved, asked)
    assert not _gone(moved | {"names.py": "from words import snake\n"}, asked)
    assert not _gone(moved, "Move `snake` to words.py. `snake` stays as it is.")


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ('p.add_argument("--noisy", help="replaces --loud")\n', True),
        ('p.add_argument("--noisy", help="--loud is gone")\n', True),
        ('p.add_argument("-l", "--loud", "--noisy")\n', False),
        ('o.option("-l, --loud <how>")\n', False),
        ('USAGE = """usage: p [--loud] FILE\n"""\n', False),
        ('HELP = """options:\n  -l --loud  Be loud\n"""\n', False),
    ],
)
def test_a_help_that_names_an_option_offers_none(text: str, lost: bool) -> None:
    assert bool(_gone({"cli.py": text}, "Add `--noisy`; `--loud` keeps working.")) is lost


def test_an_option_that_is_written_without_its_dashes() -> None:
    old = {"a.go": 'package a\n\nvar l = flag.Bool("loud", false, "be loud")\n'}
    other, both = 'flag.Bool("noisy", false, "as loud")', 'f("loud", "noisy")'
    for text, lost in ((other, True), (both, False)):
        new = {"a.go": f"package a\n\nvar l = {text}\n"}
        trees = both_trees(old, new)
        assert bool(gone_though_kept(trees, "Add `--noisy`. `--loud` stays.")) is lost


def test_a_file_that_is_emptied_has_not_stayed() -> None:
    asked = "Move all to words.py. `names.py` stays and re-exports it."
    assert _gone({"names.py": "# moved\n"}, asked).startswith("names.py is gone")
    assert not _gone({"names.py": "from words import snake\n"}, asked)


@pytest.mark.parametrize(
    ("old", "lost"),
    [
        ("def known(words):\n    items = sorted(words)\n    return items\n", False),
        ("def known(items):\n    return sorted(items)\n", True),
        ("class A:\n    def f(self):\n        self.items = 1\n", True),
        ("def known(words):\n    return dict(items=words)\n", True),
        ("def known(words):\n    return {'items': words}\n", True),
    ],
)
def test_a_variable_of_a_function_need_not_stay(old: str, lost: bool) -> None:
    files, new = {"a.py": old}, {"a.py": "def known(words):\n    return words\n"}
    assert bool(gone_though_kept(both_trees(files, new), "`items` is kept sorted.")) is lost


@pytest.mark.parametrize(
    ("left", "gone"),
    [
        ("from pkg.text import slug\n", False),
        ("from pkg.text import *\n", False),
        ("# slug lives in pkg.text\n", True),
        ("import warnings\n", True),
        (None, True),
    ],
)
@pytest.mark.parametrize("name", ["pkg.utils", "utils"])
def test_a_module_that_has_to_stay_is_its_file(name: str, left: str | None, gone: bool) -> None:
    slug = "def slug(text):\n    return text.lower()\n"
    old = {"pkg/utils.py": slug, "pkg/report.py": "import pkg.utils\nfrom pkg import utils\n"}
    new = {"pkg/text.py": slug, "pkg/report.py": "import pkg.text\nfrom pkg import text\n"}
    if left is not None:
        new["pkg/utils.py"] = left
    asked = f"`{name}` becomes `text`. `{name}` stays as an alias."
    expected = f"`{name}` is gone, and the requirements say: `{name}` stays as an alias"
    assert gone_though_kept(both_trees(old, new), asked) == (expected if gone else "")
