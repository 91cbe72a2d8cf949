"""Whether an error of the machine may pass by itself: a plan waits for those, and asks a person at
once about all others. Every class is named here, so that a new one is decided about.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentrunner.errors.error import InfraError
from agentrunner.errors.reference import by_code

PASS = """
DiskFull EngineAway ForgeUnavailable GatewayFailed GitDiskFull GitFailed GitTimeout LockHeld
LoginUnreachable PlannerAway PlannerQuotaSpent PushFailed SandboxBroken SandboxTimeout
SandboxUndecided WorkerLost
"""
STAY = """
BadEnvironment BadImageHelper BadSandboxRequest BaselineGone ChatPackagesMissing CheckpointCorrupt
ContentGone EnvironmentNotReady ForeignRepository ForgePackagesMissing ForgeRequestRefused
ForgeTokenMissing GitMissing ImageBuildFailed ImageMissing ImagePullFailed InfraError
InheritedUrlRefused LoginExpired LoginMissing LoginUnwritable MergeInProgress NoEditor NoPlanner
NoPlannerKey NoteNotWritten PlannerMissing PlannerRefused RepositoryClosed RepositoryGone
RepositoryReadOnly SandboxUnavailable StateUnwritable TooManyFiles WorkChanged WorkerKeyMissing
WorkerMissing WorkerNeedsNetwork WorkerNotReady WorktreeGone WrongArchitecture WrongDigest
"""


def kinds(of: type[InfraError] = InfraError) -> Iterator[type[InfraError]]:
    """The classes of `agentrunner.errors` that are of this one."""
    if of.__module__.startswith("agentrunner.errors"):
        yield of
    for one in of.__subclasses__():
        yield from kinds(one)


def test_what_may_pass_by_itself_is_said_of_each_error_of_the_machine() -> None:
    assert by_code()  # all of their modules are loaded
    found = {kind.__name__: kind.passes for kind in kinds()}
    assert found == {name: name in PASS.split() for name in (PASS + STAY).split()}
