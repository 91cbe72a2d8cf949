"""Errors of planners."""

from __future__ import annotations

from agentrunner.errors.error import InfraError, TaskFailed, UsageError


class BaseUrlRefused(UsageError):
    """The planner's base URL would send the key, or the PRD, where it should not go: no http(s)
    address, credentials inside it, or plain http to another machine.

    Write it as `https://host/v1`, without a user or key in it: the key comes from a variable. Plain
    `http://` is for this machine (`http://127.0.0.1:8080/v1`). For a server in your own network set
    `allow_plain_http` in your own settings, or give it as an option; a project can't.
    """


class InheritedUrlRefused(InfraError):
    """As BaseUrlRefused, of an address that this machine's settings name and not the task."""

    code = BaseUrlRefused.code


class ChatPackagesMissing(InfraError):
    """A planner of kind `chat` needs LangChain, and the package of its model's provider. One of
    them is not installed. Nothing was spent.

    Install both into the environment of `agentrunner` itself: with uv
    `uv tool install --reinstall --with langchain --with PACKAGE …`, else with the `pip` of its own
    virtual environment. The packages are those of docs/how-to/planners.md.
    """

    code = "chat-missing"


class BadChatModel(UsageError):
    """A planner of kind `chat` needs its model as `provider:name`, with a provider that
    LangChain knows.

    Write it like `runner.meta.model: anthropic:claude-sonnet-4-5`. For a server that
    speaks OpenAI's format, kind `openai-chat` with `runner.meta.base_url` needs no provider.
    """

    code = "chat-model"


class ConversationTimeout(TaskFailed):
    """The planner gave no usable answer to a message within 15 minutes, re-asks included. The
    call that was under way was ended. The plan is as it was, and nothing of the message is
    kept.

    Say it again, in smaller steps. A single call may take `runner.meta.timeout_sec`.
    """

    code = "chat-timeout"


class NoUsableAnswer(TaskFailed):
    """The planner's replies could not be read, also after it was told what was wrong with them,
    and no other candidate of its role gave a better one. Whoever was asked ended the run, or
    `runner.meta.on_unusable` is `fail`.

    `agentrunner resume RUN --planner-model NAME` continues with a stronger model, from
    where the run was. `agentrunner parse TYPE` reads a reply as a run would.
    """

    code = "meta-garbage"


class PlannerQuotaSpent(InfraError):
    """The planner's quota is spent for longer than `runner.budget.wait_sec` allows to wait, and
    no other candidate of its role is free. Nobody is to be asked about it: the planner is a
    program, the run is a replay, or `runner.meta.on_unusable` is `fail`. The run is kept, it
    has not failed.

    `agentrunner resume` when the quota is there again; raise `runner.budget.wait_sec`,
    or add a candidate to `runner.profiles`.
    """

    code = "meta-quota"
    passes = True


class NoPlannerAnswer(TaskFailed):
    """The model's API did not answer, after all retries and waits, or refused; and whoever was
    asked ended the run, or `runner.meta.on_unusable` is `fail`.

    `agentrunner resume RUN` starts its next attempt with everything so far, with
    `--planner KIND` and `--planner-model NAME` by another planner. In a conversation about a plan,
    say it again with one of these options: the plan is as it was.
    """

    code = "meta-unavailable"


class PlannerRefused(InfraError):
    """The planner's provider refuses the key, or does not know the model, while a plan is talked
    about. The plan is as it was. A run asks a person instead.

    Fix the variable or setting that the message names, then type the command that it shows under
    `say it again`: all that was said is in it. `agentrunner doctor --planner` makes one small call.
    """


class PlannerAway(InfraError):
    """The planner could not be reached, or its quota was spent, for longer than
    `runner.budget.wait_sec` allows to wait, while a plan is talked about. The plan is as it was.

    Type the command that the message shows under `say it again` when the planner is back: all that
    was said is in it. `--planner KIND` asks another one; `--set runner.budget.wait_sec=SECONDS`
    waits longer, 0 not at all.
    """

    passes = True


class NoPlanner(InfraError):
    """Nothing names a planner, and this machine has none for this task: no key of a chat model,
    no `claude` or `codex` with a key or a login, and neither a test command nor a check that
    could be executed. Nothing was spent.

    Take one of the ways that are listed: export OPENAI_API_KEY, log a CLI in
    (`agentrunner workers` shows how), or say how the result is tested: `--test CMD`. What a policy
    keeps away is told beside its name.
    """


class NoPlannerKey(InfraError):
    """The planner needs a key, and the variable that the message names is not set; one that is
    a CLI has no usable login here either. Nothing was spent.

    Export it; a local server takes any text. For `codex-cli` and `claude-code` a
    login is enough, see `docs/how-to/login.md`. `--planner checklist` needs no model.
    """


class PlannerMissing(InfraError):
    """The planner is a CLI (`runner.meta.kind` `codex-cli` or `claude-code`), and its program
    is not found: outside of the repository on this machine, or in the image of its sandbox.

    Install it as the message says, or name it: `AGENTRUNNER_CODEX` or
    `AGENTRUNNER_CLAUDE` with its absolute path. `docs/how-to/planners.md` has the other planners.
    """


class ScriptEnded(TaskFailed):
    """The scripted planner has no reply left for what the run asks.

    Add one to the script; `agentrunner resume` takes the next unused item.
    """


class BadScript(UsageError):
    """The script is not a list of replies.

    Items have `reply` or `error`; the message has the line.
    """

    code = "script-invalid"


class ScriptMismatch(TaskFailed):
    """The next reply of the script is for another question than the run asks.

    Put the items in the order of the calls: plan_task, then next_action per
    decision, completion_assessment after mark_complete.
    """


class ScriptMissing(UsageError):
    """`meta.kind: script` needs `runner.meta.script`.

    Name the file, relative to the task file.
    """


class EmptyMessage(UsageError):
    """There is nothing in what was said to the planner but blanks. Nothing was asked and
    nothing spent.

    `agentrunner plan "what you want"`; `agentrunner plan` alone shows the tree.
    """

    code = "message-empty"


class MessageTooLong(UsageError):
    """One message to the planner has at most 64 KiB. What is longer is a document; it would be
    paid for with each call, and later messages of the conversation show only its beginning.
    Nothing was spent.

    Put it into a file of the repository, and say what of it is to be planned, or say
    it in several messages.
    """


class InvalidScene(UsageError):
    """A scene for `planners try` has a key or a value that scenes do not have.

    The message names the file and the place. docs/reference/planner-scenes.md lists the keys.
    """

    code = "scene-invalid"
