"""Errors of what a person writes: task file, PRD, settings and policies."""

from __future__ import annotations

from agentrunner.errors.error import UsageError


class BadCheck(UsageError):
    """The check of a criterion cannot be read. A check that were ignored would look like proof.

    In a PRD: ``(check: `COMMAND`)`` at the end of the item or on its own line; also ``check:
    test `NAME` `` and `check: file PATH contains "TEXT"`. A word that is nearly `check`
    (`chekc:`, `checks:`, `test:`, `verify:`) is refused as well: it would be read as prose.
    """


class BadValue(UsageError):
    """A setting has a value that it cannot have.

    The message has the line and the values that the setting can have. `agentrunner validate FILE`
    tries the file again; docs/reference/task-file.md describes each setting.
    """


class DuplicateId(UsageError):
    """Two acceptance criteria have the same id, or two workers the same name.

    Give one of them another, or none.
    """


class DuplicateKey(UsageError):
    """A key stands twice in one mapping; which of the two is meant cannot be told.

    Look at the named line, and search the mapping around it for the same key. YAML would keep the
    last one in silence, so that a setting is not what its first line says. Remove one of the two.
    """


class EmptyCriteria(UsageError):
    """A heading for acceptance criteria has no list under it, or an item has no text.

    Write one list item per criterion, or remove the heading.
    """


class EmptyPrd(UsageError):
    """The PRD holds nothing.

    Write what is wanted below the front matter: a title, some sentences, and under
    `## Acceptance criteria` what has to be true. `agentrunner init NAME` writes an example.
    """


class BadEncoding(UsageError):
    """The file is not UTF-8. The message says what it looks like.

    Convert it, e.g. with `iconv`. A byte order mark and CRLF line ends are fine.
    """

    code = "encoding"


class VariableMissing(UsageError):
    """A setting takes a variable of the environment (`env:NAME`) that is not set.

    Export it. A text that begins with `env:` is written `literal:TEXT`.
    """

    code = "env-missing"


class ForbiddenYaml(UsageError):
    """The file uses something of YAML that task files do not: anchors, aliases, tags, or
    several documents.

    Write the values out; the message has the line.
    """


class LostCriteria(UsageError):
    """Checks stand in a list under a heading that is not read, or the heading is nearly one
    that is. The list would be lost without a word, and with it the proof that it asks for.

    Name the heading "Acceptance criteria", "Definition of Done", "Done when" or
    受け入れ条件. A list that is no list of criteria has no `check:` in it.
    """


class MissingKey(UsageError):
    """A setting that is needed is not there.

    Add it at the place that the message names. `agentrunner init` writes a task file that has all
    that is needed; docs/reference/task-file.md says what each setting takes.
    """


class NoTestCommand(UsageError):
    """`test: auto` found no test command in the repository.

    Write the command: `test: COMMAND`, or `--test COMMAND`.
    """

    code = "no-test"


class FileOutside(UsageError):
    """A file that the task names lies outside the repository and outside the task file's
    folder.

    Copy it in. A PRD can also be named with `--prd`, from anywhere.
    """

    code = "outside"


class ProjectSetting(UsageError):
    """The file `agentrunner.yaml` of the repository sets what a repository may not set. Whoever
    can change a repository could otherwise choose who works on your machine, what that may read
    and reach, what it may spend and what counts as proven.

    Write the setting into the task file, which you read before you run it, or into
    your own `~/.config/agentrunner/config.yaml`.
    """


class FileTooLarge(UsageError):
    """A task file, PRD or file it names is larger than 1 MiB.

    Shorten it, or let it name other files for the worker to read.
    """

    code = "too-large"


class UnknownCandidate(UsageError):
    """`force` in `runner.profiles` names somebody who is not among the candidates of that role.

    Name one of those that are listed, or remove `force`. A worker's name is its `name`
    in `runner.workers`, else its kind; that of a planner is its kind, with its model where one is
    written.
    """


class UnknownFile(UsageError):
    """From name and content it cannot be told whether this is a task file or a PRD.

    End its name in `.yaml` or `.md`, or use `--prd FILE`.
    """


class UnknownKey(UsageError):
    """The task file has a key that is not a setting. Misspelled settings would otherwise be
    ignored in silence.

    `agentrunner schema task` has all keys, docs/reference/task-file.md describes them, and
    `agentrunner validate FILE` reads the file again. A key may stand in the wrong section:
    `max_loops` belongs to `runner.meta`, `test` to `task`.
    """


class Unreadable(UsageError):
    """A file that was named cannot be read: it is missing, not a regular file, or not yours to
    read.

    `ls -ld FILE` shows whether it is there, what it is and who may read it. On the command line
    a path is relative to the folder you are in (`pwd`); in a task file or PRD it is relative to
    that file. A folder cannot be run: name the task file in it, and with `--repo DIR` the
    repository. For a file of another user, make a copy of your own. To say what you want without a
    file, put it in quotes: `agentrunner "fix the failing test"`. A single word, and what ends in
    `.md` or `.yaml`, is taken for a file; `-g` takes it for words.
    """


class YamlSyntax(UsageError):
    """The file is not valid YAML.

    Go to the line that the message names, and look at the one above it, too. The usual causes: a
    tab where blanks belong, a text with `: ` or ` #` in it that has no quotes, a quote that is not
    closed, or a key that stands deeper or less deep than its neighbours. `command: 'pytest -k "a:
    b"'` is right.
    """


class BadTaskId(UsageError):
    """The task id cannot be a file name.

    1 to 128 letters, digits, `.`, `_` or `-`, a letter or digit first, no `..`.
    """

    code = "task-id"


class BadPatterns(UsageError):
    """The file of command patterns is not of the form it must have.

    `{version: 1, patterns: {NAME: {summary: TEXT, instructions: TEXT}}}`.
    """

    code = "patterns-invalid"


class PolicyBreach(UsageError):
    """The task asks for more than a policy of this machine allows. Nothing was started. The
    message names the line of the task and that of the policy; `also` lists further ones.

    Change the task as the message says. What a policy allows is up to whoever keeps
    it; `docs/how-to/policy.md` explains its settings.
    """


class PolicyMissing(UsageError):
    """A policy file is named, by `--policy`, by `AGENTRUNNER_POLICY` or by the run that goes
    on, and cannot be read. It is never passed over: without it nothing would be limited.

    Name a file that is there, or unset the variable. A run stays under the policies
    that it was started with; put the file back, or start a new run.
    """


class PolicyUnsafe(UsageError):
    """A policy file could be changed by those whom it limits: it stands in the repository,
    belongs to somebody else, or can be written by others, as may a folder above it.

    Keep it in `/etc/agentrunner` or in a folder of your own, with `chmod go-w`.
    """


class BadLimit(UsageError):
    """A limit of the sandbox cannot be read, or cannot be kept by this sandbox.

    The message says which. Write `memory: 512m` or `4g`, `cpus: 2` or `0.5`, `pids: 512`. Some
    limits need a sandbox that can keep them: `agentrunner doctor` says what each can do here.
    """

    code = "limit"


class BadReadPath(UsageError):
    """A folder in `runner.sandbox.read_paths` holds credentials, AgentRunner's state, or all of
    your home folder.

    Name the folder that is needed, and only that.
    """

    code = "read-path"
