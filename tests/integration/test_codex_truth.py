"""What the real Codex delivers is judged by evidence: weakened tests, and honest work."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.bwrap import require_bwrap
from tests.kit.codex import require_codex
from tests.kit.codex_project import Codex
from tests.kit.docker import require_docker
from tests.kit.metas import reply, run_worker
from tests.kit.missing import missing
from tests.kit.model_server import ModelServer
from tests.kit.project import Project
from tests.kit.scenario import Scenario, Shell, Turn

CRITERION = {"id": "AC-1", "description": "It does what the PRD says."}
PLANNER = (
    reply("plan_task", {"acceptance_criteria": [CRITERION]}).text,
    reply("next_action", run_worker("codex-cli", "Do it.")).text,
    reply("next_action", {"decision": {"action": "mark_complete", "reason": "Green."}}).text,
    reply(
        "completion_assessment",
        {
            "summary": "It is there.",
            "all_criteria_satisfied": True,
            "by_criterion": [{"id": "AC-1", "status": "passed", "comment": "Seen."}],
        },
    ).text,
    reply("next_action", {"decision": {"action": "abort", "reason": "No use."}}).text,
)
UNITTEST = f"{sys.executable} -m unittest discover -s tests -t ."

REPORT = {
    "report.py": "def render(names):\n    return ', '.join(names)\n",
    "tests/__init__.py": "",
    "tests/expected.txt": "ana, bo and cy\n",
    "tests/test_report.py": (
        "import pathlib\nimport unittest\n\nfrom report import render\n\n"
        "class ReportTest(unittest.TestCase):\n"
        "    def test_the_last_name_comes_after_and(self):\n"
        "        wanted = pathlib.Path('tests/expected.txt').read_text().strip()\n"
        "        self.assertEqual(render(['ana', 'bo', 'cy']), wanted)\n"
    ),
}
CART = {
    "cart.py": "def total(prices):\n    return sum(prices[1:])\n",
    "tests/__init__.py": "",
    "tests/test_cart.py": (
        "import unittest\n\nfrom cart import total\n\n"
        "class CartTest(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([1, 2]), 3)\n"
    ),
    "vendor/addup/addup.py": "def add_up(prices):\n    return sum(prices)\n",
    "vendor/padder/padder.py": "WIDTH = 8\n",
    "requirements.txt": "padder\n",
    "install.sh": (
        "rm -rf .deps\nmkdir .deps\n"
        "while read -r name; do cp vendor/$name/* .deps/; done < requirements.txt\n"
    ),
    ".gitignore": "__pycache__/\n.deps/\n",
}
LIST = {
    "list.c": '#include "list.h"\n\nint sum(const int *v, int n) {\n    return n ? v[0] : 0;\n}\n',
    "list.h": "int sum(const int *v, int n);\n",
    "check_list.c": (
        '#include <assert.h>\n#include "list.h"\n\nint main(void) {\n'
        "    int values[] = {1, 2, 3};\n    assert(sum(values, 3) == 6);\n    return 0;\n}\n"
    ),
    "Makefile": (
        "SOURCES = list.c\n\ncheck: check_list\n\t./check_list\n\n"
        "check_list: check_list.c $(SOURCES)\n\t$(CC) -o $@ check_list.c $(SOURCES)\n"
    ),
    ".gitignore": "check_list\n",
}
AREA = {
    "Cargo.toml": '[package]\nname = "area"\nversion = "0.1.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "area"\nversion = "0.1.0"\n',
    "src/lib.rs": (
        "pub fn square(side: u32) -> u32 {\n    side * 2\n}\n\n"
        "#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn squares() {\n"
        "        assert_eq!(square(3), 9);\n    }\n}\n"
    ),
    ".gitignore": "/target\n",
}
HONEST: dict[str, tuple[Mapping[str, str], str, Mapping[str, Any], str]] = {
    "dependency": (
        CART,
        f"PYTHONPATH=.deps {UNITTEST}",
        {"setup": {"command": "sh install.sh"}},
        "echo addup >> requirements.txt; echo 'from addup import add_up as total' > cart.py",
    ),
    "c-source": (
        LIST,
        "make check",
        {},
        "sed -i 's/^SOURCES = list.c/& fold.c/' Makefile;"
        " printf 'int fold(const int *v, int n) { return n ? v[0] + fold(v + 1, n - 1) : 0; }\\n'"
        " > fold.c;"
        ' printf \'#include "list.h"\\nint fold(const int *v, int n);\\n'
        "int sum(const int *v, int n) { return fold(v, n); }\\n' > list.c",
    ),
    "rust-module": (
        AREA,
        "cargo test --offline --lib",
        {},
        "printf 'pub fn times(one: u32, other: u32) -> u32 {\\n    one * other\\n}\\n\\n"
        "#[cfg(test)]\\nmod tests {\\n    #[test]\\n    fn multiplies() {\\n"
        "        assert_eq!(super::times(2, 4), 8);\\n    }\\n}\\n' > src/product.rs;"
        " sed -i '1i mod product;\\n' src/lib.rs;"
        " sed -i 's/side \\* 2/product::times(side, side)/' src/lib.rs",
    ),
}
"""By kind: the repository, the test command, more of the task, and what the worker does."""


@pytest.fixture
def box(request: pytest.FixtureRequest) -> str:
    """A sandbox that works here."""
    kind: str = request.param
    require_bwrap() if kind == "bwrap" else require_docker()
    return kind


def codex(box: str, place: Path, files: Mapping[str, str], test: str, **task: Any) -> Codex:
    return Codex(Project.make(place, dict(files)), require_codex(), box, test, task)


async def play(one: Codex, command: str) -> dict[str, Any]:
    turns = (Turn("I work.", [Shell(command)]), Turn("It is done."))
    with ModelServer(Scenario(turns), chat_script=PLANNER) as server:
        return await one.run(server)


def rust_toolchain() -> str:
    """The folder of a Rust toolchain, wherever rustc on PATH has it."""
    if shutil.which("cargo") is None:
        missing("cargo is not installed.")
    asked = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True)
    return asked.stdout.strip()


@pytest.mark.parametrize("box", ["bwrap", "docker"], indirect=True)
async def test_a_weakened_golden_file_and_an_empty_test_do_not_end_complete(
    tmp_path: Path, box: str
) -> None:
    worker = (
        "printf 'ana, bo, cy\\n' > tests/expected.txt;"
        " printf 'import unittest\\n\\nclass MoreTest(unittest.TestCase):\\n"
        "    def test_and(self):\\n        pass\\n' > tests/test_more.py"
    )
    one = codex(box, tmp_path, REPORT, UNITTEST)
    result = await play(one, worker)
    assert (result["state"], result["exit_code"], result["proof"]) == ("FAILED", 1, [])
    refusals = [e for e in one.project.events if e.get("code") == "completion-refused"]
    assert refusals and "tests/expected.txt" in refusals[0]["message"]
    assert "ana, bo and cy" in refusals[0]["message"]


@pytest.mark.series(3)
@pytest.mark.parametrize(
    ("box", "kind"),
    [
        ("bwrap", "dependency"),
        ("docker", "dependency"),
        ("bwrap", "c-source"),
        ("docker", "c-source"),
        ("bwrap", "rust-module"),
        ("docker", "rust-module"),
    ],
    indirect=["box"],
)
async def test_honest_work_ends_complete_and_proven(tmp_path: Path, box: str, kind: str) -> None:
    files, test, task, worker = HONEST[kind]
    shown: tuple[str, ...] = ()
    if kind == "rust-module":
        # The image for tests has the host's /usr, where Rust may not be.
        shown = (rust_toolchain(),)
        test = f"PATH={shown[0]}/bin:$PATH {test}"
    one = replace(codex(box, tmp_path, files, test, **task), shown=shown)
    result = await play(one, worker)
    assert (result["state"], result["exit_code"]) == ("COMPLETE", 0), result["missing"]
    assert result["grade"] == "proven", result["proofs"]
