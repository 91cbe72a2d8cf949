"""Convert events to lines: time, one word, what happened, how long it took.

The terminal and the log of a CI job show the same lines in different formats (live.py, plain.py).
Checks and baselines of one round share a line, so a line may come one event late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agentrunner.screens.layout import count, duration, unbroken
from agentrunner.screens.red_tests import red_entry
from agentrunner.state.lifecycle import REFUSED_COMPLETION
from agentrunner.state.red_tests import MOST
from agentrunner.state.rounds import round_of
from agentrunner.text.cut import some_of
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.server_errors import in_words
from agentrunner.text.times import moment

Event = Mapping[str, Any]


class StoryLine(Struct, frozen=True):
    """One line for an event. `fields` has the same facts as key and value, for a log."""

    ts: str
    """Time of the event, UTC, ISO 8601."""
    word: str
    text: str
    aside: str = ""
    more: tuple[str, ...] = ()
    """Further lines, below `text`."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    quiet: bool = False
    """Whether only a log shows it."""


class Story(Struct):
    """The events so far, as far as they matter to a person who follows the run."""

    header: Mapping[str, Any] = field(default_factory=dict)
    run_id: str = ""
    title: str = ""
    task_id: str = ""
    state: str | None = None
    round: int = 0
    """Rounds are counted from 1, over all attempts; 0 before the first worker."""
    rounds_at_most: int | None = None
    """The attempt's last round, where all of them are needed; None in earlier versions."""
    worker: str = ""
    at_work: bool = False
    """Whether a worker is at work, so that everybody waits for it."""
    doing: str = ""
    """The latest command or text of the worker."""
    commands: int = 0
    """Number of commands of this round's worker."""
    awaited: Mapping[str, Any] | None = None
    """The latest `awaiting` event, until what it names has come; who is asked again, after a call
    that gave nothing."""
    tokens: int = 0
    """Tokens of planner and workers so far, as far as reported."""
    usd: float = 0
    _usage: int = 0
    """Tokens of the active worker so far, as counted or reported; replaced by its final count."""
    _usage_usd: float = 0
    _counted: bool = False
    """Whether a gateway counts the active worker's calls, which then outweighs its reports."""
    waits_until: datetime | None = None
    """When the run continues by itself, while it waits for a quota or a provider."""
    waits_for: str = ""
    """The reason of that wait."""
    asks: str = ""
    """The question to a person, until it is answered."""
    statuses: dict[str, str] = field(default_factory=dict)
    """Latest outcome by check target."""
    _reason: str = ""
    _tries: int = 0
    """Calls of the planner in a row that gave nothing, since a person's last answer."""
    _faults: set[str] = field(default_factory=set)
    """Faults that were already shown; the same one later is shown in short."""
    _held: list[Event] = field(default_factory=list)
    _reds: tuple[str, ...] = ()
    """Why the latest checks were red."""

    def feed(self, event: Event) -> list[StoryLine]:
        """Return the lines that this event completes."""
        name = str(event.get("event", ""))
        self.waits_until = None  # any event ends the wait
        if name == "awaiting":  # no line of its own
            self.awaited = event
            # A planner may think for minutes; no check of this round comes before it has answered.
            return self.flush() if event.get("who") == "planner" else []
        if name not in ("warning", "image_progress"):
            self.awaited, self.asks = None, ""
        if self._held and (name, self.round) != (self._held[0]["event"], self.round):
            lines = self.flush()
        else:
            lines = []
        if name in ("check", "baseline"):
            self._held.append(event)
            self.statuses[str(event.get("target"))] = str(event.get("outcome"))
            return lines
        handler: Callable[[Event], list[StoryLine]] | None = getattr(self, f"_on_{name}", None)
        return lines + (handler(event) if handler else [])

    def flush(self) -> list[StoryLine]:
        """Return the line of the checks held back, if any."""
        held, self._held = self._held, []
        return [self._without_repeated(_checks_line(held, self.round))] if held else []

    def _without_repeated(self, line: StoryLine) -> StoryLine:
        """Return the line of checks, in short where they are red as the line before it says."""
        before, self._reds = self._reds, line.more
        if not line.more or line.more != before:
            return line
        text, fields = f"{line.text}   red as before", {**line.fields, "red": "as before"}
        return replace(line, text=text, more=(), fields=fields)

    def _take_header(self, event: Event) -> None:
        self.header = event.get("header") or self.header
        self.rounds_at_most = (self.header.get("limits") or {}).get("rounds_at_most")

    def _on_run_started(self, event: Event) -> list[StoryLine]:
        self._take_header(event)
        self.run_id = str(event.get("run_id") or "")
        self.title = str(event.get("title") or "")
        self.task_id = str(event.get("task_id") or "")
        shown = ("repo", "planner", "worker", "key", "sandbox", "reach")
        header = {**self.header, "sandbox": self.header.get("box")}
        fields = {"run": self.run_id, **{name: header.get(name) for name in shown}}
        if landing := self.header.get("landing"):
            names = {"commit": "branch", "takes": "carried", "leaves": "left"}
            shown_facts = {name: landing.get(key) for name, key in names.items()}
            fields |= {
                name: " ".join(map(str, value)) if isinstance(value, list) else value
                for name, value in shown_facts.items()
                if value
            }
        notices = [{"is": str(notice)} for notice in self.header.get("notices") or []]
        return [
            _line(event, "started", self.run_id, fields=fields, quiet=True),
            *(_line(event, "notice", "", fields=notice, quiet=True) for notice in notices),
        ]

    def _on_run_resumed(self, event: Event) -> list[StoryLine]:
        self.run_id = str(event.get("run_id") or "")
        self._take_header(event)
        self.at_work = False
        attempt = event.get("attempt")
        return [_line(event, "resumed", f"attempt {attempt}", fields={"attempt": attempt})]

    def _on_state_changed(self, event: Event) -> list[StoryLine]:
        self.state = str(event.get("to"))
        fields = {"from": event.get("from"), "to": event.get("to")}
        return [_line(event, "state", self.state, fields=fields, quiet=True)]

    def _on_meta_call(self, event: Event) -> list[StoryLine]:
        took, error = float(event.get("duration_ms") or 0) / 1000, event.get("error")
        self.tokens += _tokens_in(event.get("usage"))
        self.usd += float(event.get("usd") or 0)
        fields = {"type": event.get("type"), "took": duration(took)}
        if error:
            self._tries += 1
            # It is asked again, or the next event says what becomes of the run.
            self.awaited = {"who": "planner", "failed_tries": self._tries}
            message = str(error.get("message") if isinstance(error, Mapping) else error)
            text = f"{event.get('type')}, try {self._tries}: {in_words(message)}"
            fields, again = (
                {**fields, "error": in_words(message)},
                self._shortened_if_repeated(message) != message,
            )
            return [_line(event, "planner", text, duration(took), fields, quiet=again)]
        self._tries = 0
        if looks := [str(one) for one in event.get("looks") or ()]:
            text = "looks: " + "; ".join(looks)
            return [_line(event, "planner", text, fields={**fields, "looks": "; ".join(looks)})]
        return [_line(event, "planner", str(event.get("type")), fields=fields, quiet=True)]

    def _on_plan(self, event: Event) -> list[StoryLine]:
        criteria = event.get("acceptance_criteria") or []
        runnable = sum(1 for criterion in criteria if criterion.get("check"))
        noun = count(len(criteria), "criterion", "criteria")
        fields = {"criteria": len(criteria), "checks": runnable}
        return [_line(event, "plan", f"{noun}; {runnable} can be executed", fields=fields)]

    def _on_decision(self, event: Event) -> list[StoryLine]:
        action, self._reason = str(event.get("action")), str(event.get("reason") or "")
        fields = {"action": action, "reason": self._reason}
        lead = {"mark_complete": "calls it done: ", "abort": "gives up: "}.get(action, "")
        quiet = action in ("run_worker", "ask_human")
        return [_line(event, "planner", lead + self._reason, fields=fields, quiet=quiet)]

    def _on_worker_started(self, event: Event) -> list[StoryLine]:
        self.round, self.commands = round_of(event.get("round"), event.get("loop")), 0
        self.doing = ""
        self.rounds_at_most = event.get("rounds_at_most")
        self.worker, self.at_work = str(event.get("worker") or "worker"), True
        fields = {"round": self.round, "worker": self.worker, "model": event.get("model")}
        return [_line(event, f"round {self.round}", self._reason or self.worker, fields=fields)]

    def _on_worker_event(self, event: Event) -> list[StoryLine]:
        kind = event.get("kind")
        if kind == "command_started":
            self.doing, self.commands = str(event.get("command")), self.commands + 1
        elif kind == "text":
            self.doing = str(event.get("text"))
        elif kind == "file_changed":
            self.doing = f"{event.get('change') or 'changed'} {event.get('path')}"
        elif kind == "usage" and not self._counted:
            used = _tokens_in(event)
            self.tokens, self._usage = self.tokens + used - self._usage, used
        elif kind == "error":
            message = str(event.get("message"))
            fields = {"round": self.round, "error": message}
            again = self._shortened_if_repeated(message) != message
            return [_line(event, "worker", message, fields=fields, quiet=again)]
        return []

    def _on_worker_usage(self, event: Event) -> list[StoryLine]:
        tokens, usd = int(event.get("tokens") or 0), float(event.get("usd") or 0)
        self.tokens, self._usage = self.tokens + tokens - self._usage, tokens
        self.usd, self._usage_usd = self.usd + usd - self._usage_usd, usd
        self._counted = True
        return []

    def _shortened_if_repeated(self, fault: str) -> str:
        """Return a fault in full, or only its beginning if it was shown before.

        That is its first sentence; of a single sentence, what stands before a colon.
        """
        if fault not in self._faults:
            self._faults.add(fault)
            return fault
        first, *more = _SENTENCE_END.split(fault, 1)
        return f"as before: {first if more else fault.partition(': ')[0]}"

    def _on_worker_finished(self, event: Event) -> list[StoryLine]:
        outcome, took = str(event.get("outcome")), duration(float(event.get("duration_sec") or 0))
        self.round = self.round or int(event.get("round") or 0)
        files = event.get("changed_files") or 0
        number = len(files) if isinstance(files, list) else int(files)
        text = f"{count(self.commands, 'command')}, " if self.commands else ""
        text += f"{count(number, 'file')} changed"
        self.doing, self.at_work = "", False
        tokens = event.get("tokens")
        self.tokens += int(tokens) - self._usage if tokens else 0
        usd = event.get("usd")
        self.usd += float(usd) - self._usage_usd if usd else 0
        self._usage, self._usage_usd, self._counted = 0, 0, False
        if outcome != "completed":
            why = f"{outcome.replace('_', ' ')}, exit {event.get('exit_code')}"
            if error := str(event.get("error") or "").strip():
                why = f"{outcome.replace('_', ' ')}: {self._shortened_if_repeated(error)}"
            text = f"worker {_ENDS.get(outcome, why)}; {text}"
        if refused := event.get("hosts_refused"):
            text += f"; refused: {', '.join(map(str, refused))}"
        fields = {"round": self.round, "outcome": outcome, "files": number, "took": took}
        if event.get("error"):
            fields["why"] = str(event["error"])
        fields["refused"] = ", ".join(map(str, event.get("hosts_refused") or []))
        return [_line(event, "", text, took, fields)]

    def _on_assessment(self, event: Event) -> list[StoryLine]:
        satisfied = bool(event.get("satisfied"))
        text = ("satisfied" if satisfied else "not satisfied") + f": {event.get('summary')}"
        return [_line(event, "judged", text, fields={"satisfied": satisfied})]

    def _on_waiting(self, event: Event) -> list[StoryLine]:
        self.waits_until, self.waits_for = moment(event.get("until")), str(event.get("reason"))
        fields = {name: event.get(name) for name in ("until", "reason", "role", "candidate")}
        since = moment(event.get("ts"))
        aside = ""
        if self.waits_until is not None and since is not None:
            aside = duration((self.waits_until - since).total_seconds())
        return [_line(event, "waiting", self._shortened_if_repeated(self.waits_for), aside, fields)]

    def _on_question(self, event: Event) -> list[StoryLine]:
        fields = {"id": event.get("id"), "kind": event.get("kind"), "text": event.get("text")}
        self.asks = str(event.get("text"))
        return [_line(event, "question", str(event.get("text")), fields=fields)]

    def _on_answer(self, event: Event) -> list[StoryLine]:
        self._tries = 0
        decision, words = str(event.get("decision") or "answer"), str(event.get("text") or "")
        who = str(event.get("by") or "")
        fields = {"id": event.get("id"), "decision": decision, "text": words, "by": who}
        done = _ANSWERS.get(decision, decision) + (", edited" if event.get("edited") else "")
        parts = (done if decision != "answer" or not words else "", words)
        text = ": ".join(filter(None, parts)) + (f" (by {who})" if who else "")
        return [_line(event, "answer", text, fields=fields)]

    def _on_committed(self, event: Event) -> list[StoryLine]:
        name, branch = str(event.get("id"))[:10], str(event.get("branch"))
        fields = {"id": event.get("id"), "branch": branch}
        return [_line(event, "commit", f"{name} on {branch}", fields=fields)]

    def _on_note_written(self, event: Event) -> list[StoryLine]:
        path = event.get("path")
        return [_line(event, "note", str(path), fields={"path": path}, quiet=True)]

    def _on_image_progress(self, event: Event) -> list[StoryLine]:
        return [_line(event, "image", str(event.get("text")), fields={"is": event.get("text")})]

    def _on_warning(self, event: Event) -> list[StoryLine]:
        message = str(event.get("message"))
        fields = {"code": event.get("code"), "is": message}
        return [_line(event, "warning", self._shortened_if_repeated(message), fields=fields)]


