"""One attempt, driven until it ends, waits for a person or is stopped by a signal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command

from agentrunner.config.spec import TaskSpec
from agentrunner.engine.attempts import stop_workers, with_unseen
from agentrunner.engine.planner_change import renewed, take_over
from agentrunner.errors import UsageError
from agentrunner.errors.replies import ProtocolError
from agentrunner.errors.runs import NotWaiting, StaleAnswer, WrongAnswer
from agentrunner.execution.budget_questions import read_answer
from agentrunner.execution.commit import commit_of
from agentrunner.execution.criteria import edited_criteria
from agentrunner.execution.deps import Clock, Deps, Stopped
from agentrunner.execution.finding_diffs import kept_diffs
from agentrunner.execution.questions import MAX_ANSWER, record_answer
from agentrunner.execution.result import build_result
from agentrunner.execution.silence import read_order
from agentrunner.graph.builder import Graph
from agentrunner.graph.checkpoints import damaged, read_errors
from agentrunner.launching.route import Cassette
from agentrunner.money.bill import bill_of
from agentrunner.money.counters import granted
from agentrunner.nodes.note import leave_note
from agentrunner.planners.panel import role_of
from agentrunner.results import Result
from agentrunner.state.lifecycle import TERMINAL
from agentrunner.state.people import EDITABLE, IN_WORDS, Answer, Question, option_meant
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.events import Event
from agentrunner.workers.policy import check_prompt

INLINE_TRIES = 3
"""How often a person at the terminal may mistype an answer; then the run pauses."""
MAY_BE_MISTYPED = ("budget", "planner")
"""Kinds of questions that accept certain forms of answer only."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def heeding(on_signal: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Call `on_signal` for each signal that stops a run.

    Has no effect outside of the main thread.
    """
    loop = asyncio.get_running_loop()
    try:
        for number in SIGNALS:
            loop.add_signal_handler(number, on_signal, number)
    except (ValueError, RuntimeError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


@dataclass(frozen=True)
class Options:
    """How a run is driven."""

    state_dir: Path
    on_event: Callable[[Event], None]
    """Gets every event of --json, redacted."""
    ask: Callable[[Question], Answer | None] | None = None
    """Answers a question inline, in a terminal. None, or an answer of None, pauses the run."""
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    clock: Clock = field(default_factory=Clock)
    cassette: Cassette = field(default_factory=Cassette)
    confirm: Callable[[str], bool] | None = None
    """Asks a person before an image is fetched or built; None is a no."""
    policy: Path | None = None
    """A policy file, beside those that the machine and the environment name."""
    leaving: Callable[[], None] = lambda: None
    """Called at a second signal, before the process ends at once."""
    given_at: datetime | None = None
    """When a person gave the command, which is when a run that it starts begins; None for now."""
    stop: asyncio.Event | None = None
    """If set from outside, it stops the run gracefully. Several runs in one process share it; then
    the process that started them handles signals."""


class Drive:
    """One graph on one thread, driven until it ends, pauses or is stopped."""

    def __init__(self, graph: Graph, config: RunnableConfig, deps: Deps, options: Options) -> None:
        self._graph = graph
        self._config = config
        self.deps = deps
        self._options = options
        self._control = RunControl()
        self._signal: signal.Signals | None = None

    async def to_the_end(self, fresh: TaskContext | None, answer: Answer | None) -> Result:
        """Drive the graph and return the result, whether it ended, paused or was stopped."""
        payload: Any = fresh
        if answer is not None:
            payload = await self._reply(answer)
        with self._signals():
            while True:
                await self._invoke(payload)
                state, question = await self.standing()
                if self._signal is not None:
                    return await self._interrupted(state, question)
                if question is None:
                    return self._ended(state)
                reply = await self._ask_inline(question)
                if self._signal is not None:
                    return await self._interrupted(state, question)
                if reply is None:
                    return await self._paused(state, question)
                payload = await self._reply(reply)

    async def stop_worker(self) -> None:
        """Only end the worker that an earlier driver left, gracefully, and record it."""
        self.deps.stop.set()
        await self._invoke(None)

    async def _invoke(self, payload: Any) -> None:
        try:
            await self._graph.ainvoke(
                payload,
                self._config,
                context=self.deps,
                durability="sync",
                control=self._control,
                stream_mode="custom",  # nothing: the saved state is read afterwards
            )
        except (GraphDrained, Stopped):
            pass
        except BaseException:
            self.deps.stop.set()
            raise

    async def standing(self) -> tuple[TaskContext, Question | None]:
        """Return the saved state, and the question it waits with; raise CheckpointCorrupt."""
        try:
            snapshot = await self._graph.aget_state(self._config)
        except read_errors() as error:
            raise damaged(self.deps.folder.checkpoints, str(error)) from error
        state = cast("TaskContext", snapshot.values)
        if not state:
            raise damaged(self.deps.folder.checkpoints, "it holds no state of this attempt")
        return state, state.get("question") if snapshot.interrupts else None

    async def _reply(self, answer: Answer) -> Command[str]:
        """Record the answer, and return it addressed to the one interrupt that is open."""
        snapshot = await self._graph.aget_state(self._config)
        redact = self.deps.redactor.redact  # the checkpoint must not hold a secret either
        answer = answer.model_copy(
            update={
                "text": redact(answer.text),
                "edit": redact(answer.edit),
                "by": redact(answer.by)[:200],
            }
        )
        value: dict[str, str] = {"id": answer.id, "text": answer.text, "by": answer.by}
        if answer.kind not in IN_WORDS:
            value |= {"decision": answer.decision, "edit": answer.edit}
        state = cast("TaskContext", snapshot.values)
        if answer.kind == "planner":
            await self._change_planner(answer, state)
        record_answer(state, self.deps, answer)
        return Command(resume={snapshot.interrupts[0].id: value})

    async def _change_planner(self, answer: Answer, state: TaskContext) -> None:
        """Switch to the model that a person names; raise where it is unavailable."""
        asked, options = state["question"], self._options
        assert asked is not None
        subject = json.loads(asked.subject)
        order = read_order(answer.text, str(subject["asked_for"]))
        if order.what == "model":
            role = role_of(subject["asked_for"])
            deps = self.deps
            spec = renewed(
                deps.spec, deps.folder, options.environ, options.policy, None, order.text, role
            )
            await take_over(deps, state, spec, asked.id, options.state_dir)

    async def _ask_inline(self, question: Question) -> Answer | None:
        if self._options.ask is None:
            return None
        self._emit_question(question)
        await self.deps.sandbox.pause()
        try:
            for _ in range(INLINE_TRIES):
                # On this thread: only the main thread can be interrupted at a prompt.
                answer = self._options.ask(question)
                await asyncio.sleep(0)
                if answer is None or self._signal is not None:
                    return None
                try:
                    return self._checked(question, answer)
                except UsageError as problem:
                    if question.kind not in MAY_BE_MISTYPED:
                        raise
                    self.deps.emit("warning", code=problem.code, message=problem.in_one_text)
            return None
        finally:
            await self.deps.sandbox.unpause()

    def _checked(self, question: Question, answer: Answer) -> Answer:
        deps = self.deps
        grants = granted(deps.log)
        return checked_answer(deps.folder.run_id, question, answer, deps.spec, grants)

    def _emit_question(self, question: Question) -> None:
        self.deps.emit(
            "question", id=question.id, kind=question.kind, text=question.text,
            options=question.options,
        )  # fmt: skip

    # -- the three ways to stop -----------------------------------------------------------------

    def _ended(self, state: TaskContext) -> Result:
        moves = [record.data for record in self.deps.log.records("state")]
        before = next((m["from"] for m in reversed(moves) if m["to"] == state["state"]), None)
        self.deps.emit("state_changed", **{"from": before, "to": state["state"]})
        self.deps.record(state, "end", "end", {"state": state["state"]})
        return self._result(state)

    async def _paused(self, state: TaskContext, question: Question) -> Result:
        self.deps.record(state, "question", question.id, question)
        if self._options.ask is None:
            self._emit_question(question)
        await self._leave_note(state, question)
        return self._result(state, question)

    async def _interrupted(self, state: TaskContext, question: Question | None) -> Result:
        assert self._signal is not None
        if state["state"] in TERMINAL:
            return self._ended(state)
        state = await asyncio.to_thread(with_unseen, self.deps.folder, state)
        await self._leave_note(state, question, "interrupted")
        return self._result(state, question, "interrupted", exit_code=128 + self._signal)

    async def _leave_note(
        self, state: TaskContext, waiting: Question | None, reason: str | None = None
    ) -> None:
        await asyncio.to_thread(leave_note, state, self.deps, waiting=waiting, reason=reason)
        await asyncio.to_thread(
            self.deps.log.sync
        )  # no state is saved afterwards, which would sync it

    def _result(
        self,
        state: TaskContext,
        waiting: Question | None = None,
        reason: str | None = None,
        exit_code: int | None = None,
    ) -> Result:
        path = self.deps.folder.root / "note-path"
        log = self.deps.log
        return build_result(
            state,
            self.deps.spec,
            waiting=waiting,
            exit_code=exit_code,
            reason=reason,
            note=path.read_text(encoding="utf-8") if path.exists() else None,
            bill=bill_of(log),
            commit=commit_of(log),
            latest_at=log.latest_at,
            diffs=kept_diffs(self.deps.folder),
        )

    # -- signals --------------------------------------------------------------------------------

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals: the first stops gracefully, the second exits; the supervisor finishes."""
        loop = asyncio.get_running_loop()
        if self._options.stop is not None:
            watch = loop.create_task(self._stop_when_set(self._options.stop))
            try:
                yield
            finally:
                watch.cancel()
            return
        with heeding(self._on_signal):
            yield

    async def _stop_when_set(self, stop: asyncio.Event) -> None:
        """Stop gracefully once the event is set, as on Ctrl-C."""
        await stop.wait()
        self._on_signal(signal.SIGINT)

    def _on_signal(self, number: signal.Signals) -> None:
        if self._signal is not None:
            stop_workers(self.deps.folder)  # the first signal may not have got that far yet
            self._options.leaving()
            os._exit(128 + number)
        self._signal = number
        self.deps.stop.set()
        self._control.request_drain(number.name)


