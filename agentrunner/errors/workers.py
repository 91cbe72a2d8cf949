"""Errors of workers and of their logins."""

from __future__ import annotations

from agentrunner.errors.error import InfraError, TaskFailed, UsageError


class WorkerAuthRefused(TaskFailed):
    """The provider of a worker's model refused its credential: a key that is wrong or
    withdrawn, or a login that is over. Nothing is tried again by itself, as no try would help;
    a person was asked, and gave up.

    Set the key (`runner.worker.env`, or the variable that the question names), or log
    in with the CLI itself, then `agentrunner resume`.
    """

    code = "worker-auth"


class BadWorkerUrl(UsageError):
    """`runner.worker.base_url` is not an http(s) address.

    Write it with `http://` or `https://` and without blanks.
    """

    code = "worker-base-url"


class BadWorkerCommand(UsageError):
    """`runner.worker.command` is not a command this worker can be started with.

    Kind `command`: a command line or a list; kind `codex-cli`: one absolute path.
    """

    code = "worker-command"


class WorkerKeyMissing(InfraError):
    """The worker's model asks for a key, and none of the variables that may hold it is set.
    Nothing was spent.

    Set the variable in the shell that starts AgentRunner, or name another one in
    `runner.worker.env`, as in `OPENAI_API_KEY: env:MY_KEY`. The key goes to the gateway and never
    enters the sandbox. A server of your own, named by `runner.worker.base_url`, needs none.
    """


class WorkerLost(InfraError):
    """The worker was lost several times in a row, in a fresh sandbox each time. The run is
    kept, it has not failed.

    `agentrunner doctor`, then `agentrunner resume`.
    """

    passes = True


class WorkerMissing(InfraError):
    """The worker's program is not found, or the script that it is to run is on this machine and not
    in the sandbox, or nowhere. A program is looked for outside the repository only. No worker was
    started.

    Install it, or give its path in `runner.worker.command`; `agentrunner doctor`
    shows what is found. A script goes into the repository or into
    `runner.sandbox.read_paths`.
    """


class WorkerCannotWork(TaskFailed):
    """The worker's command could not be started, or it failed alike twice and did nothing: each
    further round would have ended so. No other candidate worked. A person was asked, and gave up.

    Put right what `runner.worker.command` starts, or what the worker lacks in its sandbox, then
    `agentrunner resume`. `agentrunner logs` shows what it wrote.
    """


class WorkerModelRefused(TaskFailed):
    """The provider does not know the model that a worker was told to use, or its account may
    not use it. A person was asked, and gave up.

    Give the account that model, then `agentrunner resume`; or go on with another one:
    `agentrunner resume RUN --model NAME`.
    """

    code = "worker-model"


class WorkerNeedsNetwork(InfraError):
    """This worker calls a model over the network, and the sandbox has none. Nothing was spent.

    Leave `runner.sandbox.network` out: the worker then reaches its own model, through
    the gateway that keeps the key, and nothing else. Further hosts are named one by one in
    `runner.sandbox.network.allow`.
    """


class WorkerUnreachable(TaskFailed):
    """The provider of a worker's model could not be reached, again and again, with waits
    between. A person was asked, and gave up.

    See whether this machine is online and `runner.worker.base_url` is right, then
    `agentrunner resume`.
    """

    code = "worker-network"


class WorkerNotReady(InfraError):
    """Nothing names a worker, and none of the CLIs here may be used or has a way to its model:
    it is not installed, has no key and no login, or a policy, a network or a sandbox keeps it
    away. Nothing was spent.

    Beside each name stands what it lacks; `agentrunner workers` shows more. Or name a
    worker: `--worker KIND`.
    """


class WorkerQuotaSpent(TaskFailed):
    """The quota of a worker's provider is spent for longer than `runner.budget.wait_sec` allows
    to wait, and no other candidate of `runner.workers` is free. A person was asked, and gave
    up.

    `agentrunner resume` when the quota is there again; raise
    `runner.budget.wait_sec`, or add a candidate to `runner.workers`.
    """

    code = "worker-quota"


class WorkerServerFailed(TaskFailed):
    """The provider of a worker's model failed again and again, with waits between. A person was
    asked, and gave up.

    `agentrunner resume` when the provider is well again.
    """

    code = "worker-server"


class LoginElsewhere(UsageError):
    """The task uses a login and names another address for model calls. A token of yours would
    go there.

    Remove `runner.worker.base_url`, or use a key: `runner.worker.auth: key`.
    """

    code = "login-base-url"


class LoginExpired(InfraError):
    """The login of a worker's CLI is over: its issuer takes the refresh token no more, or the
    provider refuses a token that cannot be refreshed. The run is kept.

    Log in again with the CLI itself, then `agentrunner resume`.
    """


class LoginMissing(InfraError):
    """The task uses the login of a worker's CLI (`runner.worker.auth: login`), and nobody is
    logged in on this machine, or not in a way that can be used. Nothing was spent.

    Log in as the message says, or use a key: `runner.worker.auth: key`. See
    `docs/how-to/login.md`.
    """


class LoginUnreachable(InfraError):
    """The login needs a new access token, and the issuer of tokens does not answer. The run is
    kept, and no refresh token was lost.

    Look at the network, at proxies and at the provider's status page, then
    `agentrunner resume`.
    """

    passes = True


class LoginUnsupported(UsageError):
    """This kind of worker has no login that can be used.

    Remove `runner.worker.auth`. Codex and Claude Code have one.
    """


class LoginUnwritable(InfraError):
    """The login has to be refreshed, and its file or its lock cannot be written. The refresh
    token was not spent: it works once, so nothing is asked for that could not be kept.

    Run as the user whose login it is, with room on the disk, and with the folder of
    the login writable.
    """
