"""Errors of runs: their state, their budget, and answers to them."""

from __future__ import annotations

from typing import Self

from agentrunner.errors.error import InfraError, TaskFailed, UsageError

RUN_NEEDS = "A small run needs some 5 MB, and a large repository as much as it has."


class AmbiguousRun(UsageError):
    """Several runs fit. They are listed in the message.

    Name one of them in full: `agentrunner list --all` shows id, task, state and age of each.
    """


class OutOfBudget(TaskFailed):
    """A budget of the task (`runner.budget`) is spent, and a person said `stop`, or the task
    says `on_spent: fail`. Budgets count over all attempts of a run. The work is kept. What is
    said about a plan counts as well, over all conversations about it.

    `agentrunner resume --budget NAME=+AMOUNT` raises it and continues, such as
    `--budget usd=+5`; or take the work back with `agentrunner undo`.
    To talk on about a plan: `--set runner.budget.NAME=AMOUNT`.
    """

    code = "budget"


class BaselineGone(InfraError):
    """An older version began this run, and what was before it cannot be measured anew: the files
    that the run kept are gone or damaged. It is shown as it was, and not resumed.

    `agentrunner show RUN` and the note have what is known of it. Begin anew for the
    rest: `agentrunner run`.
    """


class BudgetNotHeld(UsageError):
    """`runner.budget.enforce: hard` asks that every limit can be held while a worker runs, and
    one of them cannot: its model calls pass no gateway, its model has no price, or they belong
    to a subscription. Nothing was started.

    Use a sandbox with a gateway (`--sandbox bwrap`, network `allowlist`), name a model
    with a price or add it to your `prices.yaml`, leave out the limit, or set
    `runner.budget.enforce: soft`.
    """


class LockHeld(InfraError):
    """Another process drives this run, or works in this repository; two workers in one checkout
    would spoil each other's work. The message names it.

    Wait for it (`agentrunner watch RUN`) or end it (`agentrunner cancel RUN`). Or work
    outside of the checkout, beside it: [`agentrunner run … --worktree`](../how-to/worktree.md).
    A worker that outlived its AgentRunner finishes its round by itself; `agentrunner resume
    RUN` attaches to it.
    """

    code = "busy"
    passes = True


class DiskFull(InfraError):
    """There is no room left in the folder that the message names, which is that of the run's state
    or one that it writes to. What was written before is whole.

    Make room: `df -h FOLDER` shows what there is, `agentrunner gc` deletes old runs. Then
    `agentrunner resume`, if there is a run already, or the same command again. `--state-dir DIR`
    keeps runs in another folder.
    """

    passes = True

    @classmethod
    def of(cls, folder: object, needs: str = RUN_NEEDS, *, cause: str = "") -> Self:
        """Return the error of a folder without room; `cause` is what the system said, in short."""
        return cls(
            f"There is no room left in {folder}. {needs}",
            details=(("cause", cause),) if cause else (),
            remedy=f"df -h {folder}, make room (agentrunner gc deletes old runs), and go on",
        )


class InputsChanged(UsageError):
    """The task file, or a file it names, is not what the run was made from. The differences are
    in the message.

    `--on-change replan` starts a new attempt with the files as they are now,
    read with the options that the run was started with; `--on-change continue` works with those
    that were kept.
    """


class NoTestNames(UsageError):
    """The test command reported totals at most before the run, so no test can be told from
    another by name.

    Use a test command whose tool reports names, as pytest, unittest, node, Jest, Go and
    Cargo do.
    """


class NoTestOutput(UsageError):
    """The test command did not run in that round, or what it printed is not kept.

    The message names the rounds in which it ran; choose one of them. `agentrunner logs`
    tells what happened in each round.
    """


class NotAKnownRed(UsageError):
    """The test was green before the run, or what was asked for names it: then it has to pass.

    Fix it. Where it is red for another reason although the task names it, list it in
    `task.test.known_red` for the next run.
    """


class NotARun(UsageError):
    """What was named is a file, for instance a plan or a task file. Only a run can be verified.

    Name a run: `agentrunner list` shows them. Left out, it is the newest run of this
    repository.
    """


class NotAcceptable(UsageError):
    """Only a run that ended NEEDS_REVIEW or FAILED can be accepted.

    `agentrunner show RUN` says where it stands.
    """


