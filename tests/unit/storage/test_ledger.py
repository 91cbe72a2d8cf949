from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.worker_ledger import (
    Claim,
    Ledger,
    Lost,
    NotExecuted,
    RecordedEnd,
    StillRunning,
    Unclaimed,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(RunFolder.create(tmp_path, "t-0000"))


def test_what_became_of_a_worker_run_can_always_be_told(ledger: Ledger) -> None:
    assert ledger.look("w1") == Unclaimed()
    claim = ledger.claim("w1")
    assert ledger.look("w1") == StillRunning()
    claim.close()
    assert ledger.look("w1") == NotExecuted()
    again = ledger.claim("w1")
    (again.dir / "started.json").write_text('{"started_at": "now"}')
    assert ledger.look("w1") == StillRunning()
    again.close()
    assert ledger.look("w1") == Lost()
    assert ledger.started("w1") == {"started_at": "now"}
    for damaged in (b"", b"[]", b'{"outcome": "exi', bytes(100)):
        (again.dir / "result.json").write_bytes(damaged)
        assert ledger.look("w1") == Lost()
    (again.dir / "result.json").write_text('{"outcome": "exited"}')
    assert ledger.look("w1") == RecordedEnd({"outcome": "exited"})


def test_a_worker_run_that_was_started_is_never_claimed_again(ledger: Ledger) -> None:
    claim = ledger.claim("w1")
    with pytest.raises(FileExistsError):
        ledger.claim("w1")
    (claim.dir / "started.json").write_text("{}")
    claim.close()
    with pytest.raises(FileExistsError):
        ledger.claim("w1")


def test_what_was_written_into_a_claim_is_read_also_where_earlier_versions_had_it(
    ledger: Ledger,
) -> None:
    assert ledger.claimed_with("w1") == {}
    claim = ledger.claim("w1")
    assert ledger.claimed_with("w1") == {}
    claim.write('{"tree": "4b82", "login": ""}')
    claim.close()
    again = ledger.claim("w1")
    again.write('{"tree": "6002"}')
    again.close()
    assert ledger.claimed_with("w1") == {"tree": "6002"} and ledger.look("w1") == NotExecuted()
    former = ledger.claim("w2")
    (former.dir / "before.json").write_text('{"tree": "aaaa"}')
    former.close()
    assert ledger.claimed_with("w2") == {"tree": "aaaa"}


def test_of_many_claimants_one_gets_it(ledger: Ledger) -> None:
    def attempt(_: int) -> Claim | None:
        try:
            return ledger.claim("w1")
        except FileExistsError:
            return None

    with ThreadPoolExecutor(8) as pool:
        claims = [claim for claim in pool.map(attempt, range(40)) if claim is not None]
    assert len(claims) == 1
    claims[0].close()


@pytest.mark.parametrize("bad", ["../x", "", "a/b", ".hidden"])
def test_an_unsafe_id_is_refused(ledger: Ledger, bad: str) -> None:
    with pytest.raises(ValueError, match="not a worker run id"):
        ledger.look(bad)