def warnings_in(events: Iterable[Event]) -> list[str]:
    """Return the warnings of the latest attempt that still stand at its end.

    A refused completion was worked on, or granted later; what is left of it is what is missing.
    """
    found: list[str] = []
    attempt: object = 1
    for event in events:
        if event.get("event") == "run_resumed" and event.get("attempt") != attempt:
            attempt = event.get("attempt")
            found.clear()
        elif event.get("event") == "warning" and event.get("code") != REFUSED_COMPLETION:
            found.append(str(event.get("message")))
    return found


def _tokens_in(usage: object) -> int:
    """Return the tokens that a call or a worker reports; 0 if it reports none."""
    if not isinstance(usage, Mapping):
        return 0
    return int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)


_SENTENCE_END = lazy_regex(r"(?<=[.!?])\s+(?=[^a-z])")
_ANSWERS = {"answer": "answered", "approve": "approved", "reject": "rejected"}
"""By decision. Events of earlier versions have none."""
_ENDS = {"egress": "stopped, as it kept asking for a refused host"}
"""Outcomes that their name and an exit code do not explain."""


def _line(
    event: Event,
    word: str,
    text: str,
    aside: str = "",
    fields: Mapping[str, Any] | None = None,
    *,
    quiet: bool = False,
) -> StoryLine:
    return StoryLine(str(event.get("ts") or ""), word, text, aside, (), fields or {}, quiet)


