"""Throw-away layers in a container: copies on the host, which live as long as one command."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentrunner.sandboxes.base import ErrorKind, Mount, SandboxError
from agentrunner.sandboxes.layers import LAYERS, make_layers, remove_layers


@dataclass(frozen=True)
class Copies:
    """What is copied for one command, and to which folder of its own."""

    folder: Path = Path()
    sources: tuple[Path, ...] = ()

    @classmethod
    def of(cls, mounts: Sequence[Mount], run: Path) -> Copies:
        """Those that these mounts need; `run` is the folder of the run."""
        sources = dict.fromkeys(mount.source.resolve() for mount in mounts if mount.layer)
        return cls(run / LAYERS / secrets.token_hex(8), tuple(sources)) if sources else cls()

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Copies:
        """From the text of its fields."""
        return cls(Path(fields["folder"]), tuple(map(Path, fields["sources"])))

    def laid(self, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        """The same mounts with the copies in place of their sources."""
        return tuple(self._laid(mount) if mount.layer else mount for mount in mounts)

    @asynccontextmanager
    async def made(self) -> AsyncIterator[None]:
        """While they are there; raises SandboxError(INFRA) where they cannot be made."""
        if not self.sources:
            yield
            return
        folder = str(self.folder)
        making = asyncio.ensure_future(
            asyncio.to_thread(make_layers, folder, list(map(str, self.sources)))
        )
        keeper = -1
        try:
            try:
                keeper = await asyncio.shield(making)
            except OSError as error:
                raise SandboxError(ErrorKind.INFRA, "run", str(error)) from error
            except asyncio.CancelledError:
                keeper = await making
                raise
            yield
        finally:
            if keeper >= 0:
                await asyncio.shield(asyncio.to_thread(remove_layers, folder))
                os.close(keeper)

    def _laid(self, mount: Mount) -> Mount:
        number = self.sources.index(mount.source.resolve())
        source = self.folder / str(number)
        return replace(mount, source=source, read_only=False, layer=False)
