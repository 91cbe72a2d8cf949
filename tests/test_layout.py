"""The house itself: links, the built wheel, layers, and what no tracked file may hold."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import grimp
import pytest

from agentrunner.registry import LOGINS, PLANNERS, SANDBOXES, WORKERS
from tests.kit.missing import missing

ROOT = Path(__file__).parents[1]
LINKS = {"cli.py": "../cli.py", "graph": "../graph", "nodes": "../nodes", "prompts": "../prompts"}
STARTERS = re.compile(r"subprocess\.|create_subprocess_|os\.(exec|spawn|posix_spawn|system|popen)")
AS_BYTES = re.compile(r"agentrunner/(verification|notes|discovery)/")
PLAIN_ENCODE = re.compile(r"\.encode\(('utf-8')?\)$")
MACHINE_PATHS = re.compile(r"/(?:work/(?:main|shared)|tmp/w)\b|/root/\.(?:pyenv|cache|local)\b")


def tracked() -> list[Path]:
    """Files of the checkout that git knows; an unpacked sdist has none."""
    if not (ROOT / ".git").exists():
        missing("not a git checkout")
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    return [ROOT / name for name in listed.decode().split("\0") if name]


def python_files() -> Iterator[Path]:
    """What is installed, each file once."""
    yield ROOT / "cli.py"
    for room in ("agentrunner", "graph", "nodes", "prompts"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if not any(parent.is_symlink() for parent in (path, *path.parents)):
                yield path


def test_unit_tests_mirror_the_rooms() -> None:
    unit, package = ROOT / "tests" / "unit", ROOT / "agentrunner"
    tested = {path.parent.relative_to(unit) for path in unit.rglob("test_*.py")}
    assert {room for room in tested if not (package / room).is_dir()} == {Path("kit")}
    rooms = {path.parent.relative_to(package) for path in package.glob("*/__init__.py")}
    suites = {Path("testing")}  # tests/integration runs them on what they are for
    assert rooms - tested == suites


@pytest.mark.parametrize(("name", "target"), LINKS.items())
def test_the_package_links_to_the_rooms_at_the_root(name: str, target: str) -> None:
    link = ROOT / "agentrunner" / name
    assert link.is_symlink()
    assert str(link.readlink()) == target
    assert link.exists()


def test_every_class_exists_once() -> None:
    script = (
        "import sys, agentrunner.cli, agentrunner.engine.runs\n"
        "print([name for name in ('cli', 'graph', 'nodes', 'prompts') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_help_is_quick_because_nothing_heavy_is_imported() -> None:
    heavy = ("langgraph", "langchain_core", "openai", "docker", "httpx", "jinja2")
    script = f"import sys, agentrunner.cli; print([m for m in {heavy!r} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"agentrunner"}
    sources = {_installed_name(path) for path in python_files()}
    assert sources == {name for name in names if name.endswith(".py")}
    data = [
        "prompts/en/patterns.yaml",
        "prompts/ja/worker.jinja",
        "images/codex/Dockerfile",
        "docs/how-to/plan.md",
        "py.typed",
    ]
    assert {f"agentrunner/{name}" for name in data} <= names


def _installed_name(path: Path) -> str:
    inside = path.relative_to(ROOT)
    return str(inside if inside.parts[0] == "agentrunner" else "agentrunner" / inside)


def test_adapters_are_reached_through_the_registry_and_know_nothing_of_each_other() -> None:
    graph = grimp.build_graph("agentrunner", cache_dir=None)
    for table in (PLANNERS.own, SANDBOXES.own, WORKERS.own, LOGINS):
        places = (place for place in table.values() if place.startswith("agentrunner."))
        adapters = {place.partition(":")[0] for place in places}  # the battery adds one of its own
        pairs = permutations(adapters, 2)
        assert [pair for pair in pairs if graph.chain_exists(*pair, as_packages=True)] == []
        modules = adapters.union(*map(graph.find_descendants, adapters))
        for room in (f"agentrunner.{name}" for name in ("engine", "execution", "graph", "nodes")):
            for module in {room, *graph.find_descendants(room)}:
                assert not graph.find_modules_directly_imported_by(module) & modules, module


def test_git_is_run_in_one_place_only() -> None:
    """T1: a worker may have prepared the repository so that git runs its code on the host."""
    runners = set()
    for path in python_files():
        source = path.read_text(encoding="utf-8")
        if STARTERS.search(source) and _names_git(source):
            runners.add(str(path.relative_to(ROOT)))
    # The conformance suite makes repositories of its own to try boxes with.
    assert runners == {
        "agentrunner/git/blobs.py",  # one long-lived cat-file, as `Git` would start it
        "agentrunner/git/process.py",
        "agentrunner/testing/sandboxes/workbench.py",
    }


def test_names_of_files_become_bytes_by_the_helper() -> None:
    """A plain `encode` raises on a name that is not UTF-8, and `text/unicode.py` does not."""
    plain = []
    for path in python_files():
        place = str(path.relative_to(ROOT))
        # The reporters run in the tests' own process, which may not have this package.
        if AS_BYTES.match(place) and "/reporters/" not in place:
            plain += [f"{place}: {text}" for text in _plain_encodes(path.read_text("utf-8"))]
    assert plain == []


def _plain_encodes(source: str) -> list[str]:
    """Texts that are encoded by `.encode()`, other than those of `json.dumps`, which are ASCII."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [
        text
        for text in map(ast.unparse, calls)
        if re.search(r"\.encode\((['\"]utf-8['\"])?\)$", text)
        and not text.startswith("json.dumps(")
    ]


def test_only_commands_start_an_event_loop() -> None:
    """Below them somebody else's loop may be running: that of a server, or of a caller of the API.

    What runs as a process of its own starts its loop in `main`.
    """
    started = [
        f"{path.relative_to(ROOT)}: {function.name}"
        for path in python_files()
        if "commands" not in path.parts and "tests" not in path.parts
        for function in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name != "main"
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "asyncio.run"
    ]
    assert started == []


def _names_git(source: str) -> bool:
    """Whether a program `git` is spelt as a text outside of docstrings."""
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_git(node.value)
        for node in ast.walk(ast.parse(source))
    )


def _is_git(text: str) -> bool:
    return text in ("git", "/usr/bin/git") or text.startswith("git ")


def test_no_tracked_file_holds_a_path_of_the_machine_it_was_written_on() -> None:
    found = []
    for path in tracked():
        if path.is_symlink() or not path.is_file() or path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            if MACHINE_PATHS.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []
