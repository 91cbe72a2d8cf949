"""A suite of which some tests ran and others could not: a person is asked once, before a worker."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from agentrunner.engine.queries import listed_runs, show
from agentrunner.engine.retention import collect_garbage
from agentrunner.errors import EnvironmentNotReady
from agentrunner.errors.repositories import GitMissing
from agentrunner.execution.deps import Clock
from agentrunner.storage.events import Event
from tests.kit.metas import Item, assess, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import Run

pytestmark = pytest.mark.usefixtures("without_a_box")

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "requirements.txt": "zzreq==1\n",
    "tests/__init__.py": "",
    "tests/test_calc.py": """\
import unittest

from calc import add


class AddTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_zero(self):
        self.assertEqual(add(0, 0), 0)
""",
    "tests/test_far.py": "import zzreq\n",
}
FIX = "sed -i 's/a - b/a + b/' calc.py"
TEST = "python3 -m unittest"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Project.make(tmp_path, FILES))


def begin(run: Run, test: Any = TEST, last: Sequence[Item] = (give_up(),)) -> None:
    run.start([plan(), work(), *last], FIX, test=test)


def test_it_is_asked_before_a_worker_is_paid_and_never_again(run: Run) -> None:
    begin(run)
    assert (run.result["exit_code"], run.kind) == (4, "tests_could_not_run")
    assert (run.calls(), run.result["worker_runs"]) == ([], 0)
    assert run.subject["tests"] == ["tests.test_far"]
    assert "zzreq is named in requirements.txt" in run.result["waiting"]["text"]
    assert "what it asks is not verified" in run.result["waiting"]["text"]
    assert "zzreq" in run.note()
    run.approve(run.question)
    assert (run.ending, run.result["worker_runs"]) == (("FAILED", "aborted", 1), 1)
    assert [record.data["kind"] for record in run.log("answer")] == ["tests_could_not_run"]


@pytest.mark.series(2)
@pytest.mark.parametrize(
    "error",
    [GitMissing("There is no git.", nothing_spent=True), OSError(errno.ENOSPC, "No space left")],
)
def test_it_still_waits_where_its_answer_cannot_be_taken_up(run: Run, error: Exception) -> None:
    begin(run)
    state_dir, question, adjust = run.project.state_dir, run.question, run.adjust

    def fail(event: Event) -> None:
        if event["event"] == "run_resumed":
            raise error

    run.adjust = lambda options: replace(options, on_event=fail)
    with pytest.raises(type(error)):
        run.approve(question)
    (listed,) = listed_runs(state_dir)
    assert (listed.stands, listed.driven_at) == ("waiting for you", None)
    assert show(state_dir, run.id).reason is None
    assert collect_garbage(state_dir, Clock().now(), 0, dry=True)["kept"] == [run.id]
    run.adjust = adjust
    run.approve(question)
    assert run.ending == ("FAILED", "aborted", 1)


IN_A_TEST = "    def test_far(self):\n        import zzreq\n"


@pytest.mark.series(2)
@pytest.mark.parametrize(
    ("far", "name"),
    [
        (FILES["tests/test_far.py"], "tests.test_far"),
        (f"import unittest\n\n\nclass FarTest(unittest.TestCase):\n{IN_A_TEST}",
         "tests.test_far.FarTest.test_far"),
    ],
    ids=["a file", "a test"],
)  # fmt: skip
def test_after_a_yes_the_work_is_proven_and_the_others_are_known_reds(
    run: Run, far: str, name: str
) -> None:
    run.project.write({"tests/test_far.py": far})
    run.project.git("commit", "-qam", "far", "--allow-empty")
    begin(run, last=[finish(), assess()])
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    assert run.result["test"]["known_red"] == [name]
    assert [record.data["names"] for record in run.log("known_red")] == [[name]]


def test_what_could_not_be_loaded_is_a_known_red_for_nobody_but_a_person(run: Run) -> None:
    run.project.write({"tests/test_far.py": "import shop\n"})
    run.project.git("commit", "-qam", "far")
    begin(run, last=[finish(), give_up()])
    assert run.result["state"] != "COMPLETE"
    assert [one["name"] for one in run.result["test"]["red"]] == ["tests.test_far"]
    run.project.git("checkout", "--", "calc.py")
    begin(run, {"command": TEST, "known_red": ["tests.test_far"]}, [finish(), assess()])
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]


BY_CHECKS: dict[str, Any] = {
    "test": TEST,
    "runner": {"meta": {"kind": "checklist", "max_loops": 1}},
}
KEEPS_ZERO = "- [ ] Zero stays (check: test `test_zero`)\n"
ADDS = "# Add\n\nIt adds.\n\n- [ ] It adds (check: test `test_add`)\n"


def test_after_a_yes_a_check_that_is_one_test_is_decided_by_that_test(run: Run) -> None:
    run.start(None, FIX, prd={"text": ADDS + KEEPS_ZERO}, **BY_CHECKS)
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    grades = {one["id"]: one["grade"] for one in run.result["acceptance_criteria"]}
    assert grades == {"AC-1": "proven", "AC-2": "kept"}


@pytest.mark.whole
def test_a_yes_to_what_cannot_run_does_not_make_the_test_of_a_check_green(run: Run) -> None:
    run.start(None, "echo '# seen' >> calc.py", prd={"text": ADDS}, **BY_CHECKS)
    run.approve(run.question)
    assert run.result["state"] != "COMPLETE"
    assert [one["status"] for one in run.result["acceptance_criteria"]] == ["failed"]


def test_no_ends_it_and_another_try_measures_anew(run: Run) -> None:
    begin(run, last=[finish(), assess()])
    run.reject("I install it first.", run.question)
    assert run.ending == ("FAILED", "environment_not_ready", 1)
    assert "I install it first." in run.result["text"]
    assert (run.calls(), run.result["worker_runs"]) == ([], 0)
    (run.project.repo / "zzreq.py").write_text("")
    run.resume()
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]


@pytest.mark.whole
def test_a_known_red_is_not_asked_about(run: Run) -> None:
    begin(run, {"command": TEST, "known_red": ["tests.test_far"]})
    assert (run.ending, run.result["worker_runs"]) == (("FAILED", "aborted", 1), 1)


@pytest.mark.series(2)
@pytest.mark.parametrize("module", ["shop", "calc.more"])
def test_a_module_that_is_still_to_be_written_is_red(run: Run, module: str) -> None:
    (run.project.repo / "tests/test_far.py").write_text(f"import {module}\n")
    run.project.git("commit", "-qam", "far")
    begin(run)
    assert (run.ending, run.result["worker_runs"]) == (("FAILED", "aborted", 1), 1)


SURROUNDED = """\
import socket
import subprocess
import tempfile
import unittest


class SurroundedTest(unittest.TestCase):
    def test_identity(self):
        with tempfile.TemporaryDirectory() as place:
            for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
                subprocess.run(["git", "-C", place, *words], check=True)

    def test_network(self):
        socket.create_connection(("192.0.2.1", 80), 2)
"""


def test_a_suite_that_wants_a_git_identity_has_one_and_one_red_for_want_of_a_network_stays_so(
    in_a_box: None,
    run: Run,
) -> None:
    """No identity of the user's is in the sandbox. A test that reaches for a network ran."""
    run.project.write({"tests/test_far.py": SURROUNDED})
    run.project.git("commit", "-qam", "far")
    begin(run, last=[finish(), assess()])
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    (red,) = run.result["test"]["red"]
    assert "etwork is unreachable" in red["message"]
    assert run.result["test"]["known_red"] == [red["name"]]
    assert red["name"].endswith("test_network")


GO_FILES = {
    "go.mod": "module m\n\ngo 1.19\n\nrequire example.test/greet v1.2.3\n",
    "go.sum": f"example.test/greet v1.2.3 h1:{'A' * 43}=\n"
    f"example.test/greet v1.2.3/go.mod h1:{'A' * 43}=\n",
    "far/far.go": "package far\n",
    "far/far_test.go": 'package far\n\nimport (\n\t"testing"\n\n\t"example.test/greet"\n)\n\n'
    "func TestFar(t *testing.T) { greet.Word() }\n",
}
NEAR = {
    "near/near.go": "package near\n\nfunc Add(a, b int) int { return a - b }\n",
    "near/near_test.go": 'package near\n\nimport "testing"\n\nfunc TestAdd(t *testing.T) {\n'
    "\tif Add(2, 3) != 5 {\n\t\tt.Fatal()\n\t}\n}\n",
}


@pytest.mark.whole
@pytest.mark.skipif(which("go") is None, reason="Go is not installed")
def test_a_package_of_go_that_only_tests_need_and_nobody_fetched(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, GO_FILES))
    with pytest.raises(EnvironmentNotReady, match="cannot start") as refused:
        begin(run, "go test ./...")
    assert "example.test/greet@v1.2.3" in str(refused.value.details)
    assert "`setup: {command: go mod download" in refused.value.remedy
    assert run.calls() == []


@pytest.mark.skipif(which("mix") is not None, reason="Mix is installed")
def test_a_set_up_by_the_program_that_is_missing_is_not_proposed(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {"mix.lock": "%{}\n", "mix.exs": "", "a_test.exs": ""}))
    with pytest.raises(EnvironmentNotReady, match="cannot start") as refused:
        begin(run, "mix test")
    assert "mix" not in refused.value.remedy and "task.setup.command" in refused.value.remedy


@pytest.mark.skipif(which("go") is None, reason="Go is not installed")
def test_a_package_of_go_beside_it_is_asked_about_once(tmp_path: Path, in_a_box: None) -> None:
    run = Run(Project.make(tmp_path, {**GO_FILES, **NEAR}))
    fix = "sed -i 's/a - b/a + b/' near/near.go"
    run.start([plan(), work(), finish(), assess()], fix, test="go test ./...")
    assert (run.result["exit_code"], run.kind) == (4, "tests_could_not_run")
    assert (run.calls(), run.subject["tests"]) == ([], ["m/far"])
    assert "setup: {command: go mod download" in run.result["waiting"]["text"]
    kept = list(run.project.state_dir.glob("runs/*/go-build"))
    assert len(kept) == 1, "what Go has compiled, for the tests after the work"
    run.approve(run.question)
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    assert run.result["test"]["known_red"] == ["m/far"]
    assert not kept[0].exists(), "the run has ended"
