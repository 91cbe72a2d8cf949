"""A plan on the command line: `agentrunner plan "TEXT"`, and the commands for a plan.

Any text that is no subcommand is a message to the planner, but not a single word.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from agentrunner import api, environment
from agentrunner.commands import options as opt
from agentrunner.commands.console import Output, interactive, paint_for, show, show_json, width_of
from agentrunner.commands.index import CONTEXT, Entries, Index, index_app
from agentrunner.commands.plan_place import Setting, is_driven, repository, store_of, task_called
from agentrunner.environment import user_name
from agentrunner.errors import UsageError
from agentrunner.plans.control_words import control_word
from agentrunner.screens.layout import clamped, flat, wrap
from agentrunner.state.lifecycle import WAITING_EXIT
from agentrunner.text.likeness import likest

if TYPE_CHECKING:
    from agentrunner.plans.plan import Plan
    from agentrunner.plans.proposal import Proposal
    from agentrunner.plans.store import OpenQuestion, PlanStore

COMMANDS: Entries = {
    "say": (
        "plan_commands:say",
        "Say something to the planner, also where it is the name of a command.",
    ),
    "accept": (
        "plan_commands:accept",
        "Apply the proposal that was shown last, exactly as it was shown.",
    ),
    "show": ("plan_commands:show_plan", "The tree, or all that the plan says of one task."),
    "run": ("plan_run:run", "Carry the plan out, each task as a run of its own."),
    "status": ("plan_status:status", "How it stands, also while it is carried out."),
    "answer": ("plan_commands:answer", "Answer a question of the planner about the plan."),
    "new": ("plan_shelf:new", "Put the current plan aside, to begin another."),
    "list": ("plan_shelf:list_plans", "The plans of this repository; one is current."),
    "switch": ("plan_shelf:switch", "Make another of them the current one."),
    "archive": ("plan_shelf:archive", "Put a plan away for good; nothing of it is deleted."),
    "undo": ("plan_commands:undo", "Take the latest change of the plan back."),
    "export": ("plan_files:export", "Write the plan as JSON files."),
    "import": ("plan_files:import_plan", "Take the plan in such files in place of this one."),
}
SAY = "say"
MOST_WORD = 200
"""Characters; a longer word is a message."""
MEANT = {
    "delete": "archive",
    "remove": "archive",
    "rm": "archive",
    "clear": "new",
    "reset": "new",
    "ls": "list",
    "start": "run",
    "approve": "accept",
    "apply": "accept",
    "diff": "show",
    "revert": "undo",
    "back": "undo",
}
"""What other programs call it, and what it is here."""


class PlanCommands(Index):
    """The commands by name; anything else is a message to the planner."""

    entries = COMMANDS
    otherwise = SAY

    def means_otherwise(self, args: list[str]) -> bool:
        """Whether it is a message to the planner; raises UsageError for a mistyped command."""
        if args[0] in (*COMMANDS, *CONTEXT["help_option_names"]):
            return False
        _refuse_word(args[0])
        return True


def _refuse_word(word: str) -> None:
    """Refuse a single word that is no command: a slip should not cost a model call.

    A language without blanks may say a whole sentence in it, and a control word calls no model.
    """
    sentence = not word.isascii() or len(word.split()) != 1 or len(word) > MOST_WORD
    if sentence or word.startswith("-") or control_word(word):
        return
    meant = MEANT.get(word) or likest(word, COMMANDS)
    which = f"did you mean plan {meant}?" if meant else "agentrunner plan --help has the commands."
    raise UsageError(
        f'plan has no command "{word}".',
        remedy=f'{which} To say it: agentrunner plan say "{word}"',
    )


app = index_app("plan", PlanCommands)


@app.callback(options_metavar="", subcommand_metavar="[TEXT | COMMAND]")
def _about() -> None:
    """Make a plan by saying what you want, change it by saying what should be different.

    agentrunner plan "make a product list page"   splits it into phases and tasks, or changes the
    plan that is there; the change is shown, and asks before it is applied. Without TEXT: the tree.
    """


def say(
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="What you want; - is stdin.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Apply it without asking.")] = False,
    meta: opt.Planner = None,
    planner_model: opt.PlannerModel = None,
    repo: opt.PlanRepo = None,
    overrides: opt.Overrides = None,
    policy: opt.PolicyFile = None,
    no_input: opt.NoInput = False,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Say what you want: a plan is made of it, or the plan that is there is changed."""
    if text is None:
        return show_plan(task=None, repo=repo, as_json=as_json, state_dir=state_dir)
    from agentrunner.commands.talking import say_once

    if text == "-":
        from agentrunner.config.load import read_stdin

        text = read_stdin(sys.stdin.buffer).value
    setting = Setting(repo, meta, tuple(overrides or ()), policy, state_dir, planner_model)
    return say_once(text, setting, yes=yes, output=Output(json=as_json, no_input=no_input))


