"""What a worker may reach, in whole runs: hosts of the task, hosts a person allows, no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.errors import EnvironmentNotReady
from agentrunner.gateway.egress_log import read_egress
from tests.kit.greeter import ASK, greeter
from tests.kit.metas import assess, finish, give_up, plan, work
from tests.kit.project import Project
from tests.kit.runs import FIX, SMALL, TEST, Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(Project.make(tmp_path, {**SMALL, "ask.py": ASK}))


def asks(host: str, times: int = 1) -> str:
    return f"/usr/bin/python3 ask.py {host} {times}; {FIX}"


def worker_said(run: Run) -> str:
    return (run.folder.workers_dir / run.log("worker_run")[-1].key / "stdout").read_text()


def test_a_host_of_the_task_is_reached_and_named_in_the_note(run: Run) -> None:
    with greeter() as port:
        allow = [f"db.local:{port}@127.0.0.1"]
        run.start(
            [plan(), work(), finish(), assess()],
            asks(f"db.local:{port}"),
            test=TEST,
            runner={"sandbox": {"network": {"allow": allow}}},
        )
    assert run.ending == ("COMPLETE", "complete", 0)
    assert "hello" in worker_said(run)
    note = Path(run.result["note"]).read_text(encoding="utf-8")
    assert f"Hosts reached: `db.local:{port}`" in note and "Hosts refused" not in note


def test_a_host_that_is_asked_for_again_and_again_becomes_a_question(run: Run) -> None:
    # Not long, where the DNS of this machine does not answer.
    run.environ = {**os.environ, "RES_OPTIONS": "timeout:1 attempts:1"}
    with greeter() as port:
        host = f"db.local:{port}"
        script = [plan(), work(), work(), finish(), assess()]
        run.start(
            script,
            asks(host, 20),
            test=TEST,
            runner={"sandbox": {"network": {"policy": "allowlist"}}},
        )
        assert (run.result["exit_code"], run.kind) == (4, "network")
        assert run.subject["host"] == host
        assert run.log("worker_run")[-1].data["outcome"] == "egress"
        assert "a - b" in run.project.read("calc.py")  # it was stopped before it came to that
        assert f"`{host}`" in run.folder.note_file.read_text(encoding="utf-8")
        run.approve(run.question)
        # Allowed by name only, and the name leads nowhere: refused for that from now on.
        assert run.state()["allowed_hosts"] == [host]
    assert {use.host for use in read_egress(run.folder.root / "egress.jsonl")} == {"db.local"}


def test_a_person_may_say_no_and_is_not_asked_again(run: Run) -> None:
    script = [plan(), work(), work(), give_up()]
    run.start(
        script,
        asks("blocked.example:443", 20),
        test=TEST,
        runner={"sandbox": {"network": "allowlist"}},
    )
    assert run.kind == "network"
    run.reject("It works without.")
    assert "It works without." in run.prompt(2)
    assert [record.data["outcome"] for record in run.log("worker_run")] == ["egress", "egress"]
    assert run.ending == ("FAILED", "aborted", 1)


def test_tests_reach_what_the_task_gives_them_and_nothing_else(run: Run) -> None:
    with greeter() as port:
        ask = f"/usr/bin/python3 ask.py db.local:{port} 1"
        test = {
            "command": f"{ask} | grep -q hello && {TEST}",
            "network": [f"db.local:{port}@127.0.0.1"],
        }
        run.start([plan(), work(), finish(), assess()], FIX, test=test)
        assert run.ending == ("COMPLETE", "complete", 0)
        del test["network"]
        other = Run(Project.make(run.project.state_dir.parent / "other", {**SMALL, "ask.py": ASK}))
        other.start([plan(), work(), finish(), assess(), finish(), finish()], FIX, test=test)
        assert other.result["state"] == "FAILED"


def test_the_set_up_has_hosts_of_its_own_and_the_worker_does_not_get_them(run: Run) -> None:
    with greeter() as port:
        host = f"db.local:{port}"
        ask = f"/usr/bin/python3 ask.py {host} 1"
        setup = {"command": f"{ask} | grep -q hello", "network": [f"{host}@127.0.0.1"]}
        worker = f"HTTPS_PROXY=http://127.0.0.1:3128 {ask} > seen.txt 2>&1; {FIX}"
        run.start([plan(), work(), finish(), assess()], worker, test=TEST, setup=setup)
    assert run.ending == ("COMPLETE", "complete", 0)
    assert "hello" not in run.project.read("seen.txt")
    assert run.project.told("check")[0]["target"] == "setup"


def test_a_set_up_that_was_refused_a_host_names_it(run: Run) -> None:
    setup = {"command": "/usr/bin/python3 ask.py db.local:7 1; false", "network": ["a.test:443"]}
    with pytest.raises(EnvironmentNotReady) as failed:
        run.start([plan()], FIX, test=TEST, setup=setup)
    assert failed.value.remedy.startswith("task.setup.network: [db.local:7] reaches")
