from __future__ import annotations

import errno
import signal
import subprocess
import sys

import pytest

from agentrunner.storage.failpoints import ACTIONS, REGISTERED, FailPointReached, reach


def arm(monkeypatch: pytest.MonkeyPatch, point: str, test: str = "1") -> None:
    monkeypatch.setenv("AGENTRUNNER_TEST", test)
    monkeypatch.setenv("AGENTRUNNER_FAILPOINT", point)


def test_it_sleeps_outside_of_tests_and_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    arm(monkeypatch, "before_claim:raise", test="0")
    reach("before_claim")
    arm(monkeypatch, "before_claim:raise")
    reach("after_claim")
    arm(monkeypatch, "before_claim:nonsense")
    reach("before_claim")


def test_it_raises_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    arm(monkeypatch, "mid_work:raise")
    with pytest.raises(FailPointReached):
        reach("mid_work")
    arm(monkeypatch, "mid_work:enospc")
    with pytest.raises(OSError, match="mid_work") as caught:
        reach("mid_work")
    assert caught.value.errno == errno.ENOSPC


def test_unregistered_names_are_mistakes() -> None:
    with pytest.raises(ValueError, match="not registered"):
        reach("somewhere")
    assert len(set(REGISTERED)) == len(REGISTERED) and "stop" in ACTIONS


@pytest.mark.parametrize(
    ("action", "number"),
    [("kill", signal.SIGKILL), ("term", signal.SIGTERM), ("int", signal.SIGINT)],
)
def test_it_signals_itself(action: str, number: int) -> None:
    code = "import signal; signal.signal(2, signal.SIG_DFL)\n"
    code += "from agentrunner.storage.failpoints import reach; reach('mid_work')"
    env = {"AGENTRUNNER_TEST": "1", "AGENTRUNNER_FAILPOINT": f"mid_work:{action}"}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == -number
