"""Many cases, one after the other or some at a time, each in a folder of its own."""

from __future__ import annotations

import shutil
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from tests.battery.case import case_named
from tests.battery.play import Outcome, play
from tests.battery.tools import lacking


@dataclass(frozen=True)
class Manner:
    """How cases are played."""

    sandbox: str = "bwrap"
    plain: bool = True
    """Whether it is first made sure that a case is not empty."""
    whole: bool = True
    """Whether there is more than that."""
    keep: str | None = None
    """A folder where those of the cases are kept; None removes them."""


def play_all(names: Sequence[str], manner: Manner, jobs: int = 1) -> Iterator[Outcome]:
    """Play cases by name, `jobs` at a time; the outcomes as they come."""
    if jobs == 1:
        yield from (play_named(name, manner) for name in names)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(play_named, name, manner) for name in names]
        yield from (future.result() for future in as_completed(waiting))


def play_named(name: str, manner: Manner) -> Outcome:
    """Play one case; what breaks is an outcome, too. Its folder is removed if not kept."""
    case = case_named(name)
    outcome = Outcome(case.name, case.kind, case.rule, case.about, case.ecosystem)
    outcome.skipped = lacking(case.needs)
    if outcome.skipped:
        return outcome
    place = Path(manner.keep, name) if manner.keep else Path(tempfile.mkdtemp(prefix="battery-"))
    if manner.keep:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    try:
        return play(case, place, manner.sandbox, plain=manner.plain, whole=manner.whole)
    except Exception as error:  # noqa: BLE001 - one case that breaks must not hide the others
        outcome.got = type(error).__name__
        outcome.complaints = [f"it broke: {error}\n{traceback.format_exc(limit=-3)}"]
        return outcome
    finally:
        if not manner.keep:
            shutil.rmtree(place, ignore_errors=True)
