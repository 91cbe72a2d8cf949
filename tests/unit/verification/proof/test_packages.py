"""What goes back of installed packages after a set-up ran on a worker's code."""

from pathlib import Path

import pytest

from agentrunner.verification.evidence.findings import set_up_fails
from agentrunner.verification.proof.packages import names_imported, put_back_packages
from tests.kit.files import write

SITE = "lib/python3.12/site-packages"


def stood(line: str) -> bool:
    return line == "/repo/libs/money/src"


OLD = {
    f"{SITE}/near/__init__.py": "def near(): return False\n",
    f"{SITE}/lib/__init__.py": "import inner\n",
    f"{SITE}/inner.py": "V = 1\n",
    f"{SITE}/near-1.0.dist-info/RECORD": "old",
    f"{SITE}/__editable__.shop-1.0.pth": "/repo/src\n",
    "bin/pytest": "good",
}
CHANGES: dict[str, tuple[dict[str, str | None], list[str]]] = {
    "nothing": ({}, []),
    "byte code and data": (
        {f"{SITE}/near/__pycache__/a.pyc": "x", f"{SITE}/near-1.0.dist-info/RECORD": "new"}, [],
    ),
    "what only tests use": ({f"{SITE}/near/__init__.py": "yes"}, [f"{SITE}/near"]),
    "what only tests use is gone": ({f"{SITE}/near/__init__.py": None}, [f"{SITE}/near"]),
    "what the product uses": ({f"{SITE}/lib/__init__.py": "import inner, more\n"}, []),
    "what that uses in turn": ({f"{SITE}/inner.py": "V = 2\n"}, []),
    "a new package": ({f"{SITE}/more/__init__.py": ""}, []),
    "a package before a module": ({f"{SITE}/near/new.py": ""}, [f"{SITE}/near"]),
    "a new module of Python's start": (
        {f"{SITE}/sitecustomize.py": ""}, [f"{SITE}/sitecustomize.py"],
    ),
    "a new path file": ({f"{SITE}/zz.pth": "import os\n"}, [f"{SITE}/zz.pth"]),
    "a package of the repository that stood before": (
        {f"{SITE}/money.pth": "/repo/libs/money/src\n"}, [],
    ),
    "a path file that also imports": (
        {f"{SITE}/money.pth": "/repo/libs/money/src\nimport os\n"}, [f"{SITE}/money.pth"],
    ),
    "another version of the project itself": (
        {f"{SITE}/__editable__.shop-1.1.pth": "/repo/src\n"}, [],
    ),
    "a new plug-in": (
        {f"{SITE}/more-1.dist-info/entry_points.txt": "[pytest11]\na = more\n"},
        [f"{SITE}/more-1.dist-info/entry_points.txt"],
    ),
    "an old package becomes a plug-in": (
        {f"{SITE}/near-1.0.dist-info/entry_points.txt": "[pytest11]\na = near\n"},
        [f"{SITE}/near-1.0.dist-info/entry_points.txt"],
    ),
    "programs": ({"bin/pytest": "bad", "bin/diff": "bad"}, ["bin/diff", "bin/pytest"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_packages_of_python(tmp_path: Path, name: str) -> None:
    changes, wanted = CHANGES[name]
    old = write(tmp_path / "old", OLD)
    now = {**OLD, **changes}
    new = write(tmp_path / "new", {path: text for path, text in now.items() if text is not None})
    assert put_back_packages(new, old, {"lib"}, {"pytest"}, stood) == wanted
    for path in wanted:
        assert (new / path).exists() is (old / path).exists()
    assert put_back_packages(new, old, {"lib"}, {"pytest"}, stood) == []


def test_packages_of_javascript(tmp_path: Path) -> None:
    files = {"near/index.js": "1", "@a/lib/index.js": "require('inner')", "inner/index.js": "1"}
    old = write(tmp_path / "old/node_modules", files)
    (old / ".bin").mkdir()
    (old / ".bin/mocha").symlink_to("../mocha/bin")
    changed = {"near/index.js": "2", "inner/index.js": "2", "@a/lib/index.js": "2", "new/i.js": "1"}
    new = write(tmp_path / "new/node_modules", changed)
    (new / ".bin").mkdir()
    (new / ".bin/mocha").symlink_to("../near/bin")
    assert put_back_packages(new, old, {"@a/lib"}, set(), stood) == [".bin", "near"]
    assert (new / ".bin/mocha").readlink() == Path("../mocha/bin")
    assert (new / "near/index.js").read_text() == "1"
    assert (new / "inner/index.js").read_text() == "2"


def test_tools_are_never_the_products(tmp_path: Path) -> None:
    old = write(tmp_path / "old", {f"{SITE}/pytest.py": "1"})
    new = write(tmp_path / "new", {f"{SITE}/pytest.py": "2"})
    assert put_back_packages(new, old, {"pytest"}, {"pytest"}, stood) == [f"{SITE}/pytest.py"]


def test_names_that_sources_import() -> None:
    python = "import a.b, c as d\nfrom e.f import g\nfrom . import h\nfrom .i import j\n"
    script = "import x from '@s/x/deep'; require('y/z'); require('./own')\n"
    assert names_imported([("m.py", python), ("m.js", script)]) == {"a", "c", "e", "@s/x", "y"}


def test_a_set_up_without_our_variables_is_for_a_person() -> None:
    plain, asked = set_up_fails("E401", [], []), set_up_fails("E401", ["NPM_TOKEN"], [])
    assert (plain.blocks, asked.blocks) == (False, True)
    assert "not given NPM_TOKEN" in asked.message
