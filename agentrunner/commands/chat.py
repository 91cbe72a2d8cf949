"""`agentrunner chat`: talk about the plan of this repository, and steer the work on it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from agentrunner import api
from agentrunner.commands import options as opt
from agentrunner.commands.console import paint_for, show, show_error, width_of
from agentrunner.commands.plan_place import Setting, is_driven, repository, task_called
from agentrunner.errors import AgentRunnerError, UsageError
from agentrunner.screens.layout import hung, wrap

if TYPE_CHECKING:
    from agentrunner.api import PanelPlanner
    from agentrunner.commands.lines import LineReader
    from agentrunner.commands.steering import PlanSteering
    from agentrunner.plans.conversation import Conversation

HELP = (
    ("/plan [TASK]", "the plan, or one task of it"),
    ("/undo", "take the latest change back"),
    ("/answer [N] TEXT", "answer a question of the planner"),
    ("/run", "carry the plan out while you talk"),
    ("/status", "how the work stands"),
    ("/pause  /resume", "begin no further task; continue"),
    ("/stop", "end the tasks that are at work; /run resumes them"),
    ("/quit", "leave; the plan is kept"),
)
COMMANDS = sorted({word for name, _ in HELP for word in name.split() if word[0] == "/"} | {"/help"})
BEFORE_HELP = "Say what you want, or what should be different about the plan. Commands:"
AFTER_HELP = (
    "These words do the same without a slash: stop, pause, continue, status, help, quit and exit,"
    " and 停止, 一時停止, 再開 and 状況."
)

LEAVE = frozenset({"/quit", "/exit", "quit", "exit", "bye", ":q"})
"""Words that end other chats; none of them makes sense as a wish."""
ASK_HELP = frozenset({"help", "?", "/?"})
PROMPT = "> "


def chat(
    meta: opt.Planner = None,
    planner_model: opt.PlannerModel = None,
    worker: opt.Worker = None,
    model: opt.Model = None,
    test: opt.Test = None,
    repo: opt.PlanRepo = None,
    overrides: opt.Overrides = None,
    policy: opt.PolicyFile = None,
    state_dir: opt.StateDir = None,
) -> int:
    """Talk about the plan of this repository, and steer the work on it."""

    if not sys.stdin.isatty():
        raise UsageError("a chat needs a terminal.", remedy='agentrunner plan "what you want"')
    setting = Setting(repo, meta, tuple(overrides or ()), policy, state_dir, planner_model)
    return asyncio.run(_chat(setting, {"worker": worker, "model": model, "test": test}))


async def _chat(setting: Setting, of_tasks: Mapping[str, str | None]) -> int:
    from agentrunner.commands.lines import typed_lines
    from agentrunner.commands.steering import PlanSteering, looking, plan_execution
    from agentrunner.commands.talking import opened

    async with opened(setting) as (talk, planner), typed_lines(COMMANDS) as lines:
        steering = PlanSteering(
            plan_execution(setting, lines.tell, of_tasks), lambda: looking(setting), lines.tell
        )
        _say(f"{planner.describe()} plans. /help tells what can be said here.\n")
        room = Chat(talk, lines, steering, setting, planner)
        room.show_plan("")
        try:
            await room.talk()
        finally:
            if steering.running:
                _say("The tasks at work are ended gracefully …")
                await steering.stop()
    return 0


def _help_screen() -> str:
    width = width_of(sys.stdout)
    commands = [line for name, does in HELP for line in hung(f"  {name:<18}", does, width)]
    return "\n".join([*wrap(BEFORE_HELP, width), *commands, *wrap(AFTER_HELP, width)])


def _plan_screen(talk: Conversation) -> str:
    from agentrunner.plans.execution.waiting_questions import waiting_questions
    from agentrunner.screens.plan_tree import plan_screen

    width, paint = width_of(sys.stdout), paint_for(sys.stdout)
    asked, driven = waiting_questions(talk.store), is_driven(talk.store)
    return plan_screen(talk.store.load(), asked, driven=driven, width=width, paint=paint, chat=True)


class Chat:
    """A chat, from its first line to its last."""

    def __init__(
        self,
        talk: Conversation,
        lines: LineReader,
        steering: PlanSteering,
        setting: Setting,
        planner: PanelPlanner | None = None,
    ) -> None:
        self._talk = talk
        self._planner = planner
        self._setting = setting
        self._lines = lines
        self._steering = steering
        self._asking: asyncio.Task[None] | None = None
        self._leaving = asyncio.Event()
        self._commands: dict[str, Callable[[str], Awaitable[None] | None]] = {
            "/plan": self.show_plan,
            "/undo": self._undo,
            "/answer": self._answer,
            "/run": lambda _: self._go_on(self._steering.start),
            "/pause": lambda _: _say(self._steering.pause()),
            "/resume": lambda _: self._go_on(self._steering.resume),
            "/stop": self._stop,
            "/status": lambda _: show(self._steering.status()),
            "/help": lambda _: show(_help_screen()),
        }

    async def talk(self) -> None:
        """Handle lines until the person leaves: /quit, end of input, or Ctrl-C at the prompt."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            while (line := await self._next()) is not None:
                if line.strip().casefold() in LEAVE:
                    return
                try:
                    await self._handle(line)
                except AgentRunnerError as error:
                    with contextlib.suppress(OSError):
                        show_error(error)
            # The prompt has no end of line, so the shell's prompt would follow it directly
            show("")
        finally:
            self._lines.leave()
            loop.remove_signal_handler(signal.SIGINT)

    async def _next(self, prompt: str = PROMPT) -> str | None:
        """Return the next line; None if the person leaves."""
        reading = asyncio.ensure_future(self._lines.read(prompt))
        leaving = asyncio.ensure_future(self._leaving.wait())
        done, _ = await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in (reading, leaving):
            task.cancel()
        return reading.result() if reading in done else None

    def _interrupt(self) -> None:
        """Ctrl-C cancels the pending planner call, else it ends the chat."""
        if self._asking is not None:
            self._asking.cancel()
        else:
            self._leaving.set()

    async def _handle(self, line: str) -> None:
        from agentrunner.plans.control_words import control_word

        text = line.strip()
        if not text:
            return
        if text.casefold() in ASK_HELP:
            show(_help_screen())
        elif text.startswith("/"):
            await self._command(text)
        elif word := control_word(text):
            steer = {"stop": "/stop", "pause": "/pause", "continue": "/resume", "status": "/status"}
            await self._command(steer[word])
        else:
            await self._ask(text)

    async def _command(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        command = self._commands.get(name.lower())
        if command is None:
            _say(f"There is no {name}. /help tells what there is.")
            return
        if (waiting := command(rest.strip())) is not None:
            await waiting

    # -- messages to the planner ------------------------------------------------------------------

    async def _ask(self, text: str) -> None:
        from agentrunner.plans.conversation import check_message

        check_message(text)
        _say("…")
        self._asking = asyncio.create_task(self._one_message(text))
        try:
            await self._asking
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            _say("The planner is not waited for. Nothing was changed.")
        finally:
            self._asking = None

    async def _one_message(self, text: str) -> None:
        from agentrunner.commands.talking import PROMPT, meant, proposed

        async def decide(_: object) -> bool | str | None:
            self._asking = None  # Ctrl-C at this prompt leaves the chat
            line = await self._next(PROMPT)
            return None if line is None else meant(line)

        await proposed(self._talk, text, decide, chat=True, planner=self._planner)

    # -- commands without the planner -------------------------------------------------------------

    def show_plan(self, task: str) -> None:
        from agentrunner.plans.execution.answers import answered_questions
        from agentrunner.screens.plan_tree import task_screen

        if not task:
            show(_plan_screen(self._talk))
            return
        store, width, paint = self._talk.store, width_of(sys.stdout), paint_for(sys.stdout)
        plan = store.load()
        task_id = task_called(plan, task)
        answered = answered_questions(store, task_id)
        standings, driven = store.standings(), is_driven(store)
        show(
            task_screen(plan, task_id, standings, answered, driven=driven, width=width, paint=paint)
        )

    async def _undo(self, _: str) -> None:
        from agentrunner.commands.talking import undone

        place, state_dir = repository(self._setting.repo), self._setting.state_dir
        undone(*await api.undo_plan(place, author=self._talk.author, state_dir=state_dir))

    def _answer(self, text: str) -> None:
        """Handle `/answer 2 TEXT`; the number may be omitted if there is only one question."""
        from agentrunner.commands.plan_commands import answered
        from agentrunner.plans.execution.waiting_questions import waiting_questions

        waiting = waiting_questions(self._talk.store)
        asked = {str(one.id): one.task_id.casefold() for one in waiting}
        name, _, rest = text.partition(" ")
        if name not in asked and name.casefold() not in filter(None, asked.values()):
            if len(asked) != 1 or not text:
                *others, last = asked or ("",)
                which = f"N is {', '.join(others)} or {last}" if others else ""
                usage = f"/answer N TEXT, where {which}." if others else f"/answer {last} TEXT"
                _say(usage if asked else "Nothing is asked.")
                return
            (name,), rest = asked, text
        answer, where = self._talk.redact(rest.strip()), self._setting
        _say(answered(name, answer, where.repo, where.state_dir, chat=True))

    def _go_on(self, begin: Callable[[], str]) -> None:
        """Execute the plan, if there is one."""
        if len(self._talk.store.load().nodes) == 1:
            show(_plan_screen(self._talk))
        else:
            _say(begin())

    async def _stop(self, _: str) -> None:
        _say(await self._steering.stop())


def _say(text: str) -> None:
    """Show sentences, wrapped between words. Screens are laid out already."""
    show("\n".join(wrap(text, width_of(sys.stdout))))
