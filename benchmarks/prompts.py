"""How alike prompts begin: `python -m benchmarks.prompts`.

Plays the calls of one run (plan, a decision a round, a judgement) over 6 and over 30 rounds, and
measures of each request how much equals the beginning of the one before: what a provider's cache
can serve. Goals: at most 15 % are new, with folding 25 %; building a prompt takes 5 ms at most.
Of a decision's tokens, those that are sent and those that are new stand beside commit 76cfb6f, on
the same sequence, where prompts did not begin alike and showed no change.
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agentrunner.config.spec import (
    Check,
    CriterionSpec,
    PrdSpec,
    RunnerSection,
    TaskSection,
    TaskSpec,
    TestSpec,
)
from agentrunner.prompts import PromptInput, Round, Seen, assemble, load_patterns
from agentrunner.prompts.as_yaml import to_yaml
from agentrunner.prompts.context_budget import ROUNDS, UNKNOWN
from agentrunner.prompts.rounds import not_reported
from agentrunner.protocol import Choices
from agentrunner.protocol.message import MessageType
from agentrunner.protocol.schema import run_schema
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.round_reports import (
    digests,
    in_lines,
    line_of,
    report,
    sections,
    state_of_now,
    without_diffed,
)
from agentrunner.state.run_state import (
    Baseline,
    CheckOutcome,
    Counters,
    Criterion,
    Evidence,
    RedTest,
    TaskContext,
    TestOutcome,
)
from agentrunner.state.short_names import further, shortened
from agentrunner.state.summary import summarize
from agentrunner.state.worker_runs import CommandSeen, WorkerRun
from agentrunner.text.cut import tokens
from benchmarks.measure import Figure, program

PRD = "# Shop\n\n" + "\n".join(
    f"{n}. The page {n} shows articles of group {n} with price, stock and a link; an empty group "
    "answers 404 and says so in the language of the visitor." for n in range(1, 201)
)  # fmt: skip
REPOSITORY = {
    "files": 140,
    "tree": [f"app/module_{n}.py" for n in range(60)] + [f"tests/test_{n}.py" for n in range(40)],
    "readme": {"path": "README.md", "text": "A shop. " * 150},
    "tests": {"red_now": [f"tests/test_{n}.py::test_page" for n in range(10)], "in_all": 120},
}
CRITERIA = 8
BEFORE = {(6, 30): (10_841, 9_520), (6, 150): (10_841, 9_520), (30, 30): (11_074, 9_583)}
"""Tokens of a decision in 76cfb6f, sent and new, by rounds and lines; the mean of all decisions."""


def spec() -> TaskSpec:
    """The task of the run."""
    check = Check(kind="command", run="pytest -q tests/test_pages.py")
    return TaskSpec(
        task_id="shop",
        title="Shop",
        repo="/home/someone/shop",
        prd_text=PRD,
        criteria=[
            CriterionSpec(id=f"AC-{n}", description=f"Page {n} works as asked.", check=check)
            for n in range(1, CRITERIA + 1)
        ],
        task=TaskSection(prd=PrdSpec(text=PRD), test=TestSpec(command="pytest -q")),
        runner=RunnerSection(),
        base_dir="/home/someone/shop",
        language="en",
    )


def tested(rounds: int) -> TestOutcome:
    """What the suite says after so many rounds."""
    red = [
        RedTest(name=f"tests/test_{n}.py::test_page", file=f"tests/test_{n}.py", line=12,
                message=f"assert 500 == 404 ({rounds})")
        for n in range(min(10, rounds), 10)
    ]  # fmt: skip
    return TestOutcome(
        command="pytest -q", exit_code=1, passed=110 + rounds, failed=len(red),
        failing=[one.name for one in red], red=red, tail="E  assert 500 == 404\n" * 20,
    )  # fmt: skip


def after(rounds: int) -> TaskContext:
    """The state after so many rounds of work."""
    test = tested(rounds)
    check = Check(kind="command", run="pytest -q tests/test_pages.py")
    runs = [
        WorkerRun(
            worker_run_id=f"1-{n + 1:03}", worker="codex-cli", loop=n, outcome="completed",
            exit_code=0, summary="Changed the page and its test. " * 4, changed_files=2,
            diff_stat="2 files changed, +31 -2", changes=[f"app/module_{n + 1}.py +19 -2"],
            commands=[CommandSeen(command="pytest -q", exit_code=1)],
        )
        for n in range(max(0, rounds - 5), rounds)
    ]  # fmt: skip
    return {
        "state": TaskState.VALIDATING if rounds else TaskState.RUNNING,
        "counters": Counters(worker_runs=rounds, loops=rounds, decisions=rounds),
        "criteria": [
            Criterion(id=f"AC-{n}", description=f"Page {n} works as asked.", check=check,
                      status="passed" if n <= rounds else "failed")
            for n in range(1, CRITERIA + 1)
        ],
        "baseline": Baseline(tree="t0", test=tested(0)),
        "evidence": Evidence(
            tree=f"t{rounds}", test=test,
            checks=[CheckOutcome(criterion_id="AC-1", what="pytest", outcome="failed")],
            changed_files=[f"app/module_{n}.py" for n in range(1, rounds + 1)],
        ) if rounds else None,
        "recent": runs,
        "tail": f"Round {rounds}: looked at the page, changed it, ran the tests.\n" * 8,
    }  # fmt: skip


def diff(number: int, lines: int) -> str:
    """A change of one file."""
    body = "".join(f"+    answer_{number}_{n} = page({n})\n" for n in range(lines))
    return f"=== app/module_{number}.py (modified)\n@@ -1,3 +1,{lines} @@\n{body}"


def conversation(rounds: int, lines: int) -> list[tuple[MessageType, PromptInput]]:
    """Every question of the run, in order."""
    task = spec()
    patterns = load_patterns(None, "en")
    told: dict[str, str] = {}
    runs: list[str] = []
    kept: list[Round] = []
    ids = further(REPOSITORY, {})
    names = {name: one for one, name in ids.items()}
    repository = shortened(REPOSITORY, names)
    repository["tests"] = {"ids": ids, **repository["tests"]}
    asked: list[tuple[MessageType, PromptInput]] = []

    def prompt(type_: MessageType, facts: dict[str, Any], whole: str) -> PromptInput:
        made = PromptInput.of(
            task, type_, facts=facts, salt="bench", call_number=0, format="json",
            patterns=patterns, repository=repository,
        )  # fmt: skip
        criteria = tuple(f"AC-{n}" for n in range(1, CRITERIA + 1))
        choices = Choices(("codex-cli",), (), tuple(patterns), criteria, tests=tuple(ids))
        now = in_lines(shortened(state_of_now(facts, told), names))
        return replace(made, rounds=tuple(kept), now=now, seen=Seen(whole), looks=True,
                       choices=choices)  # fmt: skip

    asked.append(("plan_task", prompt("plan_task", summarize(after(0), task), "")))
    for number in range(rounds + 1):
        facts = summarize(after(number), task, patterns=patterns)
        order = {"number": number, "action": "run_worker", "reason": "Page is red. " * 10,
                 "worker_run_id": f"1-{number:03}", "prompt": "Mend the page. " * 80}  # fmt: skip
        view = report(facts, order if number else None, told, runs)
        runs += [one["worker_run_id"] for one in facts["recent_worker_runs"]]
        change = diff(number, lines) if number else ""
        new = further(view, names)
        names |= {name: one for one, name in new.items()}
        view = {**({"test_ids": new} if new else {}), **shortened(view, names)}
        view = without_diffed(view, change, [one.change for one in kept])
        key = f"1-{number}"
        kept.append(Round(key, to_yaml(in_lines(view)), line_of(view, key), change, ""))
        told = digests(sections(facts))
        files = [diff(n, lines) for n in range(1, number + 1)]
        whole = not_reported(files, kept, UNKNOWN)[:12_000] if number > 1 else ""
        asked.append(("next_action", prompt("next_action", facts, whole)))
    whole = "".join(files)[:12_000]
    facts = summarize(after(rounds), task, patterns=patterns)
    asked.append(("completion_assessment", prompt("completion_assessment", facts, whole)))
    return asked


def as_sent(made: PromptInput) -> str:
    """The request's text at a provider, where the schema stands before the system message."""
    schema = json.dumps(run_schema(made.choices, looks=made.looks))
    return schema + "\n\n".join(message.content for message in assemble(made))


