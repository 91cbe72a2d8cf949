"""Errors of the command line, of its files, and of AgentRunner itself."""

from __future__ import annotations

from agentrunner.errors.error import InfraError, TaskFailed, UsageError


class BadOption(UsageError):
    """An option of the command line is not written as it must be, or cannot be laid over the
    task file.

    `--set key.path=VALUE`, with VALUE in YAML; `--approve plan,worker,complete`;
    `--build-arg NAME=VALUE`.
    """


class BadName(UsageError):
    """The name cannot be a task id: 1 to 128 letters, digits, `.`, `_` or `-`, a letter or
    digit first, no `..`.

    Choose another name.
    """


class BadEnvironment(InfraError):
    """A variable of the environment that AgentRunner reads has a value it cannot use.

    The message names it. `env | grep AGENTRUNNER` shows what your shell sets;
    docs/how-to/install.md lists all variables with what each takes.
    """


class AlreadyExists(UsageError):
    """`init` found a file of this name and never overwrites.

    Choose another name.
    """

    code = "exists"


class UnknownCode(UsageError):
    """There is no page for this code.

    The codes stand between the brackets of `error[CODE]`.
    """


class UnknownSchema(UsageError):
    """There is no schema of this name.

    `agentrunner schema` lists them; editors read the one of `agentrunner schema task`.
    """


class UnknownKind(UsageError):
    """There is no planner, worker, sandbox or image of this kind.

    A kind is the name of an adapter (`codex-cli`, `claude-code`, `openai-chat`, `bwrap`), neither
    that of its program (`codex`, `claude`) nor that of a model: a model goes into `model:`, or
    `--model` and `--planner-model`. `agentrunner workers`, `agentrunner planners` and
    `agentrunner doctor` show which workers, planners and sandboxes can be used on this machine, and
    what the others lack. Without `--planner`, `--worker` and `--sandbox` one that works is chosen.
    A program that has no kind works as `--worker command`. Kinds of others come with a package or
    with `extensions` in your own settings: docs/how-to/extend.md.
    """


class BadExtension(UsageError):
    """A worker, planner or sandbox that is no part of AgentRunner cannot be imported, or its own
    code fails. The message names the kind or the place of its class.

    Install the package that has it into the environment of `agentrunner`, or correct
    `extensions` in your `config.yaml`. The suites of `agentrunner.testing` find what is wrong in
    a class: docs/how-to/extend.md.
    """

    code = "extension"


class NoEditor(InfraError):
    """The editor that EDITOR or VISUAL names, or `vi`, cannot be started.

    Set EDITOR to an editor that is installed, for example `EDITOR=nano`.
    """


class NotInstalled(UsageError):
    """AgentRunner runs from its source code and is not installed as a package, so the packages
    that it needs in an image are not known.

    In the source folder run `scripts/setup.sh runtime`, or install it with pip, and try
    again.
    """


class EventsInRepository(UsageError):
    """The file of `--events` lies inside the repository. It grows while the run is at work, so
    every look at the tree would find it changed, and count it as an edit.

    Name a file outside the repository, for example
    `agentrunner run users-api.md --events /tmp/users-api.jsonl`.
    """


class RecordInRepository(UsageError):
    """The file of `--record` would be inside the repository. It grows while the run works, so
    it would count as a change at every look.

    Name a file elsewhere, for example `--record /tmp/run.jsonl`.
    """


class BadRecording(UsageError):
    """The file of `--record` or `--replay` cannot be read, or is no recording of this version.

    Record again with `agentrunner run … --record FILE`. A recording is JSON lines; one
    that was cut by a crash can still be played.
    """

    code = "cassette-invalid"


class ReplayMismatch(TaskFailed):
    """A run was replayed from a recording, and asked a model for something else than when it
    was recorded. The message names the first request that differs, and where.

    Compare task file, PRD and repository with those of the recorded run, or record it
    again with `agentrunner run … --record FILE`.
    """


class NotReachable(UsageError):
    """A control word (`agentrunner plan pause`, `agentrunner plan stop`) was said to a plan
    that another process carries out, and it cannot be done from here: only the chat that runs
    the plan can pause it, and a process of another machine cannot be reached.

    Type `/pause` in that chat, or Ctrl-C where `agentrunner plan run` is at work. `agentrunner
    plan stop` on the same machine ends the tasks at work gracefully; `agentrunner plan run`
    resumes them.
    """

    code = "not-here"