def _checks_line(held: list[Event], round_number: int) -> StoryLine:
    parts, more, fields = [], [], dict[str, object]()
    if round_number:
        fields["round"] = round_number
    for event in held:
        target = str(event.get("target"))
        good = event.get("outcome") in ("passed", "green")
        if target == "test":
            parts.append(f"tests: {_tests(event)}")
            fields["tests"] = _tests(event)
        else:
            word = "pass" if good else "FAIL" if event.get("outcome") in _RED else "?"
            parts.append(unbroken(f"{target} {word}"))
            fields[target] = word
        if not good and (why := event.get("detail") or event.get("finding")):
            more.append(f"{target}: {why}")
        reds = [one for one in event.get("red") or () if isinstance(one, Mapping)]
        lines = [f"red  {red_entry(red)}" for red in reds[:MOST]]
        more += [line for line in lines if line not in more]  # a check may run one of the tests
        left = max(int(event.get("failed") or 0), len(reds)) - len(reds[:MOST])
        more += [f"and {left} more red: agentrunner logs --tests"] * bool(reds and left > 0)
        if known := [str(name) for name in event.get("known_red") or ()]:
            names = some_of(known, MOST, int(event.get("known_red_in_all") or 0))
            more.append(f"red for another reason, need not turn: {names}")
    took = sum(float(event.get("duration_sec") or 0) for event in held)
    return StoryLine(
        str(held[0].get("ts") or ""),
        str(held[0]["event"]),
        "   ".join(parts),
        duration(took) if took else "",
        tuple(more),
        fields,
    )


_RED = ("failed", "red")


def _tests(event: Event) -> str:
    """Return test counts if the output had them, else the exit code."""
    passed, failed = event.get("passed"), event.get("failed")
    if passed is None and failed is None:
        return f"exit {event.get('exit_code')}"
    return f"{passed or 0} passed, {failed or 0} failed"