def accept(
    proposal: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Accept only the proposal with this id."),
    ] = None,
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Apply the proposal that was shown last and waits, exactly as it was shown."""
    import asyncio

    from agentrunner.commands.talking import applied

    place = repository(repo)

    async def work() -> tuple[Proposal, Plan]:
        waiting = await api.waiting_proposal(place, proposal, state_dir=state_dir)
        by = user_name()
        return waiting, await api.apply_proposal(place, waiting, author=by, state_dir=state_dir)

    waiting, plan = asyncio.run(work())
    return applied(waiting, plan, store_of(repo, state_dir), as_json=as_json)


@opt.with_file
def show_plan(
    task: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="Its id, e.g. TASK-0001.")
    ] = None,
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """The plan as a tree, with how each task stands; or all that it says of one task."""
    from agentrunner.commands.talking import plan_json, show_kept, task_json
    from agentrunner.plans.execution.answers import answered_questions
    from agentrunner.plans.execution.waiting_questions import waiting_questions
    from agentrunner.screens.plan_tree import plan_screen, task_screen
    from agentrunner.storage.plan_shelf import way_to_a_plan

    store = store_of(repo, state_dir)
    plan = store.load()
    width, paint, driven = width_of(sys.stdout), paint_for(sys.stdout), is_driven(store)
    if task is None:
        if as_json:
            return show_json(plan_json(plan, store))
        asked = waiting_questions(store)
        way = way_to_a_plan(environment.state_dir(state_dir), repository(repo))
        show(plan_screen(plan, asked, driven=driven, width=width, paint=paint, way=way))
        show_kept(plan, store)
        return 0
    task_id = task_called(plan, task)
    if as_json:
        return show_json(task_json(plan, store, task_id))
    answered = answered_questions(store, task_id)
    standings = store.standings()
    show(task_screen(plan, task_id, standings, answered, driven=driven, width=width, paint=paint))
    return 0


def answer(
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="N", help="The question's number, or the task that asks. Default: the only one."
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The answer. In a terminal: asked for.")
    ] = None,
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Answer a question of the planner, of a task that waits for a person, or about the budget."""

    from agentrunner.commands.talking import questions_json
    from agentrunner.plans.execution import answers

    store = store_of(repo, state_dir)
    if question is None or text is None:
        found = _open_question(store, question)
        question, text = str(found.id), _typed_answer(found)
        if not text:
            return WAITING_EXIT
    number = answers.asked_by(store, question).id
    message = answered(question, text, repo, state_dir)
    if as_json:
        show_json({"answered": number, "open_questions": questions_json(store)})
    else:
        show(message)
    return 0