def checked_answer(
    run_id: str,
    question: Question | None,
    answer: Answer,
    spec: TaskSpec,
    grants: Mapping[str, float],
) -> Answer:
    """Return the answer with the id of the present question; raise UsageError where it does not
    fit.

    After an error the question stays. `grants` are what people added to limits of the budget
    before.
    """
    if question is None:
        raise NotWaiting(f"{run_id} is not waiting for anyone.")
    if answer.id and answer.id != question.id:
        raise StaleAnswer(
            f"{run_id} is not waiting for {answer.id}; its question is {question.id}.",
            remedy=f"agentrunner show {run_id}",
        )
    free = question.kind in IN_WORDS
    if free != (answer.decision == "answer"):
        verb = "answer" if free else "approve or reject"
        raise WrongAnswer(
            f"The question of {run_id} is of kind {question.kind}: {verb} it.",
            remedy=f"agentrunner {verb.split()[0]} {run_id} --id {question.id}",
        )
    if len(answer.text) > MAX_ANSWER or (free and not answer.text.strip()):
        raise WrongAnswer(f"An answer has 1 to {MAX_ANSWER:,} characters.")
    if any("\ud800" <= char <= "\udfff" for char in answer.text + answer.edit):
        raise WrongAnswer("An answer is text; this one has bytes that are none.")
    if answer.edit:
        _check_edit(question, answer.edit)
    try:
        text = option_meant(question, answer.text)
    except ValueError as error:
        remedy = f"to say the number itself, put it in words: agentrunner answer {run_id} …"
        raise WrongAnswer(str(error), remedy=remedy) from error
    if question.kind == "budget":
        try:
            read_answer(text, question, spec, grants)
        except WrongAnswer as error:
            error.path = ""  # it was no option
            raise
    if question.kind == "planner":
        read_order(text, str(json.loads(question.subject)["asked_for"]))
    return answer.model_copy(update={"id": question.id, "kind": question.kind, "text": text})


def _check_edit(question: Question, edit: str) -> None:
    """Raise UsageError for what cannot be edited, or an edited plan that cannot be read."""
    if question.kind not in EDITABLE:
        raise WrongAnswer("Only a plan or a worker's prompt can be edited.", path="--edit")
    if question.kind == "worker":
        try:
            check_prompt(edit)
        except ProtocolError as problem:
            message = f"The edited prompt: {problem.message}."
            raise WrongAnswer(message, path="--edit") from problem
        return
    try:
        edited_criteria(edit)
    except ValueError as error:
        raise WrongAnswer(f"The edited plan cannot be read: {error}", path="--edit") from error
