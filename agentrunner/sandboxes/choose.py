"""From a sandbox's name in the task file to an open sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from agentrunner.errors import SandboxUnavailable
from agentrunner.errors.sandboxes import EngineAway
from agentrunner.registry import AUTO_SANDBOXES, SANDBOXES, load
from agentrunner.registry import make as make_kind
from agentrunner.sandboxes.base import Sandbox, SandboxOrder
from agentrunner.sandboxes.deny import check_read_paths, check_repo


class AutoSandbox:
    """Stands for one sandbox at a time; `fall_back` switches to the next kind.

    Its users need not know that the sandbox behind it has changed: whatever does not stand here
    is that sandbox's own, of which type checkers do not know.
    """

    def __init__(
        self, kinds: Sequence[str], make: Callable[[str], Sandbox], wanted_image: str = ""
    ) -> None:
        """`wanted_image` is the one that the task names: that it is not used has to be said."""
        self._wanted_image = wanted_image
        self._kinds = list(kinds)
        self._make = make
        self._failures: list[tuple[str, SandboxUnavailable]] = []
        self._passed_over: list[str] = []
        self._sandbox: Sandbox | None = None

    isolates = True

    @property
    def kind(self) -> str:
        """The kind of the open sandbox, or else of the first to be tried."""
        return self._sandbox.kind if self._sandbox else self._kinds[0]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a copy that is being made has nothing yet
            raise AttributeError(name)
        return getattr(self._current, name)

    @property
    def reason(self) -> str:
        """Why this kind was chosen."""
        return "the first that starts here" + "".join(f"; {why}" for why in self._passed_over)

    def describe(self) -> str:
        """See Sandbox. Why it is this one is told by `doctor`, and here of a wanted image."""
        text = self._current.describe()
        if self._wanted_image and self._passed_over:
            text += f" (not in {self._wanted_image}: {self._passed_over[0]})"
        return text

    async def open(self) -> None:
        """Open the first kind that works; raises SandboxUnavailable with every reason.

        It may pass by itself where one of the reasons may.
        """
        while self._kinds:
            sandbox = await asyncio.to_thread(self._make, self._kinds[0])
            try:
                await sandbox.open()
            except SandboxUnavailable as error:
                self._pass_over(error.message)
                self._failures.append((sandbox.kind, error))
                continue
            self._sandbox = sandbox
            return
        reasons = "; ".join(f"{kind}: {error.message}" for kind, error in self._failures)
        last = self._failures[-1][1]
        away = any(error.passes for _, error in self._failures)
        raise (EngineAway if away else SandboxUnavailable)(
            f"no sandbox starts here: {reasons}", remedy=last.remedy, details=last.details
        )

    async def fall_back(self, why: str) -> bool:
        """Leave a sandbox in which the task's commands do not start; False where no other opens."""
        if len(self._kinds) < 2:
            return False
        leaving = self._current
        before = self._kinds, self._passed_over, self._failures
        self._kinds = self._kinds[1:]
        self._passed_over = [*self._passed_over, f"{leaving.kind}: {why}"]
        self._failures = []
        try:
            await self.open()
        except SandboxUnavailable:
            self._kinds, self._passed_over, self._failures = before
            return False
        await leaving.close()
        return True

    async def close(self) -> None:
        if self._sandbox is not None:
            await self._sandbox.close()

    @property
    def _current(self) -> Sandbox:
        """The open sandbox; before that, one of the first kind, which can describe itself."""
        return self._sandbox or self._make(self._kinds[0])

    def _pass_over(self, why: str) -> None:
        self._passed_over.append(f"{self._kinds.pop(0)}: {why}")


def make_sandbox(
    kind: str,
    spec: SandboxOrder,
    environ: Mapping[str, str],
    host_home: Path,
    *,
    state_root: Path,
) -> Sandbox:
    """Return a sandbox that is not open yet; "auto" stands for the first of AUTO_SANDBOXES that
    works here.

    Raises UsageError for an unknown kind, a repository that no sandbox may hold, or a read path
    that is on the deny list.
    """
    check_repo(spec.repo, host_home=host_home, state_root=state_root)
    check_read_paths(spec.read_paths, host_home=host_home, state_root=state_root)

    def make(name: str) -> Sandbox:
        sandbox: Sandbox = make_kind(
            SANDBOXES, name, "sandbox", spec, environ=environ, host_home=host_home
        )
        return sandbox

    if kind != "auto":
        return make(kind)
    return cast("Sandbox", AutoSandbox(AUTO_SANDBOXES, make, spec.image))


async def open_sandbox(
    kind: str,
    spec: SandboxOrder,
    environ: Mapping[str, str],
    host_home: Path,
    *,
    state_root: Path,
) -> Sandbox:
    """Return an open sandbox of this kind, or for "auto" the first that opens.

    Raises SandboxUnavailable with every reason, and UsageError like `make_sandbox`.
    """
    sandbox = await asyncio.to_thread(
        make_sandbox, kind, spec, environ, host_home, state_root=state_root
    )
    await sandbox.open()
    return sandbox


async def missing_image(
    kind: str, spec: SandboxOrder, environ: Mapping[str, str]
) -> SandboxUnavailable | None:
    """Return why a sandbox of this kind has no image, if its class can say so. Downloads nothing.

    Raises SandboxUnavailable if there is no engine to ask, or if the image is unusable.
    """
    ask = getattr(load(SANDBOXES, kind, "sandbox"), "missing_image", None)
    missing: SandboxUnavailable | None = await ask(spec, environ) if ask else None
    return missing


async def image_to_try(kind: str, environ: Mapping[str, str]) -> tuple[str, tuple[Path, ...]]:
    """Return an image to try a sandbox of this kind with, and the host paths that it must read.

    The image is "" where the class offers none. Raises SandboxUnavailable and EngineError.
    """
    ask = getattr(load(SANDBOXES, kind, "sandbox"), "image_to_try", None)
    found: tuple[str, tuple[Path, ...]] = await ask(environ) if ask else ("", ())
    return found
