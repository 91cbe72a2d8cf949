"""Pushes a commit of the private clone to a server, by its address and from the clone alone.

No hook and no setting of the user's repository is obeyed. A token is passed in git's environment,
never in its arguments or a file.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping

from agentrunner.errors.plans import PushFailed
from agentrunner.errors.repositories import BranchExists, GitFailed
from agentrunner.git.private_clone import BRANCHES, CloneStore

PASSED_ON = (
    "ALL_PROXY", "HTTPS_PROXY", "NO_PROXY", "all_proxy", "http_proxy", "https_proxy", "no_proxy",
    "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_DIR", "SSL_CERT_FILE",
    "GIT_SSH", "GIT_SSH_COMMAND", "SSH_AUTH_SOCK",
)  # fmt: skip
"""Variables of the host's environment that are needed to reach a server."""
SSH = "ssh -oBatchMode=yes"


def push_environment(
    environ: Mapping[str, str], origin: str = "", user: str = "", token: str = ""
) -> dict[str, str]:
    """Return what git needs to reach a server; with `origin` ("https://host") a token for it."""
    env = {name: environ[name] for name in PASSED_ON if environ.get(name)}
    env.setdefault("GIT_SSH_COMMAND", SSH)
    env["GIT_ALLOW_PROTOCOL"] = "http:https:ssh"
    settings = {"http.followRedirects": "false"}
    if origin and token:
        secret = base64.b64encode(f"{user}:{token}".encode()).decode()
        settings[f"http.{origin}/.extraHeader"] = f"Authorization: Basic {secret}"
    env["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (name, value) in enumerate(settings.items()):
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = name, value
    return env


def push(
    clone: CloneStore,
    address: str,
    commit: str,
    branch: str,
    *,
    ours: Collection[str],
    env: Mapping[str, str],
) -> None:
    """Set a branch of the server to a commit; blocking. Repeating it changes nothing.

    An existing branch is only moved from a commit of `ours`. Raises UsageError (`branch-exists`)
    for any other, and InfraError (`push-failed`).
    """
    name = f"{BRANCHES}{branch}"
    try:
        output = clone.git.run("ls-remote", "--quiet", address, name, env=env).decode()
        there = output.split("\t")[0].strip()
        if there == commit:
            return
        if there and there not in ours:
            raise BranchExists(
                f"The server has a branch {branch} that was not pushed from here.",
                path="--pr",
                remedy=f"git push REMOTE --delete {branch}, once nobody needs it",
            )
        clone.git.run(
            *("push", "--quiet", "--no-verify", f"--force-with-lease={name}:{there}"),
            *(address, f"{commit}:{name}"),
            env=env,
        )
    except GitFailed as error:
        raise PushFailed(
            f"{branch} could not be pushed: {error.message.partition(':')[2].strip()}",
            remedy="agentrunner plan run --pr tries again; the branch is in your repository",
        ) from error