def _open_question(store: PlanStore, name: str | None) -> OpenQuestion:
    """Return the open question of this name; without one the only one, or the one picked.

    Raises UsageError. Ends the command if the person who is asked picks none.
    """
    from agentrunner.errors.plans import UnknownQuestion
    from agentrunner.plans.execution import answers
    from agentrunner.plans.execution.waiting_questions import waiting_questions

    if name is not None:
        return answers.asked_by(store, name)
    waiting = waiting_questions(store)
    if len(waiting) == 1:
        return waiting[0]
    if not waiting:
        raise UnknownQuestion("No question is open.", remedy="agentrunner plan status")
    if interactive(Output()):
        return _picked_question(waiting)
    numbers = ", ".join(f"{one.id} {one.task_id}".strip() for one in waiting)
    raise UsageError(
        f"several questions are open: {numbers}",
        remedy=f"name one, e.g. agentrunner plan answer {waiting[0].id}",
    )


def questions_screen(waiting: Sequence[OpenQuestion], width: int) -> str:
    """Show open questions with their numbers, each in a line or two."""
    rows = []
    for one in waiting:
        about = f"{one.task_id}: " if one.task_id else ""
        rows += clamped(str(one.id), f"{about}{flat(one.text)}", width, label_width=3)
    return "\n".join(["Which question do you answer?", *rows])


def _picked_question(waiting: Sequence[OpenQuestion]) -> OpenQuestion:
    from agentrunner.commands.question_prompt import ask_line

    show(questions_screen(waiting, width_of(sys.stderr)), sys.stderr)
    names = {str(one.id): one for one in waiting} | {one.task_id.lower(): one for one in waiting}
    prompt = "number, [q] leave them > "
    while (word := ask_line(prompt).lower()) not in ("", "q"):
        if found := names.get(word):
            return found
        prompt = f"{', '.join(str(one.id) for one in waiting)}, or [q] leave them > "
    raise typer.Exit(WAITING_EXIT)


def _typed_answer(question: OpenQuestion) -> str:
    """Show the question and return what the person types; "" leaves it. Raises UsageError."""
    from agentrunner.commands.question_prompt import ask_line
    from agentrunner.screens.paused import QUESTION_PROMPT

    if not interactive(Output()):
        raise UsageError(
            "the answer is missing.", remedy=f"agentrunner plan answer {question.id} TEXT"
        )
    about = f"{question.task_id}: " if question.task_id else ""
    lines = f"{about}{question.text}".splitlines()
    width = width_of(sys.stderr)
    show("\n".join(row for line in lines for row in wrap(line, width, "  ")), sys.stderr)
    return ask_line(QUESTION_PROMPT)


def answered(
    question: str, text: str, repo: str | None, state_dir: str | None, *, chat: bool = False
) -> str:
    """Keep an answer; return the message about it.

    Raises UsageError (`unknown-question`, `wrong-answer`, `policy-breach`, …); the question stays.
    """
    from agentrunner.plans.execution.waiting_questions import waiting_questions

    found = api.answer_plan_sync(repository(repo), question, text, state_dir=state_dir)
    left = len(waiting_questions(store_of(repo, state_dir)))
    more = f" {left} more to go." if left else ""
    if chat:
        after = "Work that is under way continues with it; otherwise /run does."
        if not found.task_id:
            after = f"{_REACHES_TASKS}\nThe planner gets it with what you say next."
    elif found.task_id:
        after = "Next:  agentrunner plan run   continues with it"
    else:
        after = f'{_REACHES_TASKS}\nNext:  agentrunner plan "go on"   tells the planner, too'
    return f"Question {found.id} is answered.{more}\n{after}"


_REACHES_TASKS = "Every task that starts from now on is told."


def undo(
    force: Annotated[
        bool, typer.Option("--force", help="Even if it removes a task that is at work.")
    ] = False,
    repo: opt.PlanRepo = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Take the latest change of the plan back; again takes back the one before it."""
    import asyncio

    from agentrunner.commands.talking import undone

    done = asyncio.run(
        api.undo_plan(repository(repo), author=user_name(), force=force, state_dir=state_dir)
    )
    return undone(*done, as_json=as_json)