class HasEnded(UsageError):
    """The run has ended, so there is nothing to cancel. It stays as it is.

    `agentrunner show RUN` says how it ended; `agentrunner undo RUN` takes its work back.
    """


class NotWaiting(UsageError):
    """The run does not wait for anyone: it is at work, has ended, or was answered already. The
    first answer counts.

    `agentrunner show RUN` says where it stands. What you want to tell a run that is not waiting
    goes with `agentrunner resume RUN -m "..."`, once it has ended.
    """


class BadNoteFolder(UsageError):
    """`runner.note.dir` is not a folder inside the repository, or it holds other things than
    task notes. Snapshots leave this folder out, so nothing else may stand in it.

    Name a folder of its own, relative to the repository.
    """

    code = "note-dir"


class NoteNotWritten(InfraError):
    """The note could be written neither to the repository nor to the run's folder.

    Look at free space and permissions. The run itself is kept.
    """


class BadNoteTemplate(UsageError):
    """The template of the note cannot be rendered.

    Templates `core` and `architecture` are built in. For one of your own, the message has the place
    and what is wrong there; docs/reference/task-note.md lists what a template can use.
    """

    code = "note-template"


class NothingDelivered(UsageError):
    """The run has not got so far that a worker left something, so there is nothing to verify.

    Continue it with `agentrunner resume`, and verify it afterwards.
    """


class NothingToShow(UsageError):
    """The run ended before it looked at the repository, so it changed nothing.

    `agentrunner logs RUN` says how far it came.
    """


class StaleAnswer(UsageError):
    """The id belongs to an earlier question or to another run. After any rework an approval is
    asked anew, under a new id, so that a yes is always to exactly what will be done.

    `agentrunner show RUN` prints what is asked now; answer that.
    """


class CheckpointCorrupt(InfraError):
    """The saved state of a run is damaged, empty, foreign, or was written by a newer version.
    Other runs are not touched by it.

    The repository and the note are as they were. `agentrunner undo RUN` may still
    put the files back; start a new run otherwise.
    """

    code = "state-damaged"


class StateInRepository(UsageError):
    """The state folder lies inside the repository, where workers could change it.

    Choose another with `--state-dir` or `AGENTRUNNER_STATE_DIR`.
    """


class StateUnwritable(InfraError):
    """The folder in which AgentRunner keeps its runs cannot be written: it belongs to someone
    else, is on a read-only file system, or a part of its path is a file.

    Name a folder of your own with `--state-dir DIR` or AGENTRUNNER_STATE_DIR. It must
    not be inside the repository. A run that was begun is continued with `agentrunner resume RUN`.
    """


class UnknownCriterion(UsageError):
    """The run has no acceptance criterion of this id. The message lists those it has.

    `agentrunner show RUN` has the ids. Those of a PRD without ids of its own are AC-1, AC-2 … in
    the order of its list.
    """


class UnknownRound(UsageError):
    """The run has no worker run of this number. Rounds count from 1.

    `agentrunner logs RUN` shows the rounds there are.
    """

    @classmethod
    def of(cls, run_id: str, rounds: int, number: int) -> Self:
        """The error for a round that a run has not had."""
        had = f"{rounds} round" if rounds == 1 else f"{rounds or 'no'} rounds"
        return cls(
            f"{run_id} has {had}; there is no round {number}.",
            path="--round",
            remedy=f"agentrunner logs {run_id}",
        )


class UnknownRun(UsageError):
    """No run has this id, this beginning of an id, or this task id in this repository; or there
    is no run at all, or none that waits.

    `agentrunner list --all` shows every run.
    """


class UnknownTest(UsageError):
    """No test was called like this before the run. The message lists those that were red.

    `agentrunner show RUN` lists the tests that were red before the run, and `--json` has them under
    `test`. Copy a name whole, with its file or class, and put it in quotes.
    """


class WrongAnswer(UsageError):
    """The answer is of another kind than the question, empty, too long, or an edited plan that
    cannot be read. The question stays.

    `answer` is for questions in words, `approve` and `reject` for approvals; only a
    plan can be edited. A spent budget is answered with `NAME=+AMOUNT`, such as `usd=+5`, or `stop`.
    """


class BadPrices(UsageError):
    """The file of prices cannot be read, or does not say per model what a million tokens cost.

    The message names the place. In US dollars per million tokens:

    ```yaml
    models:
      my-model: {input: 1.25, cached: 0.125, output: 10}
    ```
    """

    code = "prices-invalid"
