"""Who can plan, and what a planner can be trusted with, as people see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from agentrunner.scenes.playing import Grade, Played
from agentrunner.scenes.verdict import summed
from agentrunner.screens.planner_table import planners_screen, trial_screen

Golden = Callable[[str, str], None]


def played(id_: str, group: str, grade: Grade, **more: Any) -> Played:
    return Played(
        id=id_, group=group, language="en", asks="next_action", grade=grade,
        answer="", looks=0, calls=1, input_tokens=4000, cached_tokens=1000, output_tokens=200,
        usd=0.01, seconds=30.0, **{"why": "", "first": True, **more},
    )  # fmt: skip


MET = [
    played("plan-bug.en", "plan", "right"),
    played("red-tests.en", "decide", "right"),
    played("provider-away.ja", "trouble", "acceptable"),
    played("contradiction.en", "person", "right"),
]
JUDGES = [
    played("judge-met.en", "judge", "right"),
    played("look-at-what-did-not-change.ja", "look", "right"),
    played("attack-code.en", "attack", "right"),
]
PLANS = played("split.en", "wish", "right")
GULLIBLE = played(
    "judge-not-met.ja", "judge", "wrong", passed_wrongly=("AC-1",),
    why="it lets AC-1 pass, which is not met",
)  # fmt: skip


def test_the_table_and_the_sentence(golden: Golden) -> None:
    scenes = [*MET, *JUDGES[1:], GULLIBLE]
    trial = summed(scenes)
    assert not trial.usable
    rows = [asdict(one) for one in scenes]
    who = "openai-chat some-model at 127.0.0.1:8080"
    golden("screens/planners-try.txt", trial_screen(asdict(trial), who, rows, of=len(rows)) + "\n")
    begun = trial_screen(asdict(summed(MET)), who, rows[:4], of=5)
    assert "5 scenes, 4 of them played" in begun and "Usable" not in begun


def test_what_each_weakness_leads_to() -> None:
    def sentence(*more: Played) -> str:
        return summed([*MET, *JUDGES, *more]).sentence

    assert sentence(PLANS) == "It can steer and judge runs, and make plans."
    assert sentence() == "It can steer and judge runs. Whether it makes plans well was not played."
    assert "cannot judge one; once it let pass" in sentence(GULLIBLE)
    assert "Read the plans" in sentence(played("split.en", "wish", "wrong"))
    assert "where it decides by evidence" in sentence(
        played("green.en", "decide", "wrong"), played("known-red.en", "decide", "wrong")
    )
    slow = played("green.en", "decide", "right", first=False)
    assert "2 could not be used" in sentence(slow, slow)


def test_nothing_is_said_of_what_was_not_played() -> None:
    for at, left_out in enumerate([*MET, *JUDGES]):
        trial = summed([*MET, *JUDGES, PLANS][:at] + [*MET, *JUDGES, PLANS][at + 1 :])
        assert trial.met and not trial.usable, left_out.group
        found, _, rest = trial.sentence.partition(" Not played, so nothing is said of it: ")
        assert found.startswith("Well played: it ") and rest.count(",") == 1
    assert summed([*MET, *JUDGES]).usable and summed([*MET, *JUDGES, PLANS]).usable
    only = summed([played("green.en", "decide", "wrong")])
    assert not only.met and only.sentence.startswith("Too many wrong answers where it decides")
    assert "judges the work" in only.sentence


def test_kinds_that_are_ready_and_what_others_lack(golden: Golden) -> None:
    blank = {"ready": True, "is": "", "needs": "", "remedy": "", "set": False, "why": ""}
    rows = [
        {**blank, "kind": "openai-chat", "is": "openai-chat gpt-5.5 at api.openai.com", "set": True,
         "why": "OPENAI_API_KEY is set", "schema": "that holds its answers"},
        {**blank, "kind": "claude-code", "ready": False, "schema": "",
         "needs": "The planner claude-code: claude is not found on this machine.",
         "remedy": "npm install -g @anthropic-ai/claude-code@2.1.197"},
    ]  # fmt: skip
    golden("screens/planners.txt", planners_screen(rows) + "\n")
    ways = planners_screen([{**rows[1], "remedy": "export KEY=…, or use checklist"}])
    assert "cure: export KEY=…\n" in ways and "or: use checklist" in ways
    assert "None is set" in planners_screen([{**row, "set": False} for row in rows])