def equal(one: str, other: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def share(texts: Sequence[str]) -> float:
    """Of all requests but the first: how much the one before begins with."""
    pairs = list(itertools.pairwise(texts))
    return sum(equal(*pair) for pair in pairs) / sum(len(later) for _, later in pairs)


def of_run(rounds: int, lines: int) -> list[Figure]:
    """Shares of a run of so many rounds, each of which changes so many lines."""
    asked = conversation(rounds, lines)
    plain = ["\n\n".join(message.content for message in assemble(made)) for _, made in asked]
    whole = [as_sent(made) for _, made in asked]
    decisions = [text for text, (type_, _) in zip(whole, asked, strict=True)
                 if type_ == "next_action"]  # fmt: skip
    name = f"{rounds} rounds of {lines} lines"
    goal = 0.25 if sum(map(tokens, plain[-2:-1])) > ROUNDS else 0.15

    def figure(what: str, texts: Sequence[str]) -> Figure:
        found = share(texts)
        return Figure(f"{name}, {what}", f"{found:.0%} as before", "100%", 1 - found, goal)

    found = [
        figure("one decision after the other, new", decisions),
        figure("all calls, schemas beside (a server of one's own), new", plain),
        figure("all calls, schema first (a provider), new", whole),
    ]
    if (rounds, lines) in BEFORE:
        at = [n for n, (type_, _) in enumerate(asked) if type_ == "next_action"]
        sent = statistics.mean(tokens(plain[n]) for n in at)
        new = statistics.mean(tokens(plain[n][equal(plain[n - 1], plain[n]) :]) for n in at)
        for what, here, base, most in zip(("sent", "new"), (sent, new), BEFORE[rounds, lines],
                                          (1.3, 0.5), strict=True):  # fmt: skip
            label = f"{name}, tokens of a decision, {what}"
            found.append(Figure(label, f"{here:,.0f}", f"{base:,}", here / base, most))
    return found


def figures(long: int = 30, repeats: int = 20) -> list[Figure]:
    """All of them; `long` is the number of rounds of the longer run."""
    found = [*of_run(6, 30), *of_run(6, 150), *of_run(long, 30)]
    last = conversation(long, 30)[-2][1]
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        assemble(last)
        times.append(1000 * (time.perf_counter() - started))
    took = statistics.median(times)
    size = sum(tokens(message.content) for message in assemble(last))
    found.append(Figure(f"a prompt at round {long}, {size} tokens", f"{took:.2f} ms", "", took, 5))
    return found


if __name__ == "__main__":
    sys.exit(program(lambda _, long: figures(long), long=30))
