"""Known reds: what a person may call red for another reason, and what a run comes to then."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agentrunner.errors import EnvironmentNotReady, UsageError
from tests.kit.metas import assess, finish, give_up, plan, work
from tests.kit.project import BROKEN, FIX, PYTEST, Project
from tests.kit.runs import Run

OFFLINE = (
    "import socket\n\n\ndef test_fetch():\n    assert False, 'no network here'\n\n\n"
    "def test_offline():\n    assert socket\n"
)
FETCH = "tests/test_net.py::test_fetch"


def test_a_known_red_is_accepted_by_name_and_the_run_judged_again(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {**BROKEN, "tests/test_net.py": OFFLINE}))
    criterion = {"id": "AC-1", "description": "It works.", "critical": True}
    script = [plan(criterion), work(), finish(), assess()]
    at_once = {"meta": {"max_loops": 0}}
    run.start(script, FIX, test=PYTEST, title="Mend it.", runner=at_once)
    (told, *_) = run.result["missing"]
    assert f"red before and still: {FETCH}" in told
    assert "turned green: tests/test_calc.py::test_add" in told
    assert "agentrunner accept --known-red NAME --reason TEXT" in told
    assert not any("Nothing that was red before" in text for text in run.result["missing"])
    assert "Nothing that was red before" not in run.note()
    test = run.result["test"]
    assert (test["turned"], test["still_red"]) == (["tests/test_calc.py::test_add"], [FETCH])

    for name, code, told in (
        ("test_zero", "not-a-known-red", "Not red before"),
        ("test_nothing", "unknown-test", FETCH),
    ):
        with pytest.raises(UsageError, match=told) as caught:
            run.accept_known_red("test_fetch", name)
        assert (caught.value.code, caught.value.exit_code) == (code, 2)
    assert run.log("known_red") == []

    run.accept_known_red("test_fetch")
    assert run.result["state"] == "COMPLETE", run.result["missing"]
    assert run.result["test"]["known_red"] == [FETCH]
    assert f"1 test was red before and still is: {FETCH}." in run.result["text"]
    note = run.note()
    assert "All tests passed but 1, which was red before and still is." in note
    assert f"Red before and still: `{FETCH}" in note
    assert "still exits" not in note and "is red" not in note
    (record,) = run.log("known_red")
    assert record.data == {"names": [FETCH], "reason": "No network here.", "by": "hana"}
    said = run.result["people"]["decisions"][-1]
    assert (said["kind"], said["decision"], said["text"]) == (
        "acceptance", "accept", "No network here.",
    )  # fmt: skip
    assert FETCH in said["asked"]


@pytest.mark.series(4)
@pytest.mark.parametrize(
    ("prd", "more", "state"),
    [
        ("Mend add.", "rm tests/test_net.py", "NEEDS_REVIEW"),
        ("Mend add.", "sed -i 's/def test_fetch/def fetch/' tests/test_net.py", "NEEDS_REVIEW"),
        ("Mend add. Remove test_fetch.", "sed -i '4,6d' tests/test_net.py", "COMPLETE"),
        ("Mend add.", "true", "COMPLETE"),
    ],
    ids=["its file deleted", "renamed away", "asked for", "left alone"],
)
def test_a_listed_known_red_may_stay_red_and_not_go(
    tmp_path: Path, prd: str, more: str, state: str
) -> None:
    run = Run(Project.make(tmp_path, {**BROKEN, "tests/test_net.py": OFFLINE}))
    run.start(
        None, f"{FIX}; {more}", title="Mend it.", prd={"text": prd},
        test={"command": PYTEST, "known_red": [FETCH]},
        runner={"meta": {"kind": "checklist", "max_loops": 0}},
    )  # fmt: skip
    assert run.result["state"] == state, run.result["missing"]
    if state != "COMPLETE":
        assert FETCH in json.dumps(run.result["findings"])


def test_a_list_that_is_wrong_is_told_before_anything_is_spent(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, {**BROKEN, "tests/test_net.py": OFFLINE}))
    listed = ["*test_no_more", "test_zero"]
    with pytest.raises(EnvironmentNotReady, match="test_zero is listed as a known red") as caught:
        run.start([plan()], FIX, test={"command": PYTEST, "known_red": listed})
    assert re.search(r"task\.yaml:\d+$", caught.value.path)
    run.start([plan(), give_up()], FIX, test={"command": PYTEST, "known_red": listed[:1]})
    told = "No test is called *test_no_more, which is listed as a known red"
    assert ("known-red-unknown", told) in run.warnings()


def test_what_was_asked_for_is_refused(tmp_path: Path) -> None:
    run = Run(Project.make(tmp_path, BROKEN))
    criterion = {"id": "AC-1", "description": "add returns the sum.", "critical": True}
    run.start([plan(criterion), work(), finish(), give_up()], "true", test=PYTEST)
    with pytest.raises(UsageError, match="has to turn green") as caught:
        run.accept_known_red("test_add")
    assert caught.value.code == "not-a-known-red"


def test_known_reds_alone_are_no_proof(tmp_path: Path) -> None:
    files = {"calc.py": "x = 1\n", "tests/test_net.py": OFFLINE}
    run = Run(Project.make(tmp_path, files))
    criterion = {"id": "AC-1", "description": "It works.", "critical": True}
    script = [plan(criterion), work(), finish(), give_up(), assess()]
    run.start(script, "echo 'y = 2' >> calc.py", test=PYTEST, title="Mend it.")
    run.accept_known_red("test_fetch")
    assert run.result["state"] == "NEEDS_REVIEW"
    # nothing says that the command has turned: it fails as before
    assert not run.result["proof"] and "failed before" not in json.dumps(run.result)


@pytest.mark.whole
def test_a_run_whose_command_reports_no_names_has_no_known_reds(tmp_path: Path) -> None:
    files = {"calc.py": "", "tests/run.sh": "exit 1\n"}
    run = Run(Project.make(tmp_path, files))
    run.start([plan(), work(), finish(), give_up()], "true", test="sh tests/run.sh")
    with pytest.raises(UsageError) as caught:
        run.accept_known_red("run")
    assert caught.value.code == "no-test-names"
