"""Packages that a manifest names and nobody installed, and modules that are still to be written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentrunner.state.state_model import FileRef
from agentrunner.verification.results.model import Results, TestResult
from agentrunner.verification.rooms import lacking_packages
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome
from agentrunner.verification.rooms.lacking_packages import declared_in, lacking_package
from agentrunner.verification.rooms.start_up import why_no_test_says_anything

RAN = CommandOutcome(1, FileRef(path="x"), "", None, 1)

PYPROJECT = """
[project]
name = "shop"
dependencies = ["httpx>=0.2", "PyYAML", "near"]
optional-dependencies = { tests = ["trio-x; python_version > '3'"] }
[dependency-groups]
dev = ["ruff", { include-group = "tests" }]
[tool.poetry.group.qa.dependencies]
mimesis = "*"
beside = { path = "../beside" }
[tool.uv.sources]
near = { workspace = true }
"""


@pytest.mark.parametrize(
    ("module", "place"),
    [
        ("httpx", "pyproject.toml"),
        ("yaml", "pyproject.toml"),
        ("trio_x", "pyproject.toml"),
        ("ruff", "pyproject.toml"),
        ("mimesis", "pyproject.toml"),
        ("attrs", "setup.cfg"),
        ("coverage", "tox.ini"),
        ("dateutil", "setup.py"),
        ("numpy", "requirements-dev.txt"),
        ("shop", ""),
        ("beside", ""),
        ("near", ""),
        ("tests", ""),
        ("pytest", ""),
    ],
)
def test_only_a_requirement_of_a_manifest_is_declared(
    tmp_path: Path, module: str, place: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "setup.cfg").write_text(
        "[metadata]\nname = shop\n[options]\ninstall_requires =\n  attrs>=1\n"
        "[tool:pytest]\naddopts = --cov shop\n"
    )
    (tmp_path / "tox.ini").write_text(
        "[testenv]\ndeps =\n  py38: coverage\n  -e .\ncommands = pytest tests\n"
    )
    (tmp_path / "setup.py").write_text(
        'setup(name="shop", packages=["shop"], install_requires=["python-dateutil>=2"])\n'
    )
    (tmp_path / "requirements-dev.txt").write_text("# shop\nnumpy==2\n")
    assert declared_in(module, tmp_path) == place


def test_a_module_of_the_repository_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "httpx.py").write_text("")
    assert declared_in("httpx", tmp_path) == ""


def red(message: str) -> TestResult:
    return TestResult("tests/test_a.py", "error", message=message)


LACKS = "ModuleNotFoundError: No module named 'httpx'"
ESM = "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@no/such' imported from /r/a.test.mjs"


@pytest.mark.parametrize(
    ("messages", "wanted", "lacking"),
    [
        ([LACKS], "Mend the total.", "httpx"),
        ([LACKS, "No module named 'yaml.nodes'"], "", "httpx"),
        (["Error: Cannot find module 'left/pad.js'\nRequire stack:"], "", "left"),
        ([ESM], "", "@no/such"),
        ([LACKS], "Fetch the page with httpx.", ""),
        ([LACKS, "ModuleNotFoundError: No module named 'shop'"], "", ""),
        ([LACKS, "assert 1 == 2"], "", ""),
        (["Error: Cannot find module './total.js'"], "", ""),
        (["Error: Cannot find module 'installed'"], "", ""),
        (["Error: Cannot find module 'sibling'"], "", ""),
        (["Error: Cannot find module 'far'"], "", "far"),
        (["Error: Cannot find module 'shop-part'"], "", ""),
        (["Error: Cannot find module 'there'"], "", ""),
    ],
)
def test_what_no_test_can_be_imported_without(
    tmp_path: Path, messages: list[str], wanted: str, lacking: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "node_modules" / "installed").mkdir(parents=True)
    (tmp_path / "package.json").write_text(
        '{"name": "shop", "dependencies": {"left": "1", "installed": "1"},'
        ' "devDependencies": {"@no/such": "1", "sibling": "workspace:*"},'
        ' "workspaces": ["parts/*", "/etc", "../*"]}'
    )
    part = tmp_path / "parts" / "part"
    (part / "node_modules" / "there").mkdir(parents=True)
    (part / "package.json").write_text(
        '{"name": "shop-part", "dependencies": {"far": "1", "there": "1", "shop-part": "1"}}'
    )
    results = Results("x", tuple(map(red, messages)))
    for why in (
        why_no_test_says_anything("x", RAN, results, tmp_path, wanted),
        lacking_package("\n".join(messages), tmp_path, wanted, len(messages)),
    ):
        assert (f"the package {lacking} is named in" in why) if lacking else not why
    if lacking:
        beside = Results(
            "x", (*map(red, messages), TestResult("tests/test_b.py::test_b", "passed"))
        )
        assert why_no_test_says_anything("x", RAN, beside, tmp_path, wanted) == ""
        assert lacking_package(messages[0], tmp_path, wanted, 2) == ""


@pytest.mark.parametrize(
    ("pattern", "place"),
    [
        ("parts/*", "parts/one/package.json"),
        ("./parts/one/", "parts/one/package.json"),
        ("parts/**", "parts/one/package.json"),
        ("**", "parts/one/package.json"),
        ("**one", ""),
        ("parts/**one", "parts/one/package.json"),
        ("../*/parts/one", ""),
        ("/", ""),
        ("!parts/one", ""),
        ("node_modules/*", ""),
    ],
)
@pytest.mark.parametrize("by", ["package.json", "pnpm-workspace.yaml"])
def test_workspaces_are_found_by_the_patterns_that_name_them(
    tmp_path: Path, pattern: str, place: str, by: str
) -> None:
    folders = ("parts/one", "node_modules/two", "parts/one/node_modules/three", "parts/.cache/four")
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "package.json").write_text('{"dependencies": {"far": "1"}}')
    (tmp_path / "parts" / "link").symlink_to(tmp_path)
    whole = {"name": "shop"} | ({"workspaces": [pattern, 3]} if by == "package.json" else {})
    (tmp_path / "package.json").write_text(json.dumps(whole))
    if by != "package.json":
        # As people write it: a comment, a list in brackets, another list beside it.
        (tmp_path / by).write_text(
            f"# all\npackages: ['{pattern}', 3]\nonlyBuiltDependencies:\n  - parts/one\n"
        )
    lacks = "Error: Cannot find module 'far'"
    why = lacking_package(lacks, tmp_path, "")
    assert why == (f"the package far is named in {place}, and is not installed" if place else "")


def test_a_pattern_of_workspaces_is_followed_in_no_more_steps_than_there_are_folders(
    tmp_path: Path,
) -> None:
    """Each `**` can stand for no folder up to 20 of them: the ways there are millions."""
    tmp_path.joinpath(*["a"] * 20).mkdir(parents=True)
    (tmp_path / "a/b").mkdir()
    (tmp_path / "a/b/package.json").write_text('{"dependencies": {"far": "1"}}')
    for pattern in ("**/" * 12 + "b", "**/a/**/" + "**/*/" * 12 + "**/b", "**/**/a/**/b/**/**"):
        (tmp_path / "package.json").write_text(json.dumps({"workspaces": [pattern]}))
        why = lacking_package("Error: Cannot find module 'far'", tmp_path, "")
        assert bool(why) == ("*/*/" not in pattern), pattern


def test_of_many_folders_those_nearby_are_workspaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lacking_packages, "MOST_LOOKED_AT", 8)
    (tmp_path / "package.json").write_text('{"workspaces": ["**"]}')
    for folder, package in (("b", "near"), ("a/a/a/a/a/a/a/a/a", "deep")):
        (tmp_path / folder).mkdir(parents=True)
        text = json.dumps({"dependencies": {package: "1"}})
        (tmp_path / folder / "package.json").write_text(text)
    assert lacking_package("Error: Cannot find module 'near'", tmp_path, "")
    assert not lacking_package("Error: Cannot find module 'deep'", tmp_path, "")


@pytest.mark.parametrize("text", ["- a", "packages: &a [x]", "packages: 3", "[", ""])
def test_a_list_of_workspaces_of_another_form_names_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "pnpm-workspace.yaml").write_text(text)
    (tmp_path / "package.json").write_text('{"dependencies": {"far": "1"}}')
    why = lacking_package("Error: Cannot find module 'far'", tmp_path, "")
    assert why == "the package far is named in package.json, and is not installed"


def test_a_manifest_that_is_a_pipe_is_waited_for_by_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    (tmp_path / "own.txt").write_text("httpx\n")
    (tmp_path / "requirements.txt").symlink_to("own.txt")
    assert declared_in("httpx", tmp_path) == "requirements.txt"


@pytest.mark.parametrize(
    ("message", "composer", "lacking"),
    [
        ('Cannot open file "/r/shop/vendor/autoload.php".', "{}", True),
        ('Cannot open bootstrap script "/r/shop/vendor/autoload.php"', "{}", True),
        ("Uncaught Error: Failed opening required '/r/tests/../vendor/autoload.php'", "{}", True),
        ('Cannot open file "/r/lib/autoload.php".', '{"config": {"vendor-dir": "lib"}}', True),
        ('Cannot open file "/r/tests/autoload.php".', "{}", False),
        ('Cannot open file "/r/vendor/autoload.php".', "", False),
    ],
)
def test_what_composer_has_not_installed(
    tmp_path: Path, message: str, composer: str, lacking: bool
) -> None:
    if composer:
        (tmp_path / "composer.json").write_text(composer)
    why = lacking_package(message, tmp_path, "Add isValid.")
    assert why.endswith("composer.json names are not installed") == lacking
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "autoload.php").write_text("<?php")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "autoload.php").write_text("<?php")
    assert lacking_package(message, tmp_path, "Add isValid.") == ""
