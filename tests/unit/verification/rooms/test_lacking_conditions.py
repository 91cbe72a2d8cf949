"""A network, a place to write or a display that is missing before any test runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.state.state_model import FileRef
from agentrunner.verification.results.model import Results, TestOutcomeKind, TestResult
from agentrunner.verification.results.names import unloaded
from agentrunner.verification.rooms.decision_sandbox import CommandOutcome
from agentrunner.verification.rooms.start_up import why_no_test_says_anything

NAME = "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"
DISK = "OSError: [Errno 30] Read-only file system: '/data'"
X = "_tkinter.TclError: no display name and no $DISPLAY environment variable"

HEADER = "./db.go:3:11: fatal error: sql.h: No such file or directory"
INCLUDED = f"{HEADER}\n    3 | // #include <sql.h>\n      |           ^~~~~~~"
LINKER = "/usr/bin/ld: cannot find -lsql: No such file or directory"


def lacking(results: Results, wanted: str = "") -> str:
    ran = CommandOutcome(1, FileRef(path="x"), "", None, 1)
    return why_no_test_says_anything("x", ran, results, Path("/nowhere"), wanted)


def broken(
    message: str, outcome: TestOutcomeKind = "error", file: str = "t/test_a.py"
) -> TestResult:
    return TestResult("t.test_a", outcome, file=file, message=f"{message}\nTraceback …\n")


NO_MODULE = "pattern ./...: directory prefix . does not contain main module\n"
OLD_GO = "tree.go:11:2: package slices is not in GOROOT (/usr/lib/go/src/slices)\n"
OWN = "a.go:3:8: package shop/tax is not in std (/usr/lib/go/src/shop/tax)\n"


@pytest.mark.parametrize(
    ("output", "why"), [(NO_MODULE, "main module"), (OLD_GO, "package slices"), (OWN, "")]
)
def test_where_go_loads_no_package_at_all_the_reason_is_said(
    tmp_path: Path, output: str, why: str
) -> None:
    (tmp_path / "a.go").write_text("package shop\n")
    if output != NO_MODULE:
        (tmp_path / "go.mod").write_text("module shop\n\ngo 1.22\n")
    ran = CommandOutcome(1, FileRef(path="x"), output, None, 1)
    for tests in ((), (unloaded("./...", message=output),)):
        found = why_no_test_says_anything("go test ./...", ran, Results("go", tests), tmp_path)
        assert why in found and bool(found) is bool(why)
    decided = Results(
        "go", (unloaded("shop/a", message=output), TestResult("shop.TestB", "passed"))
    )
    assert why_no_test_says_anything("go test ./...", ran, decided, tmp_path) == ""


@pytest.mark.parametrize("message", [NAME, DISK, X])
def test_where_no_test_ran_it_is_no_red_suite(message: str) -> None:
    skipped = TestResult("t.test_b", "skipped")
    assert lacking(Results("unittest", (broken(message), skipped))) == message


@pytest.mark.parametrize(
    "tests",
    [
        (broken(NAME, "failed"),),
        (broken(NAME), TestResult("t.test_b", "passed")),
        (broken(NAME), broken("AssertionError: 1 != 2", "failed")),
        (broken("ModuleNotFoundError: No module named 'shop'"),),
        (broken(DISK), broken("ModuleNotFoundError: No module named 'shop'")),
        (),
    ],
)
def test_a_test_that_ran_or_broke_for_another_reason_is_red(tests: tuple[TestResult, ...]) -> None:
    assert lacking(Results("unittest", tests)) == ""


@pytest.mark.parametrize(("message", "line"), [(INCLUDED, HEADER), (LINKER, LINKER)])
def test_a_library_of_the_system_is_lacking_and_a_header_of_the_project_is_not(
    message: str, line: str
) -> None:
    assert lacking(Results("go", (broken(message),))) == line
    own = broken(INCLUDED.replace("<sql.h>", '"sql.h"'))
    assert lacking(Results("go", (own,))) == ""


def test_a_file_that_the_task_names_is_to_be_mended() -> None:
    found = Results("unittest", (broken(NAME),))
    assert lacking(found, "test_a.py must not need a network.") == ""
